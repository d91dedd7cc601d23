"""FP32 matrices as planes that tensor cores multiply exactly: x = high + low (+ lowest).

A tensor core multiplies numbers of 8 (bf16) or 11 bits (fp16, tf32) and FP32 has 24. Each plane is the remainder of x, rounded
to nearest, so that two planes of 11 bits and their signs hold x to 2^-23 of it, and three of 8 bits hold it exactly:

    tf32x3          two tf32 planes, kept in FP32
    fp16x3          two fp16 planes of x 2^s, the low one times 2^11. The shift s, one for each row, brings the row's largest
                    finite element to [2^14, 2^15), so that nothing overflows; low parts are then as large as high ones, and
                    fp16's 5 bits of exponent reach 2^-50 below the largest element (Ootomo and Yokota, 2022)
    bf16x6, bf16x9  three bf16 planes

Infinities and NaN are in the high plane, with 0 below them. The high plane of a number that is not 0 is not 0 either (it is
raised to the plane's smallest number, and the low plane makes up for it), so that infinity times it is infinity and not NaN.
fp16x3 and fp32 count the small elements of a row, which may lose bits.

It reads 4 bytes of each element and writes 4 (tf32: 8, bf16: 6), K contiguous and padded with zeros. At 4.3 TB/s (H200) that is
0.25 ms for both operands at 8192^2, where the product takes about 5 ms. The shifts of fp16x3 read the matrix a second time.
"""

from typing import Any, NamedTuple

from ...integers import ceil_div
from ...language.dot import bf16_to_fp32, round_to_tf32
from ...language.epilogue import rounded
from ...language.overlap import wait_for_earlier_kernels
from ...language.structs import Matrices
from ...language.tiles import span
from ...language.triton import tl, triton
from ...launch import TritonLaunch
from ...operations.matmul.schemes import SCHEMES, of_batch, room
from ...problem import needs_wide_offsets


class Planes(NamedTuple):
    """The planes of rows along K, contiguous and padded: (PLANES, BATCH, R, padded_k)."""

    ptr: Any
    plane: Any
    batch: Any
    row: Any

    @classmethod
    def of(cls, planes):
        return cls(planes, *planes.stride()[:3])


class Ranges(NamedTuple):
    """(BATCH, 3, R), as in schemes.room."""

    ptr: Any
    batch: Any

    @classmethod
    def of(cls, ranges):
        return None if ranges is None else cls(ranges, ranges.stride(0))


CONFIG = triton.Config({"BLOCK_R": 64, "BLOCK_K": 64}, num_warps=8, num_stages=1)


@triton.jit
def power_of_two(n):
    """2^n of an int32, -126 to 127."""
    return ((n + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def shifted(x, n):
    """x 2^n for n up to 254, |x| < 2^100 where n < -252; in two steps, as 2^n may be no FP32 number.

    Rounded once at most: the first step is exact, or its result becomes 0 in the second.
    """
    n = tl.maximum(n, -252)  # such an x becomes 0 all the same
    half = n >> 1
    return x * power_of_two(half) * power_of_two(n - half)


@triton.jit
def shift_of(largest):
    """The exponent that brings a number to [2^14, 2^15), given its bits as int32; that of 2^-126 for what is below."""
    return 141 - tl.maximum(largest >> 23, 1)


@triton.jit
def needed_to_refuse(largest, smallest, SMALL: tl.constexpr):
    """How many counted elements of another row it takes to refuse a product, given the bits of a row's extremes.

    0 if it may have its own. A row of zeros refuses nothing: its products are 0.
    """
    most = largest.to(tl.float32, bitcast=True)
    least = smallest.to(tl.float32, bitcast=True)
    ratio = tl.where(largest > 0, least / most, 1)
    has_none = (shifted(least, shift_of(largest)) >= SMALL) | (largest == 0)
    return tl.where(has_none, tl.minimum(ratio * 2.0**37, 2.0**30), 0).to(tl.int32)


@triton.jit
def _corner_of_patch(width, R, BLOCK_R: tl.constexpr, BLOCK_K: tl.constexpr, WIDE: tl.constexpr):
    """(batch, rows, ks) of a program's patch of (BATCH, R, width)."""
    patches_k = tl.cdiv(width, BLOCK_K)
    patches = tl.cdiv(R, BLOCK_R) * patches_k
    batch = tl.program_id(0) // patches
    patch = tl.program_id(0) % patches
    if WIDE:
        batch = batch.to(tl.int64)
    return batch, span(patch // patches_k * BLOCK_R, BLOCK_R, WIDE), span(patch % patches_k * BLOCK_K, BLOCK_K, WIDE)


@triton.jit
def _extremes_kernel(x: Matrices, ranges: Ranges, R, K, BLOCK_R: tl.constexpr, BLOCK_K: tl.constexpr, WIDE: tl.constexpr):
    """The first two lines of the ranges of x (BATCH, R, K); bits of |x| are in the order of the numbers."""
    wait_for_earlier_kernels()
    batch, rows, ks = _corner_of_patch(K, R, BLOCK_R, BLOCK_K, WIDE)
    inside = (rows < R)[:, None] & (ks < K)[None, :]
    x_ptrs = x.ptr + batch * x.batch + rows[:, None] * x.row + ks[None, :] * x.col
    bits = tl.load(x_ptrs, mask=inside, other=0).to(tl.int32, bitcast=True) & 0x7FFFFFFF
    largest = tl.max(tl.where(bits < 0x7F800000, bits, 0), axis=1)
    smallest = tl.max(tl.where(inside, bits ^ 0x7FFFFFFF, 0), axis=1)
    ranges_ptrs = ranges.ptr + batch * ranges.batch + rows
    tl.atomic_max(ranges_ptrs, largest, mask=rows < R)  # the same in any order
    tl.atomic_max(ranges_ptrs + R, smallest, mask=rows < R)


@triton.jit
def _split_kernel(
    x: Matrices,  # (BATCH, R, K)
    ranges: Ranges,  # of which it makes the third line; None where no rows are shifted
    planes: Planes,
    R, K, padded_k, BLOCK_R: tl.constexpr, BLOCK_K: tl.constexpr,
    PLANES: tl.constexpr, STEP: tl.constexpr, SMALLEST: tl.constexpr, LIMIT: tl.constexpr, SMALL: tl.constexpr,
    WEIGHT: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    wait_for_earlier_kernels()
    batch, rows, ks = _corner_of_patch(padded_k, R, BLOCK_R, BLOCK_K, WIDE)
    inside = (rows < R)[:, None] & (ks < K)[None, :]
    x_ptrs = x.ptr + batch * x.batch + rows[:, None] * x.row + ks[None, :] * x.col
    whole = tl.load(x_ptrs, mask=inside, other=0)
    rest = whole
    if ranges is not None:
        ranges_ptrs = ranges.ptr + batch * ranges.batch + rows
        largest = tl.load(ranges_ptrs, mask=rows < R, other=0)
        smallest = tl.load(ranges_ptrs + R, mask=rows < R, other=0) ^ 0x7FFFFFFF
        rest = shifted(whole, shift_of(largest)[:, None])
        counted = tl.sum(((tl.abs(rest) < SMALL) & (whole != 0)).to(tl.int32) * WEIGHT, axis=1)
        if tl.program_id(0) % tl.cdiv(padded_k, BLOCK_K) == 0:
            counted -= needed_to_refuse(largest, smallest, SMALL)
        tl.atomic_add(ranges_ptrs + R + R, counted, mask=(rows < R) & (counted != 0))
    finite = tl.abs(whole) < float("inf")
    planes_ptrs = planes.ptr + batch * planes.batch + rows[:, None] * planes.row + ks[None, :]
    inside = (rows < R)[:, None] & (ks < padded_k)[None, :]
    for number in tl.static_range(PLANES):
        part = high_part(whole, rest, SMALLEST, LIMIT) if number == 0 else rest
        plane, rest = split_off(part, rest, finite, planes.ptr.dtype.element_ty, STEP)
        tl.store(planes_ptrs, plane, mask=inside)
        planes_ptrs += planes.plane


@triton.jit
def high_part(whole, rest, SMALLEST: tl.constexpr, LIMIT: tl.constexpr):
    """What the high plane of `rest`, which is `whole` or that shifted, is rounded from."""
    smallest = tl.full((), SMALLEST, tl.float32)  # a denormal, which would be taken for FP64
    magnitude = tl.minimum(tl.maximum(tl.abs(rest), smallest), LIMIT)
    return tl.where((tl.abs(whole) < float("inf")) & (whole != 0), tl.where(whole < 0, -magnitude, magnitude), whole)


@triton.jit
def split_off(part, rest, finite, dtype: tl.constexpr, STEP: tl.constexpr):
    """(the plane that `part` is rounded to, what it leaves of `rest` for the next)."""
    plane = _in_plane(part, dtype)
    return plane, tl.where(finite, (rest - _in_fp32(plane)) * STEP, 0)


@triton.jit
def _in_plane(x, dtype: tl.constexpr):
    """FP32 rounded to nearest in a plane's type; FP32 itself holds tf32."""
    if dtype == tl.float32:
        return round_to_tf32(x)
    else:
        return rounded(x, dtype)


@triton.jit
def _in_fp32(plane):
    if plane.dtype == tl.bfloat16:
        return bf16_to_fp32(plane)
    else:
        return plane.to(tl.float32)


def split(matrix, precision):
    """(the launches that fill them, planes, ranges) of an FP32 matrix (batch, R, K), as in schemes.room."""
    once, planes, ranges = room(matrix, precision)
    return splitting(once, planes, ranges, precision), *of_batch(matrix, planes, ranges)


def splitting(matrix, planes, ranges, precision):
    """The launches that fill planes of an FP32 matrix (batch, R, K), of any strides but along K, and ranges."""
    scheme = SCHEMES[precision]
    (batch, r, k), padded_k = matrix.shape, planes.shape[-1]
    lines = batch * ceil_div(r, CONFIG.kwargs["BLOCK_R"])
    operands, wide = (Matrices.of(matrix), Ranges.of(ranges)), needs_wide_offsets(matrix, planes)
    launches = []
    if ranges is not None and matrix.numel():
        grid = (lines * ceil_div(k, CONFIG.kwargs["BLOCK_K"]),)
        launches.append(TritonLaunch(_extremes_kernel, grid, CONFIG, *operands, r, k, WIDE=wide))
    constants = {"PLANES": scheme.planes, "STEP": scheme.step, "SMALLEST": scheme.smallest, "LIMIT": scheme.limit}
    constants |= {"SMALL": scheme.small, "WEIGHT": scheme.weight}
    arguments = *operands, Planes.of(planes), r, k, padded_k
    grid = (lines * ceil_div(padded_k, CONFIG.kwargs["BLOCK_K"]),)
    launches.append(TritonLaunch(_split_kernel, grid, CONFIG, *arguments, **constants, WIDE=wide))
    return launches
