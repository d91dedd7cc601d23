"""mbarriers, tensor copies and wgmma of the CPU emulation: as in the PTX ISA, and the mistakes that must be errors."""

import itertools
import math
from pathlib import Path

import pytest
import torch

from cuda_reference.build import load
from cuda_reference.launch import PixelMap, TensorMap

SOURCE = Path(__file__).parent / "kernels/hopper.cuh"
MISTAKES = ("NONE", "NO_ARRIVAL", "WRONG_PARITY", "NO_INIT", "TWO_INITS")
IN_CLUSTER = {
    "NO_BARRIER": "a tensor copy's barrier on memory that is not an mbarrier",
    "NO_FENCE_THERE": "without mbarrier_init_fence",
    "GONE": "a tensor copy to a block that has ended",
    "NOBODY_WAITS": r"block \(1, 0, 0\) ended before a copy that another of its cluster requested",
    "FAR": "block 2 of a cluster of 2",
    "NO_TAIL": "mbarrier.arrive at a block that has ended",
}
MISUSES = ("RIGHT", "NO_FENCE", "NO_WAIT", "ALONE", "OTHER_OPERAND", "NO_PROXY_FENCE")
FP8 = {"E4M3": torch.float8_e4m3fn, "E5M2": torch.float8_e5m2}
# (T, number, how many a tile of 16 x 8 has of it in a lane, tiles, A along K, B along K) -> (torch's T, torch's sums); of fp8
# torch's types of A and B
PRODUCTS = {
    **{("__half", "float", 4, 8, a, b): (torch.float16, torch.float32) for a in (1, 0) for b in (1, 0)},
    ("__half", "float", 4, 32, 0, 0): (torch.float16, torch.float32),
    ("__half", "__half2", 2, 8, 1, 0): (torch.float16, torch.float16),
    ("__nv_bfloat16", "float", 4, 16, 1, 1): (torch.bfloat16, torch.float32),
    ("float", "float", 4, 8, 1, 1): (torch.float32, torch.float32),
    ("signed char", "int", 4, 8, 1, 1): (torch.int8, torch.int32),
    ("unsigned char", "int", 4, 16, 1, 1): (torch.uint8, torch.int32),
    **{(f"Fp8<{a}, {b}>", "float", 4, 8, 1, 1): ((FP8[a], FP8[b]), torch.float32) for a in FP8 for b in FP8},
}
NOT_ADDED = "Fp8<E4M3, E5M2>", "float", 4, 8, 1, 1, "false"  # D is not added to


def name_of(product):
    return f"hopper::multiply<{', '.join(map(str, product))}>"


@pytest.fixture(scope="module")
def kernels():
    others = "hand_over", "share_box", "copy_box<true>", "copy_box<false>", "copy_pixels", "store_box", "multiply_fragments"
    return load(SOURCE, [*(f"hopper::{name}" for name in others), *map(name_of, [*PRODUCTS, NOT_ADDED])], "simt")


def hand_over(kernels, mistake):
    out = torch.full((7,), -2, dtype=torch.int32)
    kernels["hopper::hand_over"]((1, 1, 1), (64, 1, 1), 64, 0, out.data_ptr(), len(out), MISTAKES.index(mistake))
    return out.tolist()


@pytest.mark.parametrize("order", ["", "1", "2"])
def test_mbarriers_hand_values_over(kernels, monkeypatch, order):
    monkeypatch.setenv("SIMT_ORDER", order)
    assert hand_over(kernels, "NONE") == list(range(7))


@pytest.mark.parametrize(
    "mistake, text",
    [
        ("NO_ARRIVAL", "diverged: 62 threads exited.*2 threads wait at mbarrier.try_wait"),
        ("WRONG_PARITY", "diverged: 62 threads exited.*2 threads wait at mbarrier.try_wait"),
        ("NO_INIT", "mbarrier.try_wait on memory that is not an mbarrier"),
        ("TWO_INITS", "mbarrier.init on an mbarrier"),
    ],
)
def test_a_wrong_use_of_mbarriers_is_an_error(kernels, mistake, text):
    with pytest.raises(RuntimeError, match=text):
        hand_over(kernels, mistake)


def copied(kernels, tensor, box, place=(0, 0, 0), more=0, arrivals=1, waits=True, fence="true", to_tf32=False):
    """The box as rows of bytes, unswizzled."""
    raw = torch.zeros(box[0], 128, dtype=torch.uint8)
    arguments = (TensorMap(tensor, box, to_tf32).wire(), raw.data_ptr(), raw.numel(), more, arrivals, *reversed(place), waits)
    kernels[f"hopper::copy_box<{fence}>"]((1, 1, 1), (32, 1, 1), raw.numel() + 2048, 0, *arguments)
    return unswizzled(raw)


def unswizzled(rows):
    """Chunk c of row r is at c XOR r % 8; it is its own inverse."""
    chunks = rows.reshape(-1, 8, 16)
    return torch.stack([row[[c ^ r % 8 for c in range(8)]] for r, row in enumerate(chunks)]).reshape(rows.shape)


@pytest.mark.parametrize("place", [(0, 0, 0), (1, 8, 64), (2, 13, 72), (0, -3, -5), (0, 40, 0), (1, 0, 96), (3, 0, 0)], ids=str)
def test_a_tensor_copy_swizzles_and_fills_with_zeros(kernels, place):
    tensor = torch.randint(1, 2**15, (3, 19, 88), dtype=torch.int16)[:, :, :85]
    batch, row, column = place
    expected = torch.zeros(24, 64, dtype=torch.int16)
    for r in range(24):
        for c in range(64):
            if batch < 3 and 0 <= row + r < 19 and 0 <= column + c < 85:
                expected[r, c] = tensor[batch, row + r, column + c]
    assert torch.equal(copied(kernels, tensor, (24, 64), place).view(torch.int16), expected)


def test_a_tensor_copy_rounds_to_tf32(kernels):
    """To nearest, up to infinity; NaN stays NaN, also with a payload in the bits that tf32 lacks."""
    tensor = torch.randn(1, 8, 32)
    tensor[0, 0, :6] = torch.tensor([math.inf, -math.inf, (2 - 2.0**-11) * 2.0**127, 1 - 2.0**-13, 2.0**-140, 0.0])
    tensor[0, 1, :3] = torch.tensor([0x7F800001, 0x7FC00000, -1], dtype=torch.int32).view(torch.float32)
    found = copied(kernels, tensor, (8, 32), to_tf32=True).view(torch.float32)
    assert found[0, :6].tolist() == [math.inf, -math.inf, math.inf, 1.0, 0.0, 0.0] and found[1, :3].isnan().all()
    usual, rounded = tensor[0, 2:], found[2:]
    assert ((rounded - usual).abs() <= 2.0**-11 * usual.abs()).all() and not (rounded.view(torch.int32) & 0x1FFF).any()
    assert torch.equal(copied(kernels, tensor, (8, 32)).view(torch.int32), tensor[0].view(torch.int32)), "only where asked"


def test_a_copy_that_nobody_waits_for_has_not_landed(kernels):
    tensor = torch.ones(1, 8, 64, dtype=torch.int16)
    assert (copied(kernels, tensor, (8, 64), waits=False) == 0xFF).all()


def test_a_barrier_that_the_copy_engine_does_not_know_of(kernels):
    with pytest.raises(RuntimeError, match="without mbarrier_init_fence"):
        copied(kernels, torch.ones(1, 8, 64, dtype=torch.int16), (8, 64), fence="false")


def pixels_of(kernels, images, box, channel, pixel, tap, **options):
    """The box as rows of 128 bytes, unswizzled."""
    raw = torch.zeros(box[0], 128, dtype=torch.uint8)
    arguments = PixelMap(images, box, **options).wire(), raw.data_ptr(), raw.numel(), channel, *pixel, *tap
    kernels["hopper::copy_pixels"]((1, 1, 1), (32, 1, 1), raw.numel() + 2048, 0, *arguments)
    return unswizzled(raw).view(images.dtype)


def inputs_of(images, tap, steps, padding, dilation, taps):
    """(N P Q, C): the inputs of a tap at all positions of a convolution, in the order of positions."""
    padded = torch.nn.functional.pad(images, (padding[1], padding[1], padding[0], padding[0]))
    ends = [size - (count - 1) * apart for size, count, apart in zip(padded.shape[2:], taps, dilation)]
    (down, right), (p, q) = (t * d for t, d in zip(tap, dilation)), ends
    return padded[:, :, down : down + p : steps[0], right : right + q : steps[1]].movedim(1, 3).flatten(0, 2)


@pytest.mark.parametrize(
    "steps, padding, dilation, taps",
    [
        ((1, 1), (1, 1), (1, 1), (3, 3)),
        ((2, 3), (2, 0), (1, 2), (5, 2)),
        ((1, 2), (0, 3), (3, 1), (2, 7)),
        ((8, 1), (4, 4), (1, 1), (1, 1)),
    ],
    ids=str,
)
def test_a_copy_of_pixels_has_the_inputs_of_a_tap(kernels, steps, padding, dilation, taps):
    """From any position on, over the ends of rows and images, up to behind the last one, where zeros are."""
    images = torch.randint(1, 2**15, (3, 88, 9, 11), dtype=torch.int16).to(memory_format=torch.channels_last)[:, :85]
    reach = [(count - 1) * apart for count, apart in zip(taps, dilation)]
    first, last = tuple(-pad for pad in padding), tuple(pad - r for pad, r in zip(padding, reach))
    counts = [(s + e - f - 1) // step + 1 for s, f, e, step in zip(images.shape[2:], first, last, steps)]
    total = images.shape[0] * counts[0] * counts[1]
    for tap in {(0, 0), (taps[0] - 1, taps[1] - 1), (taps[0] - 1, 0)}:
        every = inputs_of(images, tap, steps, padding, dilation, taps)
        assert len(every) == total
        for start, channel in ((0, 0), (total // 2 + 1, 72), (total - 3, 64)):
            image, rest = divmod(start, counts[0] * counts[1])
            pixel = image, first[0] + rest // counts[1] * steps[0], first[1] + rest % counts[1] * steps[1]
            expected = torch.zeros(40, 64, dtype=torch.int16)
            part = every[start : start + 40, channel : channel + 64]
            expected[: part.shape[0], : part.shape[1]] = part
            moved = tuple(t * d for t, d in zip(tap, dilation))
            options = {"first": first, "last": last, "steps": steps}
            assert torch.equal(pixels_of(kernels, images, (40, 64), channel, pixel, moved, **options), expected)


def test_a_copy_of_pixels_rounds_to_tf32(kernels):
    images = torch.randn(1, 32, 4, 2).to(memory_format=torch.channels_last)
    usual = images.movedim(1, 3).flatten(0, 2)
    rounded = pixels_of(kernels, images, (8, 32), 0, (0, 0, 0), (0, 0), to_tf32=True)
    assert ((rounded - usual).abs() <= 2.0**-11 * usual.abs()).all() and not (rounded.view(torch.int32) & 0x1FFF).any()
    assert torch.equal(pixels_of(kernels, images, (8, 32), 0, (0, 0, 0), (0, 0)), usual), "only where asked"


@pytest.mark.parametrize(
    "pixel, tap, options, text",
    [
        ((0, -1, 0), (0, 0), {}, "a pixel that is none of those between the corners"),
        ((0, 0, 9), (0, 0), {"last": (0, -2)}, "a pixel that is none of those between the corners"),
        ((0, 1, 0), (0, 0), {"steps": (2, 1)}, "a pixel that is none of those between the corners"),
        ((0, 0, 0), (0, 256), {}, "further than 255"),
        ((0, 0, 0), (0, 0), {"first": (-129, 0)}, "corners from -128 to 127"),
        ((0, 0, 0), (0, 0), {"steps": (1, 9)}, "steps of 1 to 8"),
        ((0, 0, 0), (0, 0), {"last": (-8, 0)}, "a pixel between its corners"),
    ],
)
def test_a_wrong_copy_of_pixels_is_an_error(kernels, pixel, tap, options, text):
    images = torch.zeros(2, 64, 8, 10, dtype=torch.int16).to(memory_format=torch.channels_last)
    with pytest.raises(RuntimeError, match=text):
        pixels_of(kernels, images, (16, 64), 0, pixel, tap, **options)


def test_a_map_is_of_one_kind(kernels):
    images = torch.zeros(1, 64, 8, 8, dtype=torch.int16).to(memory_format=torch.channels_last)
    out, matrix = torch.zeros(16, 128, dtype=torch.uint8), images.permute(0, 2, 3, 1)[0]
    for kernel, tensor_map, rest in (
        ("copy_pixels", TensorMap(matrix, (16, 64)), (0, 0, 0, 0, 0, 0)),
        ("copy_box<true>", PixelMap(images, (16, 64)), (0, 1, 0, 0, 0, True)),
    ):
        with pytest.raises(RuntimeError, match="by a map of"):
            arguments = tensor_map.wire(), out.data_ptr(), out.numel(), *rest
            kernels[f"hopper::{kernel}"]((1, 1, 1), (32, 1, 1), 4096, 0, *arguments)


def shared(kernels, blocks=4, mistake="SOUND"):
    """(a tensor of 2 x 16 rows of 128 bytes, what each of the blocks has of it)."""
    tensor = torch.randint(0, 256, (2, 16, 128), dtype=torch.uint8)
    out = torch.zeros(4, 16, 128, dtype=torch.uint8)
    arguments = (TensorMap(tensor, (8, 128)).wire(), out.data_ptr(), ("SOUND", *IN_CLUSTER).index(mistake))
    kernels["hopper::share_box"]((blocks, 1, 1), (64, 1, 1), 16 * 128 + 16, 0, *arguments)
    return tensor, out


@pytest.mark.parametrize("order", ["", *"123456"])
def test_blocks_of_a_cluster_copy_to_each_other(kernels, monkeypatch, order):
    monkeypatch.setenv("SIMT_ORDER", order)
    tensor, out = shared(kernels)
    for block in range(4):
        assert torch.equal(unswizzled(out[block]), tensor[block // 2])


@pytest.mark.parametrize("mistake", IN_CLUSTER)
def test_a_mistake_in_a_cluster_is_an_error(kernels, mistake):
    with pytest.raises(RuntimeError, match=IN_CLUSTER[mistake]):
        shared(kernels, 2, mistake)


def test_a_grid_of_no_whole_clusters(kernels):
    with pytest.raises(RuntimeError, match=r"grid \(3, 1, 1\) in clusters of 2"):
        shared(kernels, 3)


def stored(kernels, tensor, column, times=1, fences=1):
    """A box of 8 rows of 64 bytes of the tensor's bytes is stored from `column` on; its row r holds 128 r, 128 r + 1, ..."""
    arguments = (TensorMap(tensor, (8, 64)).wire(), 8 * 128, column, 0, times, fences)
    kernels["hopper::store_box"]((1, 1, 1), (32, 1, 1), 8 * 128, 0, *arguments)


@pytest.mark.parametrize("columns", [0, 1, 15, 16, 17, 47, 48])
def test_a_store_writes_whole_chunks(kernels, columns):
    """The tensor has up to 48 of rows of 96 bytes, from 16 on: the rest of the chunk in which they end is written too."""
    memory = torch.full((9, 96), 255, dtype=torch.uint8)
    stored(kernels, memory[None, :7, 16 : 16 + columns], column=0)
    whole, box = -(-columns // 16) * 16, (torch.arange(8 * 128) % 256).to(torch.uint8)
    expected = torch.full_like(memory, 255)
    expected[:7, 16 : 16 + whole] = unswizzled(box.view(8, 128))[:7, :whole]
    assert torch.equal(memory, expected)


def test_a_store_within_a_chunk_is_refused(kernels):
    with pytest.raises(RuntimeError, match="to within a chunk"):
        stored(kernels, torch.zeros(1, 8, 64, dtype=torch.uint8), column=8)


def test_every_store_needs_a_fence_after_its_data(kernels):
    memory = torch.zeros(1, 8, 64, dtype=torch.uint8)
    stored(kernels, memory, column=0, times=2, fences=2)
    for times, fences in ((1, 0), (2, 1)):
        with pytest.raises(RuntimeError, match="without tma_store_fence"):
            stored(kernels, memory, 0, times, fences)


def test_missing_bytes_are_a_deadlock(kernels):
    tensor = torch.ones(1, 8, 64, dtype=torch.int16)
    with pytest.raises(RuntimeError, match="diverged: 32 threads wait at mbarrier"):
        copied(kernels, tensor, (8, 64), more=16)


def test_a_second_arrival_in_a_phase_that_awaits_one(kernels):
    tensor = torch.ones(1, 8, 64, dtype=torch.int16)
    with pytest.raises(RuntimeError, match="more arrivals than its phase expects"):
        copied(kernels, tensor, (8, 64), arrivals=2)


@pytest.mark.parametrize(
    "tensor, box, text",
    [
        (torch.ones(1, 9, 72, dtype=torch.int16)[:, :, 1:65], (8, 64), "an address that is a multiple of 16"),
        (torch.ones(1, 9, 68, dtype=torch.int16), (8, 64), "strides of multiples of 16 bytes"),
        (torch.ones(1, 9, 64, dtype=torch.int16).expand(2, 9, 64), (8, 64), "strides of multiples of 16 bytes, above 0"),
        (torch.ones(1, 9, 64, dtype=torch.int16), (257, 64), "a box of 1 to 256 rows"),
        (torch.ones(1, 9, 64, dtype=torch.int16), (8, 72), "box rows of a multiple of 16 bytes"),
    ],
)
def test_what_no_tensor_map_describes(kernels, tensor, box, text):
    with pytest.raises(RuntimeError, match=f"a tensor map wants {text}"):
        copied(kernels, tensor, box)


def test_tf32_is_made_of_fp32(kernels):
    with pytest.raises(RuntimeError, match="a tensor map wants fp32"):
        copied(kernels, torch.ones(1, 9, 64, dtype=torch.int16), (8, 64), to_tf32=True)


def test_a_tensor_map_is_ten_ints(kernels):
    with pytest.raises(TypeError, match="kernel argument 0 must be 10 ints, not 2"):
        kernels["hopper::copy_box<true>"]((1, 1, 1), (32, 1, 1), 64, 0, (1, 2), *[0] * 7, True)
    with pytest.raises(TypeError, match="kernel argument 0 must be a tuple, not int"):
        kernels["hopper::copy_box<true>"]((1, 1, 1), (32, 1, 1), 64, 0, 1, *[0] * 7, True)


def d_element(thread, i):
    """(row, column) of D's number d_i in a thread of the warpgroup, as the ISA defines it for wgmma.m64nNkK."""
    lane, warp = thread % 32, thread // 32
    row = 16 * warp + lane // 4 + 8 * (i // 2 % 2)
    return row, 8 * (i // 4) + lane % 4 * 2 + i % 2


def slice_of(matrix, along_k):
    """A (64 or 8 TILES, 128 bytes of k) operand as a slice in shared memory: rows of 128 bytes, swizzled."""
    size, matrix = matrix.element_size(), matrix.view(torch.int8) if matrix.element_size() == 1 else matrix
    rows = matrix if along_k else torch.cat([block.t() for block in matrix.split(128 // size)])
    return unswizzled(rows.contiguous().view(torch.uint8))


def multiply(kernels, product, a, b, c, step=0, misuse="RIGHT"):
    """c + a[:, step] @ b[:, step].T, of the 32 bytes of k that are step `step` of a slice."""
    _, _, _, tiles, a_along_k, b_along_k, *_ = product
    slices = torch.cat([slice_of(a, a_along_k), slice_of(b, b_along_k)])
    places = [[d_element(thread, i) for i in range(4 * tiles)] for thread in range(128)]
    sums = torch.stack([torch.stack([c[place] for place in mine]) for mine in places])
    steps = [step * (32 if along_k else 16 * 128) for along_k in (a_along_k, b_along_k)]
    arguments = (slices.numel(), steps[0], 64 * 128 + steps[1], 64 * 128, MISUSES.index(misuse))
    kernels[name_of(product)]((1, 1, 1), (128, 1, 1), slices.numel(), 0, slices.data_ptr(), sums.data_ptr(), *arguments)
    result = torch.empty_like(c)
    for mine, of_thread in zip(places, sums):
        for place, number in zip(mine, of_thread):
            result[place] = number
    return result


def operands(product):
    dtypes, sums = PRODUCTS[product]
    dtypes = dtypes if isinstance(dtypes, tuple) else (dtypes, dtypes)
    low, columns = 0 if dtypes[0] == torch.uint8 else -8, 8 * product[3]
    a, b = (torch.randint(low, 9, (rows, 128 // t.itemsize)).to(t) for rows, t in zip((64, columns), dtypes))
    return a, b, torch.randint(-50, 50, (64, columns)).to(sums)


@pytest.mark.parametrize("product", PRODUCTS, ids=name_of)
@pytest.mark.parametrize("step", [0, 3])
def test_wgmma(kernels, product, step):
    a, b, c = operands(product)
    k = slice(step * 32 // a.element_size(), (step + 1) * 32 // a.element_size())
    expected = a[:, k].double() @ b[:, k].double().t() + c.double()
    assert torch.equal(multiply(kernels, product, a, b, c, step).double(), expected)


def test_wgmma_with_a_sum_of_its_own(kernels):
    a, b, c = operands(NOT_ADDED[:6])
    result = multiply(kernels, NOT_ADDED, a, b, torch.full_like(c, torch.nan), step=1)
    assert torch.equal(result.double(), a[:, 32:64].double() @ b[:, 32:64].double().t())


def a_element(thread, i):
    """(row, k) of A's number a_i in a thread's register, as the ISA defines it for tf32."""
    lane, warp = thread % 32, thread // 32
    return 16 * warp + lane // 4 + 8 * (i % 2), lane % 4 + 4 * (i // 2)


@pytest.mark.parametrize("overwrites", [False, True])
def test_wgmma_from_registers(kernels, overwrites):
    """They are read as late as allowed: here they are 0 by then, where a_3 is written too early."""
    a, b = torch.randint(-8, 9, (64, 8)).float(), torch.randint(-8, 9, (64, 32)).float()
    fragments = torch.stack([torch.stack([a[a_element(thread, i)] for i in range(4)]) for thread in range(128)])
    slices, sums = slice_of(b, True), torch.empty(128, 32)
    arguments = slices.data_ptr(), fragments.data_ptr(), sums.data_ptr(), overwrites
    kernels["hopper::multiply_fragments"]((1, 1, 1), (128, 1, 1), slices.numel(), 0, *arguments)
    if overwrites:
        for thread in range(128):
            a[a_element(thread, 3)] = 0
    expected = a @ b[:, :8].t()
    assert all(sums[thread, i] == expected[d_element(thread, i)] for thread in range(128) for i in range(32))


@pytest.mark.parametrize("product", [p for p in PRODUCTS if p[0].startswith("Fp8")], ids=name_of)
def test_sums_of_fp8_keep_13_bits_below_the_largest(kernels, product):
    """What is below the 13th is cut off, towards zero; of D, too. 32 cuts at 2^-8, 16 at 2^-9."""
    (a_type, b_type), _ = PRODUCTS[product]
    a, b, c = torch.zeros(64, 128).to(a_type), torch.zeros(64, 128).to(b_type), torch.zeros(64, 64)
    a[:, :4] = 1.0
    b[:2, 0], b[:2, 1], b[:2, 2], b[2, 3] = torch.tensor([32.0, 16.0]), 2.0**-8, -1.5 * 2.0**-8, torch.nan
    c[3], c[5], c[6] = 2.0**-7, 3 * 2.0**-9, torch.inf
    result = multiply(kernels, product, a, b, c)
    for row, column in itertools.product((0, 3, 5), (0, 1)):
        largest = b[column, 0].item()
        addends, unit = torch.tensor([2.0**-8, -1.5 * 2.0**-8, c[row, column]]), largest * 2.0**-13
        assert result[row, column] == largest + (torch.trunc(addends / unit) * unit).sum()
    assert result[:, 2].isnan().all() and (result[6, 3:] == torch.inf).all()


@pytest.mark.parametrize("dtype", FP8.values(), ids=str)
def test_every_fp8(kernels, dtype):
    """Times 1, alone in its sum: it is exact."""
    name = next(name for name in FP8 if FP8[name] == dtype)
    product = f"Fp8<{name}, E4M3>", "float", 4, 8, 1, 1
    every, b = torch.arange(256).to(torch.uint8).view(dtype), torch.zeros(64, 128).to(torch.float8_e4m3fn)
    b[:, 0] = 1.0
    for rows in every.view(torch.uint8).split(64):
        a = torch.zeros(64, 128, dtype=torch.uint8)
        a[:, 0] = rows
        result = multiply(kernels, product, a.view(dtype), b, torch.zeros(64, 64))[:, 9]
        assert torch.equal(result.nan_to_num(7e8), rows.view(dtype).float().nan_to_num(7e8))


@pytest.mark.parametrize(
    "misuse, text",
    [
        ("NO_FENCE", "wgmma without wgmma.fence"),
        ("ALONE", "diverged: 32 threads exited.*96 threads wait at wgmma.wait_group"),
        ("OTHER_OPERAND", "the threads of a warpgroup do not issue the same"),
        ("NO_PROXY_FENCE", "wgmma of data from cp.async without fence.proxy.async"),
    ],
)
def test_a_wrong_use_of_wgmma_is_an_error(kernels, misuse, text):
    product = next(iter(PRODUCTS))
    with pytest.raises(RuntimeError, match=text):
        multiply(kernels, product, *operands(product), misuse=misuse)


def test_sums_that_are_read_before_the_wait_are_the_old_ones(kernels):
    product = next(iter(PRODUCTS))
    a, b, c = operands(product)
    assert torch.equal(multiply(kernels, product, a, b, c, misuse="NO_WAIT"), c)
