"""Sectors and banks of one warp's access: the seed's figures, its GEMM's own accesses, and properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis import repeatable
from tritonkernels.analysis.banks import degrees, wavefronts
from tritonkernels.analysis.sectors import efficiency, sectors
from tritonkernels.errors import ArgumentError

widths = st.sampled_from((1, 2, 4, 8, 16))


def floats(index):
    """Lane -> byte address of a float, given lane -> index."""
    return lambda lane: 4 * index(lane)


def only(lanes, address):
    return lambda lane: address(lane) if lane in lanes else None


# Sectors of a global access


@pytest.mark.parametrize("stride, expected", ((0, 1), (1, 4), (2, 8), (3, 12), (4, 16), (8, 32), (9, 32), (4096, 32)))
def test_sectors_by_stride(stride, expected):
    assert sectors(floats(lambda lane: stride * lane)) == [expected]
    assert sectors(floats(lambda lane: stride * (31 - lane))) == [expected]


def test_wide_accesses_are_several_requests():
    assert sectors(lambda lane: 8 * lane, 8) == [4, 4]
    assert sectors(lambda lane: 16 * lane, 16) == [4, 4, 4, 4]
    assert sectors(lambda lane: 32 * lane, 16) == [8, 8, 8, 8]
    assert sectors(lambda lane: lane, 1) == [1] and sectors(lambda lane: 2 * lane, 2) == [2]
    # A float4 split into 4 loads, each of stride 4: every one touches the 16 sectors that the float4 needs in all.
    assert [sectors(floats(lambda lane, i=i: 4 * lane + i)) for i in range(4)] == [[16]] * 4


def test_off_a_sector_s_edge():
    assert sectors(floats(lambda lane: lane + 1)) == [5]
    assert sectors(floats(lambda lane: lane + 8)) == [4]
    assert sectors(lambda lane: 16 * lane + 16, 16) == [5, 5, 5, 5]


def test_inactive_lanes_access_nothing():
    assert sectors(only({5}, floats(lambda lane: lane))) == [1]
    assert sectors(only(set(), floats(lambda lane: lane))) == [0]
    assert sectors(only(range(8), lambda lane: 16 * lane), 16) == [4, 0, 0, 0]


def test_efficiency_is_bytes_requested_over_bytes_moved():
    assert efficiency(floats(lambda lane: lane)) == 1
    assert efficiency(floats(lambda lane: 2 * lane)) == 1 / 2
    assert efficiency(floats(lambda lane: 8 * lane)) == 1 / 8
    assert efficiency(floats(lambda lane: lane + 1)) == 128 / 160
    assert efficiency(lambda lane: 16 * lane, 16) == 1
    assert efficiency(floats(lambda lane: 0)) == 4 / 32
    assert efficiency(only(set(), floats(lambda lane: lane))) == 1


def test_a_slice_of_a_row_major_matrix():
    """8 floats deep (the seed's BK) and 4096 wide: 4 rows of one sector each; a slice of 1 float would be 32."""
    assert sectors(floats(lambda lane: lane // 8 * 4096 + lane % 8)) == [4]
    assert sectors(floats(lambda lane: lane * 4096)) == [32]


@repeatable
@given(st.lists(st.integers(0, 1000), min_size=32, max_size=32), widths, st.randoms())
def test_sectors_do_not_depend_on_the_order_of_lanes(indices, width, random):
    lanes = min(32, 128 // width)
    shuffled = [index for i in range(0, 32, lanes) for index in random.sample(indices[i : i + lanes], lanes)]
    counted = sectors(lambda lane: indices[lane] * width, width)
    assert counted == sectors(lambda lane: shuffled[lane] * width, width)
    assert len(counted) == 32 // lanes and all(1 <= count <= lanes for count in counted)
    assert 0 < efficiency(lambda lane: indices[lane] * width, width) <= 1


# Banks of shared memory


@pytest.mark.parametrize("stride, degree", ((0, 1), (1, 1), (2, 2), (3, 1), (8, 8), (16, 16), (32, 32), (33, 1), (36, 4)))
def test_conflicts_by_stride(stride, degree):
    access = floats(lambda lane: stride * lane)
    assert degrees(access) == [degree] and wavefronts(access) == degree


def test_only_different_words_conflict():
    assert degrees(floats(lambda lane: 32 * (lane % 2))) == [2]
    assert degrees(floats(lambda lane: lane // 16 * 16)) == [1]
    assert degrees(lambda lane: lane, 1) == [1] and degrees(lambda lane: 2 * lane, 2) == [1]
    assert degrees(lambda lane: 128 * (lane // 4) + lane % 4, 1) == [8]


def test_wide_accesses_conflict_only_within_a_phase():
    assert degrees(lambda lane: 8 * lane, 8) == [1, 1]
    assert degrees(lambda lane: 16 * lane, 16) == [1, 1, 1, 1]
    assert degrees(lambda lane: 8 * (lane % 16) + 128 * (lane // 16), 8) == [1, 1]  # the same banks, in different phases
    assert degrees(lambda lane: 16 * lane, 8) == [2, 2]
    assert degrees(lambda lane: 32 * lane, 16) == [2, 2, 2, 2]
    assert degrees(lambda lane: 128 * lane, 16) == [8, 8, 8, 8]
    assert degrees(lambda lane: 0, 16) == [1, 1, 1, 1] and wavefronts(lambda lane: 0, 16) == 4


def test_a_phase_without_lanes_takes_no_time():
    first_eight = only(range(8), lambda lane: 128 * lane)
    assert degrees(first_eight, 16) == [8, 0, 0, 0] and wavefronts(first_eight, 16) == 8
    nobody = only(set(), lambda lane: 0)
    assert degrees(nobody) == [0] and wavefronts(nobody) == 0
    assert degrees(only({31}, lambda lane: 4096)) == [1]


@pytest.mark.parametrize("pitch, degree", ((128, 2), (132, 1)))
def test_padding_by_4_stores_a_transposed_without_conflicts(pitch, degree):
    """The seed: two lanes hold a float4 each of a row of the 128 x 8 slice, and store it to 4 rows of the transposed slice."""
    for i in range(4):
        assert degrees(floats(lambda lane, i=i: (4 * (lane % 2) + i) * pitch + lane // 2)) == [degree]


def test_remapping_odd_lanes_into_m_stores_a_transposed_without_conflicts():
    """The seed's other remedy: the 32 lanes hold 32 different rows of the slice."""
    for i in range(4):
        assert degrees(floats(lambda lane, i=i: i * 128 + lane)) == [1]


def test_fragments_of_8_floats_conflict_and_quadrants_of_4_do_not():
    """Thread tiles of 8 x 8 on a warp of 4 x 8: 8 lanes read B side by side, 4 different fragments of A."""
    eight_apart = 4 * 8
    assert degrees(floats(lambda lane: 8 * (lane % 8))) == [2]
    assert degrees(lambda lane: eight_apart * (lane % 8), 16) == [2, 2, 2, 2]
    assert degrees(lambda lane: 16 * (lane % 8), 16) == [1, 1, 1, 1]  # 4 x 4 quadrants: neighbours are 4 floats apart
    assert degrees(lambda lane: eight_apart * (lane // 8), 16) == [1, 1, 1, 1]  # A: a broadcast in each phase


@repeatable
@given(st.permutations(range(32)), st.lists(st.integers(0, 50), min_size=32, max_size=32))
def test_lanes_in_different_banks_never_conflict(banks, rows):
    assert degrees(floats(lambda lane: 32 * rows[lane] + banks[lane])) == [1]


@repeatable
@given(st.lists(st.integers(0, 200), min_size=32, max_size=32), st.integers(0, 31), st.integers(0, 31), widths)
def test_a_lane_that_joins_another_s_word_adds_no_conflict(indices, lane, other, width):
    """A lane that joins a word adds no conflict, since a broadcast is free."""
    lanes = min(32, 128 // width)
    other = lane // lanes * lanes + other % lanes  # of the same phase

    def joined(i):
        return width * indices[other if i == lane else i]

    before = degrees(lambda i: width * indices[i], width)
    assert all(now <= then for now, then in zip(degrees(joined, width), before))
    if lane != other:
        assert degrees(joined, width) == degrees(only(set(range(32)) - {lane}, joined), width)


@repeatable
@given(st.lists(st.integers(0, 200), min_size=32, max_size=32), st.integers(0, 200), widths)
def test_conflicts_do_not_depend_on_where_the_array_starts(indices, start, width):
    """If it starts at a multiple of 4 bytes; else half words could fall into different words."""
    first = max(width, 4) * start
    assert degrees(lambda lane: width * indices[lane], width) == degrees(lambda lane: first + width * indices[lane], width)


# Addresses that the hardware refuses


@pytest.mark.parametrize("count", (sectors, degrees))
def test_misaligned_and_odd_widths_are_errors(count):
    with pytest.raises(ArgumentError, match=r"4 in lane 1; .*multiples of the access width, 16"):
        count(floats(lambda lane: lane), 16)
    with pytest.raises(ArgumentError, match="1, 2, 4, 8, 16 bytes"):
        count(floats(lambda lane: lane), 12)
