"""How tiles cover a weight in groups: every element that it has is in one tile, at one place of it."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonkernels.integers import ceil_div
from tritonkernels.operations.conv2d_weight.bands import BOX, CHUNK, bands_and_tiles, boxes_without_rows


def elements(problem, tile_m, tile_n):
    """(row, tap, channel) of every place of every tile that kernels store, in their words."""
    bands, tiles = bands_and_tiles(problem, tile_m, tile_n)
    k_per_group, c_per_group = problem.k // problem.groups, problem.c // problem.groups
    units, taps = tile_n // BOX, problem.r * problem.s
    tiles_n = ceil_div(taps * bands.chunks, units)
    for tile in range(tiles):
        across = tile // bands.tiles_m
        band = across // tiles_n
        begin, end = band * bands.rows, min((band + 1) * bands.rows, problem.k)
        first_row = begin // CHUNK * CHUNK + tile % bands.tiles_m * tile_m
        first = band * bands.channels // CHUNK * CHUNK
        for unit in range(across % tiles_n * units, (across % tiles_n + 1) * units):
            for k in range(max(begin, first_row), min(end, first_row + tile_m)):
                for c in range(first + unit % bands.chunks * BOX, first + (unit % bands.chunks + 1) * BOX):
                    if k // k_per_group == c // c_per_group and unit // bands.chunks < taps:
                        yield k, unit // bands.chunks, c


@given(
    groups=st.integers(1, 40),
    k=st.integers(1, 140),
    c=st.integers(1, 140),
    taps=st.integers(1, 5),
    tile_m=st.sampled_from((64, 128, 256)),
    tile_n=st.sampled_from((64, 128, 256)),
)
def test_every_element_is_in_one_place(groups, k, c, taps, tile_m, tile_n):
    groups = min(groups, max(1, 200 // max(k, c)))
    problem = SimpleNamespace(groups=groups, k=groups * k, c=groups * c, r=taps, s=1)
    found = sorted(elements(problem, tile_m, tile_n))
    assert found == [
        (row, tap, row // k * c + channel) for row in range(groups * k) for tap in range(taps) for channel in range(c)
    ]


@pytest.mark.parametrize(
    "groups, k, c, together", [(9, 24, 24, 2), (31, 26, 26, 2), (8, 9, 9, 6), (8, 10, 9, 5), (2, 70, 3, 1)]
)
def test_a_band_has_as_many_groups_as_boxes_take(groups, k, c, together):
    problem = SimpleNamespace(groups=groups, k=groups * k, c=groups * c, r=3, s=3)
    bands, _ = bands_and_tiles(problem, 64, 128)
    assert (bands.rows, bands.channels) == (together * k, together * c)


def test_a_tile_of_two_boxes_is_for_bands_of_two():
    def without(k, groups=2):
        problem = SimpleNamespace(groups=groups, k=groups * k, c=groups * k, r=1, s=1)
        return [boxes_without_rows(problem, tile) for tile in (64, 128, 256)]

    assert without(64) == [0, 1, 3] and without(72) == [0, 0, 2] and without(126) == [0, 1, 1] and without(65) == [0, 0, 2]
