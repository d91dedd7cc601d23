"""FP32 matrices written once more as planes that tensor cores multiply exactly: x = high + low (+ lowest).

A tensor core multiplies numbers of 8 (bf16) or 11 bits (fp16, tf32) and FP32 has 24. Each plane is what is left of x,
rounded to nearest, so that two planes of 11 bits and their signs hold x to 2^-23 of it, and three of 8 bits hold it exactly:

    tf32x3          two tf32 planes, kept in FP32
    fp16x3          two fp16 planes of x 2^s, the low one times 2^11. The shift s, one for each row, brings the row's largest
                    finite element to [2^14, 2^15), so that nothing overflows; low parts are then as large as high ones, and
                    fp16's 5 bits of exponent reach 2^-50 below the largest element (Ootomo and Yokota, 2022)
    bf16x6, bf16x9  three bf16 planes

Infinities and NaN stand in the high plane, with 0 below them. The high plane of a number that is not 0 is not 0 either (it is
raised to the plane's smallest number, and the low plane makes up for it), so that infinity times it is infinity and not NaN.
fp16x3 counts those of a row that it raises: they are what it may lose.

It reads 4 bytes of each element and writes 4 (tf32: 8, bf16: 6), K contiguous and padded with zeros. At 4.3 TB/s (H200) that is
0.25 ms for both operands at 8192^2, where the product takes about 5 ms. The shifts of fp16x3 read the matrix a second time.
"""

import triton
import triton.language as tl

from ..language.dot import bf16_to_fp32, round_to_tf32
from ..language.epilogue import rounded
from ..language.tiles import span
from ..launch import TritonLaunch
from ..problem import needs_wide_offsets
from .schemes import SCHEMES, of_batch, room

CONFIG = triton.Config({"BLOCK_R": 64, "BLOCK_K": 64}, num_warps=8, num_stages=1)


@triton.jit
def power_of_two(n):
    """2^n of an int32, -126 to 127."""
    return ((n + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def shifted(x, n):
    """x 2^n for n up to 254, |x| < 2^100 where n < -252; in two steps, as 2^n may be no FP32 number.

    Rounded once at most: the first step is exact, or leaves what the second turns to 0.
    """
    n = tl.maximum(n, -252)  # such an x becomes 0 all the same
    half = n >> 1
    return x * power_of_two(half) * power_of_two(n - half)


@triton.jit
def shift_of(largest):
    """The exponent that brings a number to [2^14, 2^15), given its bits as int32; that of 2^-126 for what is below."""
    return 141 - tl.maximum(largest >> 23, 1)


@triton.jit
def needed_to_refuse(largest, smallest, SMALLEST: tl.constexpr):
    """How many raised elements of another row it takes to refuse a product, given the bits of a row's extremes.

    0 if it may have its own. A row of zeros refuses nothing: its products are 0.
    """
    most = largest.to(tl.float32, bitcast=True)
    least = smallest.to(tl.float32, bitcast=True)
    ratio = tl.where(largest > 0, least / most, 1)
    has_none = (shifted(least, shift_of(largest)) >= SMALLEST) | (largest == 0)
    return tl.where(has_none, tl.minimum(ratio * 2.0**38, 2.0**30), 0).to(tl.int32)


@triton.jit
def _extremes_kernel(
    x_ptr,  # (BATCH, R, K)
    ranges_ptr,  # (BATCH, 3, R), of which it makes the first two; bits of |x| are in the order of the numbers
    R,
    K,
    stride_xb,
    stride_xr,
    stride_xk,
    BLOCK_R: tl.constexpr,
    BLOCK_K: tl.constexpr,
    WIDE: tl.constexpr,
):
    tiles_k = tl.cdiv(K, BLOCK_K)
    tiles = tl.cdiv(R, BLOCK_R) * tiles_k
    batch = tl.program_id(0) // tiles
    tile = tl.program_id(0) % tiles
    rows = span(tile // tiles_k * BLOCK_R, BLOCK_R, WIDE)
    ks = span(tile % tiles_k * BLOCK_K, BLOCK_K, WIDE)
    if WIDE:
        batch = batch.to(tl.int64)
    inside = (rows < R)[:, None] & (ks < K)[None, :]
    x = tl.load(x_ptr + batch * stride_xb + rows[:, None] * stride_xr + ks[None, :] * stride_xk, mask=inside, other=0)
    bits = x.to(tl.int32, bitcast=True) & 0x7FFFFFFF
    largest = tl.max(tl.where(bits < 0x7F800000, bits, 0), axis=1)
    smallest = tl.max(tl.where(inside, bits ^ 0x7FFFFFFF, 0), axis=1)
    ranges_ptr += batch * 3 * R
    tl.atomic_max(ranges_ptr + rows, largest, mask=rows < R)  # the same in any order
    tl.atomic_max(ranges_ptr + R + rows, smallest, mask=rows < R)


@triton.jit
def _split_kernel(
    x_ptr,  # (BATCH, R, K)
    ranges_ptr,  # (BATCH, 3, R), of which it makes the third; None without SHIFTED
    planes_ptr,  # (PLANES, BATCH, R, padded_k), contiguous
    R,
    K,
    padded_k,
    stride_xb,
    stride_xr,
    stride_xk,
    stride_pp,
    stride_pb,
    BLOCK_R: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PLANES: tl.constexpr,
    STEP: tl.constexpr,
    SMALLEST: tl.constexpr,
    LIMIT: tl.constexpr,
    SHIFTED: tl.constexpr,
    WIDE: tl.constexpr,
):
    tiles_k = tl.cdiv(padded_k, BLOCK_K)
    tiles = tl.cdiv(R, BLOCK_R) * tiles_k
    batch = tl.program_id(0) // tiles
    tile = tl.program_id(0) % tiles
    rows = span(tile // tiles_k * BLOCK_R, BLOCK_R, WIDE)
    ks = span(tile % tiles_k * BLOCK_K, BLOCK_K, WIDE)
    if WIDE:
        batch = batch.to(tl.int64)
    inside = (rows < R)[:, None] & (ks < K)[None, :]
    x = tl.load(x_ptr + batch * stride_xb + rows[:, None] * stride_xr + ks[None, :] * stride_xk, mask=inside, other=0)
    rest = x
    if SHIFTED:
        ranges_ptr += batch * 3 * R
        largest = tl.load(ranges_ptr + rows, mask=rows < R, other=0)
        smallest = tl.load(ranges_ptr + R + rows, mask=rows < R, other=0) ^ 0x7FFFFFFF
        rest = shifted(x, shift_of(largest)[:, None])
        raised = tl.sum(((tl.abs(rest) < SMALLEST) & (x != 0)).to(tl.int32), axis=1)
        if tile % tiles_k == 0:
            raised -= needed_to_refuse(largest, smallest, SMALLEST)
        tl.atomic_add(ranges_ptr + R + R + rows, raised, mask=(rows < R) & (raised != 0))
    finite = tl.abs(x) < float("inf")
    planes_ptrs = planes_ptr + batch * stride_pb + rows[:, None] * padded_k + ks[None, :]
    inside = (rows < R)[:, None] & (ks < padded_k)[None, :]
    for number in tl.static_range(PLANES):
        part = rest
        if number == 0:
            smallest = tl.full((), SMALLEST, tl.float32)  # a denormal, which would be taken for FP64
            magnitude = tl.minimum(tl.maximum(tl.abs(rest), smallest), LIMIT)
            part = tl.where(finite & (x != 0), tl.where(x < 0, -magnitude, magnitude), x)
        plane = _in_plane(part, planes_ptr.dtype.element_ty)
        tl.store(planes_ptrs, plane, mask=inside)
        planes_ptrs += stride_pp
        rest = tl.where(finite, (rest - _in_fp32(plane)) * STEP, 0)


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
    scheme = SCHEMES[precision]
    once, planes, ranges = room(matrix, precision)
    batch, r, k = once.shape
    padded_k = planes.shape[-1]
    arguments = {
        "x_ptr": once,
        "ranges_ptr": ranges,
        "planes_ptr": planes,
        "R": r,
        "K": k,
        "padded_k": padded_k,
        **dict(zip(("stride_xb", "stride_xr", "stride_xk"), once.stride())),
        **dict(zip(("stride_pp", "stride_pb"), planes.stride())),
        "PLANES": scheme.planes,
        "STEP": scheme.step,
        "SMALLEST": scheme.smallest,
        "LIMIT": scheme.limit,
        "SHIFTED": scheme.shifted,
        "WIDE": needs_wide_offsets(once, planes),
    }
    covers = {_extremes_kernel: k, _split_kernel: padded_k} if scheme.shifted else {_split_kernel: padded_k}
    lines = batch * triton.cdiv(r, CONFIG.kwargs["BLOCK_R"])
    grids = {kernel: (lines * triton.cdiv(width, CONFIG.kwargs["BLOCK_K"]),) for kernel, width in covers.items()}
    launches = [TritonLaunch(kernel, grid, CONFIG, arguments) for kernel, grid in grids.items() if grid != (0,)]
    return launches, *of_batch(matrix, planes, ranges)
