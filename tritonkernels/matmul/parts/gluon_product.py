"""Shared by matmul's Gluon designs whose slices cp.async copies: fp32 on CUDA cores, fp64 on tensor cores.

The designs have the loop over slices, and define who holds which sums, who copies what and where it lies in shared memory
(Staging). Two things keep that loop to products. No copy in it has a mask: the last slice, which may exceed K, comes first, and
past the last row or column comes the last one again, as those sums are not stored. And a thread keeps an offset for each copy,
not a pointer, which would take two registers: ptxas would spill.

K may be split, as in split_k.py.
"""

from typing import Any, NamedTuple

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy

from ...config import config_of
from ...design import Design
from ...language.gluon_tile import Operand, Staging, distance, span, words_inside
from ...language.last_to_arrive import last_to_arrive
from ...language.renamed import copy_async
from ...language.tiles import known_multiples, multiple
from ...launch import TritonLaunch
from ...operations.gemm.split_counts import ALONE, counts_for, few_blocks, split_counts
from ...operations.matmul.work import as_they_lie, of_splits
from ...workspace import counters
from ..split_k import ADD_ROWS, ROOMY, addition_of_splits
from .arguments import WORKSPACES, Epilogue, Sizes, matmul_arguments
from .epilogue import store_tile
from .ranges_of_k import Splits, added_up, first_of, range_of_k
from .space import block_tile, count_tiles, shared_bytes
from .tile import tile_corner

WORD_BYTES = 16  # of the widest copy


class Words(NamedTuple):
    """Constants: how many rows of A, and columns of B, a copy has: those of a word of 16 bytes, or 1."""

    A: Any
    B: Any


@gluon.jit
def _offsets(x, first, BLOCK: gl.constexpr, BLOCK_K: gl.constexpr, LOAD: gl.constexpr, WORD: gl.constexpr, WIDE: gl.constexpr):
    """(offsets of a slice of an Operand from `first` on, its ks)"""
    across = words_inside(span(first, BLOCK, gl.SliceLayout(0, LOAD), WIDE), x.length, WORD)
    ks = span(0, BLOCK_K, gl.SliceLayout(1, LOAD), WIDE)[:, None]
    return across[None, :] * x.across + ks * x.k, ks


class Slices(NamedTuple):
    """An operand's slices: offsets of a slice's elements from its first one, and places in shared memory."""

    offsets: Any
    places: Any


@gluon.jit
def first_slices(
    a: Operand, b: Operand, row, col, length, how: Staging, words: Words,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr, WIDE: gl.constexpr,
):  # fmt: skip
    """Ask for the first STAGES - 1 slices of the tile at (row, col), of the first `length` of K.

    (number of slices, pointers to A and B of the next, Slices of A and of B)
    """
    STAGES: gl.constexpr = how.STAGES
    DTYPE: gl.constexpr = a.ptr.dtype.element_ty
    a_offsets, a_ks = _offsets(a, row, BLOCK_M, BLOCK_K, how.LOAD_A, words.A, WIDE)
    b_offsets, b_ks = _offsets(b, col, BLOCK_N, BLOCK_K, how.LOAD_B, words.B, WIDE)
    of_a = Slices(a_offsets, gl.allocate_shared_memory(DTYPE, [STAGES, BLOCK_K, BLOCK_M], how.SHARED_A))
    of_b = Slices(b_offsets, gl.allocate_shared_memory(DTYPE, [STAGES, BLOCK_K, BLOCK_N], how.SHARED_B))
    slices = gl.cdiv(gl.maximum(length, 1), BLOCK_K)
    last = (slices - 1) * BLOCK_K
    copy_async(of_a.places.index(0), a.ptr + distance(last, a.k, WIDE) + a_offsets, mask=a_ks < length - last)
    copy_async(of_b.places.index(0), b.ptr + distance(last, b.k, WIDE) + b_offsets, mask=b_ks < length - last)
    async_copy.commit_group()
    a_ptr = a.ptr
    b_ptr = b.ptr
    for s in gl.static_range(1, STAGES - 1):
        copy_slices(of_a, of_b, a_ptr, b_ptr, s, s < slices)
        a_ptr += distance(BLOCK_K, a.k, WIDE)
        b_ptr += distance(BLOCK_K, b.k, WIDE)
    return slices, a_ptr, b_ptr, of_a, of_b


@gluon.jit
def copy_slices(of_a: Slices, of_b: Slices, a_ptr, b_ptr, place, exist):
    """Ask for the slices at these pointers, if they exist: a group of copies, empty if not, so that waits can count groups."""
    a_ptrs = a_ptr + of_a.offsets  # outside of the branch: where K is 1 it is dead, and Triton 3.6 asks for their alignment
    b_ptrs = b_ptr + of_b.offsets
    if exist:
        copy_async(of_a.places.index(place), a_ptrs)
        copy_async(of_b.places.index(place), b_ptrs)
    async_copy.commit_group()


class Part(NamedTuple):
    """What a program multiplies: the tile at (row, col) of a matrix of the batch, over `length` of K from A's and B's first."""

    batch: Any
    row: Any
    col: Any
    a: Any
    b: Any
    length: Any


@gluon.jit
def part_of(
    a, b, sizes: Sizes, splits: Splits, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, GROUP_M: gl.constexpr, WIDE: gl.constexpr
):
    """The program's Part. splits is None where a program has all of K."""
    batch, row, col = tile_corner(gl.program_id(0), sizes, BLOCK_M, BLOCK_N, GROUP_M, WIDE)
    first_k, end_k = range_of_k(splits, gl.program_id(1), sizes.K)
    a = known_multiples(a, sizes.OF_A)
    b = known_multiples(b, sizes.OF_B)
    a_part = Operand(a.ptr + batch * a.batch + distance(first_k, a.col, WIDE), a.col, a.row, sizes.M)
    b_part = Operand(b.ptr + batch * b.batch + distance(first_k, b.row, WIDE), b.row, b.col, sizes.N)
    length = multiple(end_k - first_k, sizes.OF_SIZES[2])
    return Part(batch, row, col, a_part, b_part, length)


@gluon.jit
def store_part(
    acc, part: Part, scale_a, scale_b, c, bias, out, sizes: Sizes, epilogue: Epilogue, splits: Splits, counters,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, WIDE: gl.constexpr,
):  # fmt: skip
    """Write a Part's sums. Scales, c and bias may be None. counters: (TILES,) zeros that count finished splits; None: a second
    kernel adds them."""
    OF_ROWS: gl.constexpr = gl.SliceLayout(1, acc.type.layout)
    OF_COLS: gl.constexpr = gl.SliceLayout(0, acc.type.layout)
    rows = span(part.row, BLOCK_M, OF_ROWS, WIDE)
    cols = span(part.col, BLOCK_N, OF_COLS, WIDE)
    if splits is None:
        store_tile(acc, scale_a, scale_b, c, bias, out, part.batch, rows, cols, sizes, epilogue)
    else:
        tile = gl.program_id(0)
        within = gl.arange(0, BLOCK_M, OF_ROWS)[:, None] * BLOCK_N + gl.arange(0, BLOCK_N, OF_COLS)[None, :]
        place = first_of(splits, tile, BLOCK_M, BLOCK_N) + within
        gl.store(place + gl.program_id(1) * (BLOCK_M * BLOCK_N), acc)
        if counters is not None:  # noqa: SIM102  known when this is compiled, unlike the other
            if last_to_arrive(counters + tile, splits.SPLIT_K):
                total = added_up(splits, place, BLOCK_M * BLOCK_N)
                store_tile(total, scale_a, scale_b, c, bias, out, part.batch, rows, cols, sizes, epilogue)


def in_words(t, along):
    """Whether all words along rows (1) or K (2) of an operand (batch, rows, K) are aligned, of rows inside or outside."""
    width = WORD_BYTES // t.itemsize
    others = [stride for dim, (size, stride) in enumerate(zip(t.shape, t.stride())) if dim != along and size > 1]
    whole = along == 2 or t.shape[1] % width == 0
    return whole and t.stride(along) == 1 and not any(x % width for x in others) and t.data_ptr() % WORD_BYTES == 0


def product_design(kernel, tiles, refuses, sums, stored, reduced):
    """The Design of a kernel and its `tiles` (BLOCK_M, BLOCK_N, BLOCK_K, num_warps, num_stages).

    sums     config -> the layout of the sums
    stored   (config, operand (batch, rows, K), rows of a slice) -> (LOAD, SHARED, rows of a copy)
    reduced  problem -> the problem that it computes
    """

    def fitting(problem, target):
        """Tiles that fit, without those of which more than half would be for nothing; thinner ones than 32 if one is enough."""
        for m, n, k, num_warps, stages in tiles:
            fits = shared_bytes((m, n, k * problem.dtype.itemsize, num_warps, stages)) <= target.shared_per_block
            if fits and all(min(32, whole) <= tile < 2 * max(32, whole) for tile, whole in ((m, problem.m), (n, problem.n))):
                yield {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": 8}, num_warps, stages

    def configs(problem, target):
        """First without splits of K. With all registers: left alone, ptxas may spill for one more block on an SM."""
        found = [(*tile, count_tiles(problem, tile[0], problem.batch)) for tile in fitting(problem, target)]
        for numbers, num_warps, stages, _ in found:
            yield config_of(numbers | {"SPLIT_K": 1}, num_warps, stages, ROOMY)
        powers = split_counts(min((count for *_, count in found), default=0), problem.k, target)
        for numbers, num_warps, stages, count in found:
            for splits in counts_for(count, powers, problem, numbers["BLOCK_K"], target):
                if few_blocks(splits * count, target):
                    yield config_of(numbers | {"SPLIT_K": splits}, num_warps, stages, ROOMY)

    def launches(problem, config, a, b, c, bias, out):
        problem, numbers = reduced(problem), config.kwargs
        split_k, count = numbers["SPLIT_K"], count_tiles(problem, numbers, out.shape[0])
        splits = Splits.of(count, problem.k, config, WORKSPACES[problem.accumulate], out.device) if split_k > 1 else None
        last_adds = splits is not None and splits.ptr[:1].nbytes <= ALONE
        load_a, shared_a, rows = stored(config, a, numbers["BLOCK_M"])
        load_b, shared_b, columns = stored(config, b.mT, numbers["BLOCK_N"])
        staging = Staging(*map(gl.constexpr, (config.num_stages, sums(config), load_a, load_b, shared_a, shared_b)))
        words = Words(gl.constexpr(rows), gl.constexpr(columns))
        arguments = matmul_arguments(problem, a, b, c, bias, out)
        zeros = counters(count, out) if last_adds else None
        yield TritonLaunch(kernel, (count, split_k), config, *arguments, splits, zeros, staging, words)
        if splits is not None and not last_adds:
            yield addition_of_splits(config, splits, count, arguments[2:])

    def work(problem, config, target):
        return of_all_splits(reduced(problem), config, target)

    of_all_splits = of_splits(_tile, as_they_lie, ALONE, ADD_ROWS)
    return Design(refuses=refuses, configs=configs, launches=launches, work=work, tile=block_tile, reduced=reduced)


def _tile(config):
    return block_tile(config) | {"splits": config.kwargs["SPLIT_K"], "freed": False}  # a slice is read in parts
