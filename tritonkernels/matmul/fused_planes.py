"""FP32 matrix product on tensor cores, fused planes (tl.dot): `planes` without its copies. A program splits what it loads.

`planes` splits both operands once, in memory, which costs two launches and 8 bytes of each element written (6 in bf16) and read
again for 4 that are read anyway. Where a product reads its operands once or twice that is most of its time. Here a slice of
FP32 is loaded as it lies and split in registers, by every program that reads it: some 8 instructions a number on CUDA cores,
which limit large products. They remain for `planes`.

Planes, products and sums are those of planes.py: plane 0 times plane 0 over BLOCK_K products, added by FADD, corrections apart.
So is the bound. fp16x3 shifts rows by their largest element, which no slice knows, and is for `planes` alone.

Mirrors cuda_reference/matmul/fused_planes.cuh.
"""

from typing import Any, NamedTuple

import torch

from ..config import config_of
from ..design import Design
from ..integers import next_power_of_2
from ..language.dot import faithful_dot
from ..language.last_to_arrive import last_to_arrive
from ..language.on_target import lacks_products
from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Matrices, Vector
from ..language.tiles import known_multiples, multiple, span
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from ..numerics import SLICE
from ..operations.gemm.split_counts import ALONE, counts_for, split_counts
from ..operations.matmul.schemes import SCHEMES, cannot_fuse
from ..operations.matmul.work import of_splits
from ..problem import needs_wide_offsets
from ..workspace import counters
from .parts.arguments import Epilogue, Sizes, epilogue_of, result_arguments, sizes_of
from .parts.epilogue import store_tile
from .parts.fp32_planes import high_part, split_off
from .parts.ranges_of_k import Splits, added_up, place_of, range_of_k
from .parts.space import block_tile, count_tiles
from .parts.tile import tile_corner
from .split_k import ADD_ROWS, addition_of_splits


class Split(NamedTuple):
    """Constants: the planes' precision, "tf32" or "bf16", and how many there are; which products are corrections, planes i of A
    and j of B with i + j from 1 to DEPTH; the least and the largest number of a plane; whether offsets need 64 bits."""

    PRECISION: Any
    PLANES: Any
    DEPTH: Any
    SMALLEST: Any
    LIMIT: Any
    WIDE: Any


@triton.jit
def _planes_of(whole, how):
    """The planes of a slice; of two the third is the second again."""
    PLANE: tl.constexpr = tl.float32 if how.PRECISION == "tf32" else tl.bfloat16
    finite = tl.abs(whole) < float("inf")
    high, rest = split_off(high_part(whole, whole, how.SMALLEST, how.LIMIT), whole, finite, PLANE, 1.0)
    middle, rest = split_off(rest, rest, finite, PLANE, 1.0)
    if how.PLANES == 2:
        return high, middle, middle
    else:
        low, rest = split_off(rest, rest, finite, PLANE, 1.0)
        return high, middle, low


@triton.jit
def _add_product(a, b, acc, how):
    return faithful_dot(a, b, acc, how.PRECISION, ARE_TF32=True)


@triton.jit
def _fused_kernel(
    a: Matrices, b: Matrices, c: Matrices, bias: Vector, out: Matrices,
    sizes: Sizes, epilogue: Epilogue, how: Split, splits: Splits, counters,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """c and bias may be None; so is splits where a program has all of K. counters: (TILES,) zeros that count finished splits;
    None: a second kernel adds them."""
    wait_for_earlier_kernels()
    tile = tl.program_id(0)
    split = tl.program_id(1)
    batch, row, col = tile_corner(tile, sizes, BLOCK_M, BLOCK_N, GROUP_M, how.WIDE)
    rows = span(row, BLOCK_M, how.WIDE)
    cols = span(col, BLOCK_N, how.WIDE)
    first_k, end_k = range_of_k(splits, split, sizes.K)
    a = known_multiples(a, sizes.OF_A)
    b = known_multiples(b, sizes.OF_B)
    end_k = multiple(end_k, sizes.OF_SIZES[2])
    a_rows = a.ptr + batch * a.batch + rows[:, None] * a.row
    b_cols = b.ptr + batch * b.batch + cols[None, :] * b.col
    a_inside = (rows < multiple(sizes.M, sizes.OF_SIZES[0]))[:, None]
    b_inside = (cols < multiple(sizes.N, sizes.OF_SIZES[1]))[None, :]
    main = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    corrections = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(first_k, end_k, BLOCK_K):
        ks = span(k, BLOCK_K, how.WIDE)
        inside = ks < end_k
        a_slice = tl.load(a_rows + ks[None, :] * a.col, mask=a_inside & inside[None, :], other=0.0)
        b_slice = tl.load(b_cols + ks[:, None] * b.row, mask=b_inside & inside[:, None], other=0.0)
        a_high, a_middle, a_low = _planes_of(a_slice, how)
        b_high, b_middle, b_low = _planes_of(b_slice, how)
        slice_sum = _add_product(a_high, b_high, tl.zeros((BLOCK_M, BLOCK_N), tl.float32), how)
        main = tl.fma(slice_sum, 1.0, main)  # main += slice_sum would be folded into the dot's own accumulator
        if how.DEPTH == 4:  # the smallest products first
            corrections = _add_product(a_low, b_low, corrections, how)
            corrections = _add_product(a_low, b_middle, corrections, how)
            corrections = _add_product(a_middle, b_low, corrections, how)
        if how.DEPTH >= 2:
            corrections = _add_product(a_low, b_high, corrections, how)
            corrections = _add_product(a_middle, b_middle, corrections, how)
            corrections = _add_product(a_high, b_low, corrections, how)
        corrections = _add_product(a_middle, b_high, corrections, how)
        corrections = _add_product(a_high, b_middle, corrections, how)
    acc = tl.where(tl.abs(main) < float("inf"), main + corrections, main)  # infinity times a low plane may be NaN
    if splits is None:
        store_tile(acc, None, None, c, bias, out, batch, rows, cols, sizes, epilogue)
    else:
        place = place_of(splits, tile, 0, BLOCK_M, BLOCK_M, BLOCK_N)
        tl.store(place + split * (BLOCK_M * BLOCK_N), acc)
        adds = last_to_arrive(counters + tile, splits.SPLIT_K) if counters is not None else False
        if adds:
            total = added_up(splits, place, BLOCK_M * BLOCK_N)
            store_tile(total, None, None, c, bias, out, batch, rows, cols, sizes, epilogue)


# (BLOCK_M, BLOCK_N, BLOCK_K, num_warps, num_stages) by the number of planes: fragments of three of them leave fewer registers
TILES = {2: ((128, 64, 32, 8, 3), (64, 64, 32, 4, 4)), 3: ((128, 64, 32, 8, 3), (64, 32, 32, 4, 4))}
THIN = ((32, 64, 32, 4, 4), (16, 64, 64, 4, 4), (64, 32, 32, 4, 4), (64, 16, 64, 4, 4))  # for few rows or columns


def configs(problem, target):
    """Tiles whose slices fit, with what the planes of one take; thin ones where they cover the rows or columns."""
    if not target.is_gpu:
        block_m, block_n = (min(256, next_power_of_2(max(16, size))) for size in (problem.m, problem.n))
        yield from _of_tile({"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": SLICE, "GROUP_M": 1}, problem, target)
    scheme = SCHEMES[problem.precision]
    thin = [tile for tile in THIN if tile[0] >= min(64, problem.m) and tile[1] >= min(64, problem.n)]
    for block_m, block_n, block_k, num_warps, num_stages in dict.fromkeys((*TILES[scheme.planes], *thin)):
        room = (block_m + block_n) * block_k * (4 * num_stages + scheme.planes * scheme.dtype.itemsize)
        if not target.is_gpu or room <= target.shared_per_block:
            numbers = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k, "GROUP_M": 8}
            yield from _of_tile(numbers, problem, target, num_warps=num_warps, num_stages=num_stages)


def _of_tile(numbers, problem, target, **options):
    """A config for each number of splits."""
    tiles = count_tiles(problem, numbers, problem.batch)
    powers = split_counts(tiles, problem.k, target)
    for split_k in (1, *counts_for(tiles, powers, problem, numbers["BLOCK_K"], target)):
        yield config_of(numbers | {"SPLIT_K": split_k}, **options)


def launches(problem, config, a, b, c, bias, out):
    scheme, split_k = SCHEMES[problem.precision], config.kwargs["SPLIT_K"]
    wide = needs_wide_offsets(a, b, c, bias, out)
    constants = problem.precision[:4], scheme.planes, scheme.depth, scheme.smallest, scheme.limit, wide
    tiles = count_tiles(problem, config.kwargs, out.shape[0])
    splits = Splits.of(tiles, problem.k, config, torch.float32, out.device) if split_k > 1 else None
    last_adds = splits is not None and splits.ptr[:1].nbytes <= ALONE
    sizes = sizes_of(problem, problem.k, a, b, c, out)
    result = *result_arguments(c, bias, out), sizes, epilogue_of(problem), Split(*map(tl.constexpr, constants))
    zeros = counters(tiles, out) if last_adds else None
    yield TritonLaunch(_fused_kernel, (tiles, split_k), config, Matrices.of(a), Matrices.of(b), *result, splits, zeros)
    if splits is not None and not last_adds:
        yield addition_of_splits(config, splits, tiles, (None, None, *result))


def refuses(problem, target):
    if target.vendor == "amd":
        return cannot_fuse(problem) or lacks_products(problem.precision[:4], target)
    return cannot_fuse(problem) or target.lacks("bf16 and tf32 into fp32 by one instruction", 80)


def tile(config):
    return block_tile(config) | {"splits": config.kwargs["SPLIT_K"]}


WORK = of_splits(tile, lambda problem, config: (False, False), ALONE, ADD_ROWS)
DESIGN = Design(refuses=refuses, configs=configs, launches=launches, work=WORK, tile=block_tile)
