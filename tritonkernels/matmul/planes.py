"""FP32 matrix product on tensor cores, planes (tl.dot): operands split once (fp32_planes.py), then a product over the planes.

With A = A0 + A1 and B = B0 + B1, A B = A0 B0 + (A1 B0 + A0 B1) + A1 B1, each a product of numbers that tensor cores multiply
exactly; the last is below 2^-22 of the first and left out (tf32x3, fp16x3). Three planes give 6 products (bf16x6) or all 9
(bf16x9). tl.dot's own tf32x3 and bf16x6 split inside the loop over K, each tile once per block that reads it, and the CUDA
cores that do it are the limit; here the loop only multiplies: peak 989 / 3 = 330 TFLOP/s on an H200, 67 without tensor cores.

Tensor cores chop sums where CUDA cores round them, a bias that grows with K. So A0 B0 is added up over BLOCK_K products only,
and these sums are added to an FP32 one by FADD, to nearest, behind the next 2 (5, 8) products: BLOCK_K is 32 or 64, and the
bound is below SGEMM's from K = 256 on. The corrections are 2^-10 (2^-7) of the whole, so the chopping of their own accumulator
does not count. Keeping them apart is also what keeps infinities right: infinity times a low plane may be NaN, and where A0 B0
is not finite it alone is the result.

Three accumulators are 192 registers per thread in a tile of 128 x 128, which fits where instructions read operands from shared
memory. A slice of each plane is loaded once for all its products: 4 tiles for 3, 6 for 6 or 9, where one product takes 2.

Where M and N are small and K is large, SPLIT_K programs share a tile, as in split_k.py: each adds up its own slices and their
corrections, and the last to finish adds these sums in the order of K, of 256 KB at most, in the same launch. The rule by which
fp16x3 refuses a product is for all of K, and so are the shifts of its rows: both come after this sum. The bound is that of one
program, which adds up all slices one after the other: no element is in more roundings.

After H. Ootomo and R. Yokota, Recovering single precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak
performance, 2022, who split inside the kernel and scale the low parts, but no rows.
"""

from typing import Any, NamedTuple

import torch

from ..design import Design
from ..integers import next_power_of_2
from ..language.dot import faithful_dot
from ..language.last_to_arrive import last_to_arrive
from ..language.on_target import lacks_products
from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Matrices, Vector
from ..language.tiles import span
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from ..numerics import SLICE
from ..operations.matmul.schemes import SCHEMES, apart
from ..operations.matmul.work import of_planes
from ..problem import needs_wide_offsets
from ..workspace import counters
from .parts.again import again
from .parts.arguments import Epilogue, Sizes, epilogue_of, result_arguments, sizes_of
from .parts.epilogue import store_tile
from .parts.fp32_planes import Planes, Ranges, shift_of, shifted, split
from .parts.ranges_of_k import Splits, added_up, place_of, range_of_k, split_configs
from .parts.space import block_tile, count_tiles
from .parts.tile import tile_corner


class Products(NamedTuple):
    """Constants: the planes' precision, "tf32", "fp16" or "bf16"; which products are corrections, planes i of A and j of B with
    i + j from 1 to DEPTH; what a lower plane is multiplied by; whether offsets need 64 bits."""

    PRECISION: Any
    PLANES: Any
    DEPTH: Any
    STEP: Any
    WIDE: Any


@triton.jit
def _planes_kernel(
    a: Planes, b: Planes, a_ranges: Ranges, b_ranges: Ranges, c: Matrices, bias: Vector, out: Matrices,
    sizes: Sizes, epilogue: Epilogue, how: Products, splits: Splits, counters,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """a (PLANES, BATCH, M, K) and b (PLANES, BATCH, N, K), padded along K, which is contiguous; sizes.K is the planes'. Ranges
    are None where no rows are shifted; c and bias may be None. counters: (TILES,) zeros that count finished splits, None with
    splits if a program has all of K."""
    wait_for_earlier_kernels()
    tile = tl.program_id(0)
    split = tl.program_id(1)
    batch, row, col = tile_corner(tile, sizes, BLOCK_M, BLOCK_N, GROUP_M, how.WIDE)
    rows = span(row, BLOCK_M, how.WIDE)
    cols = span(col, BLOCK_N, how.WIDE)
    first_k, end_k = range_of_k(splits, split, sizes.K)
    ks = first_k + tl.arange(0, BLOCK_K)
    # Nothing is masked in the loop: planes are padded along K, and rows past the last read it again and are not stored
    a_ptrs = a.ptr + batch * a.batch + tl.minimum(rows, sizes.M - 1)[:, None] * a.row + ks[None, :]
    b_ptrs = b.ptr + batch * b.batch + tl.minimum(cols, sizes.N - 1)[None, :] * b.row + ks[:, None]
    a_plane = tl.cast(a.plane, tl.int64)  # of 2^30 elements or more, the third is beyond 32 bits
    b_plane = tl.cast(b.plane, tl.int64)
    main = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    corrections = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(first_k, end_k, BLOCK_K):
        zeros = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        slice_sum = faithful_dot(tl.load(a_ptrs), tl.load(b_ptrs), zeros, how.PRECISION, ARE_TF32=True)
        main = tl.fma(slice_sum, 1.0, main)  # main += slice_sum would be folded into the dot's own accumulator
        for both in tl.static_range(how.DEPTH, 0, -1):  # the smallest products first
            for i in tl.static_range(how.PLANES - 1, -1, -1):
                if both >= i and both < i + how.PLANES:  # a plane loaded twice is loaded once: the compiler sees it
                    a_slice = tl.load(a_ptrs + i * a_plane)
                    b_slice = tl.load(b_ptrs + (both - i) * b_plane)
                    corrections = faithful_dot(a_slice, b_slice, corrections, how.PRECISION, ARE_TF32=True)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    acc = tl.where(tl.abs(main) < float("inf"), main + corrections * (1 / how.STEP), main)
    if splits is None:
        _finish(acc, a_ranges, b_ranges, c, bias, out, batch, rows, cols, sizes, epilogue)
    else:
        place = place_of(splits, tile, 0, BLOCK_M, BLOCK_M, BLOCK_N)
        tl.store(place + split * (BLOCK_M * BLOCK_N), acc)
        if last_to_arrive(counters + tile, splits.SPLIT_K):
            total = added_up(splits, place, BLOCK_M * BLOCK_N)
            _finish(total, a_ranges, b_ranges, c, bias, out, batch, rows, cols, sizes, epilogue)


@triton.jit
def _finish(acc, a_ranges, b_ranges, c, bias, out, batch, rows, cols, sizes, epilogue):
    """Refuse what may have lost too much, shift rows and columns back, and store the tile."""
    if a_ranges is not None:
        a_largest = a_ranges.ptr + batch * a_ranges.batch + rows
        b_largest = b_ranges.ptr + batch * b_ranges.batch + cols
        a_counted = tl.load(a_largest + sizes.M + sizes.M, mask=rows < sizes.M, other=0)
        b_counted = tl.load(b_largest + sizes.N + sizes.N, mask=cols < sizes.N, other=0)
        if tl.maximum(tl.max(a_counted, axis=0), tl.max(b_counted, axis=0)) > 0:
            acc = refused(acc, a_counted.to(tl.float32)[:, None], b_counted.to(tl.float32)[None, :])
        a_shift = shift_of(tl.load(a_largest, mask=rows < sizes.M, other=0))
        b_shift = shift_of(tl.load(b_largest, mask=cols < sizes.N, other=0))
        acc = shifted(acc, -(a_shift[:, None] + b_shift[None, :]))
    store_tile(acc, None, None, c, bias, out, batch, rows, cols, sizes, epilogue)


@triton.jit
def refused(acc, a_counted, b_counted):
    """NaN for those of a tile's sums of shifted planes of which too much may be lost: the rule of docs/numerics.md."""
    many = tl.maximum(a_counted, 0) + tl.maximum(b_counted, 0) > tl.abs(acc) * 2.0**8
    return tl.where(many & (a_counted + b_counted > 0), float("nan"), acc)


# (BLOCK_M, BLOCK_N, num_warps), biggest tile first
TILES = ((128, 128, 8), (128, 64, 8), (64, 64, 8), (32, 64, 4), (16, 64, 4))
# (architecture, precision) -> the tile that spills there, although its accumulators fit
SPILLS = {(90, "bf16x9"): (128, 128, 8), (100, "tf32x3"): (128, 64, 8)}
SPILLS_WIDE = {(100, "fp16x3"): (128, 128, 8), (100, "fp32"): (128, 128, 8)}  # with offsets of 64 bits


def slices(tile, problem, target):
    """(bytes of K in a row of a slice, slices in shared memory): up to 4, fewer than 2 where the tile does not fit.

    192 accumulators per thread fit only where the instruction reads its operands from shared memory: wgmma (sm_90) and tcgen05
    (sm_100). mma wants the operands in registers, those of three planes with half as much K.
    """
    block_m, block_n, num_warps = tile
    planes = SCHEMES[problem.precision].planes
    operands_in_shared = target.arch in (90, 100) or not target.is_gpu
    k_bytes = 128 if operands_in_shared or planes == 2 else 64  # 128: what the widest swizzle of shared memory spans
    if not target.is_gpu:
        return k_bytes, 4
    per_thread = 3 * block_m * block_n / (target.warp_size * num_warps)
    copied = target.arch == 100 and planes == 3 and block_m > 32  # tcgen05: Triton copies a plane for each of its products
    spilling = SPILLS | (SPILLS_WIDE if problem.wide else {})
    if per_thread > (192 if operands_in_shared else 96) or copied or spilling.get((target.arch, problem.precision)) == tile:
        return k_bytes, 0
    return k_bytes, min(4, target.shared_per_block // (planes * (block_m + block_n) * k_bytes))


def configs(problem, target):
    if not target.is_gpu:
        block_m, block_n = (min(256, next_power_of_2(max(16, size))) for size in (problem.m, problem.n))
        yield from split_configs({"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": SLICE, "GROUP_M": 1}, problem, target)
    for tile in TILES:
        k_bytes, stages = slices(tile, problem, target)
        if stages < 2:
            continue
        block_m, block_n, num_warps = tile
        numbers = {"BLOCK_M": block_m, "BLOCK_N": block_n, "GROUP_M": 8}
        numbers["BLOCK_K"] = k_bytes // SCHEMES[problem.precision].dtype.itemsize
        yield from split_configs(numbers, problem, target, num_warps=num_warps, num_stages=stages)


def launches(problem, config, a, b, c, bias, out, b_planes=None, b_ranges=None):
    split_a, a_planes, a_ranges = split(a, problem.precision)
    if problem.b_split:
        split_b, b_planes = (), apart(b_planes, problem.precision)
    else:
        split_b, b_planes, b_ranges = split(b.mT, problem.precision)
    yield from (*split_a, *split_b)
    scheme, split_k = SCHEMES[problem.precision], config.kwargs["SPLIT_K"]
    wide = needs_wide_offsets(a_planes, b_planes, c, bias, out)
    constants = scheme.unit, scheme.planes, scheme.depth, scheme.step, wide
    tiles, k = count_tiles(problem, config.kwargs, out.shape[0]), a_planes.shape[-1]
    yield TritonLaunch(
        _planes_kernel,
        (tiles, split_k),
        config,
        Planes.of(a_planes),
        Planes.of(b_planes),
        Ranges.of(a_ranges),
        Ranges.of(b_ranges),
        *result_arguments(c, bias, out),
        sizes_of(problem, k, None, None, c, out),
        epilogue_of(problem),
        Products(*map(tl.constexpr, constants)),
        Splits.of(tiles, k, config, torch.float32, out.device) if split_k > 1 else None,
        counters(tiles, out) if split_k > 1 else None,
    )
    if scheme.again:
        yield again(problem, a, b, c, bias, out, a_ranges, b_ranges)


def refuses(problem, target):
    if problem.precision not in SCHEMES:
        return f"it multiplies float32 as {', '.join(SCHEMES)}, not {problem.precision}"
    if target.vendor == "amd":
        return lacks_products(SCHEMES[problem.precision].unit, target)
    return target.lacks("fp16, bf16 and tf32 into fp32 by one instruction", 80)


def tile(config):
    return block_tile(config) | {"splits": config.kwargs["SPLIT_K"]}


WORK = of_planes(tile, in_groups=False)
DESIGN = Design(refuses=refuses, configs=configs, launches=launches, work=WORK, tile=block_tile, reads_split=True)
