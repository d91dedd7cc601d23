"""GEMV, transposed: A with contiguous columns, as a.t() of a row-major matrix has them; x^T A without transposing.

A thread owns V neighbouring rows of the result and walks columns of A with one x for all: loads are coalesced and 128 bits
wide, UNROLL of them in flight, and no sum crosses threads until the end. LANES threads side by side own a tile of rows; the
others of the program take a share of its columns each. Narrow tiles make many programs and few partial sums; 8 lanes read a
line of 128 bytes. If there are still few tiles, N is split over programs too, and the last to arrive adds the partial sums up
in a fixed order (as in `split_n`).

Mirrors cuda_reference/gemv/transposed.cuh.
"""

from typing import Any, NamedTuple

from ..config import config_of
from ..design import Design
from ..integers import ceil_div, next_power_of_2
from ..language.last_to_arrive import last_to_arrive, sum_of_splits
from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Matrices, Vector, Vectors
from ..language.tiles import span
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from ..operations.gemv.shapes import BLOCK, UNROLL, streams, tile_of_columns
from ..operations.gemv.vectors import cut, full_vector, pitch
from ..operations.gemv.work import along_columns, column_vector
from ..workspace import counters, partial_sums
from .parts.row_tile import REGISTERS, store_rows, within
from .parts.structs import Addend, Splits, alpha_of, results


class Columns(NamedTuple):
    """The columns of a matrix: `vectors` of V rows (a constant), in which the stride from column to column is counted too."""

    count: Any
    vectors: Any
    V: Any


@triton.jit
def _transposed_kernel(
    a: Matrices, x: Vectors, y: Addend, scale: Vector, out: Vectors, columns: Columns, splits: Splits, counters_ptr, alpha,
    LANES: tl.constexpr, DEPTH: tl.constexpr, UNROLL: tl.constexpr, STREAMS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """LANES vectors of rows and DEPTH columns side by side. Partial sums are (splits, rows of all programs), counters one a
    program; both are None where N is not split. STREAMS: A is the first to leave the caches. WIDE: offsets need 64 bits."""
    wait_for_earlier_kernels()
    BLOCK_M: tl.constexpr = LANES * columns.V
    SUMS: tl.constexpr = tl.float64 if x.ptr.dtype.element_ty == tl.float64 else tl.float32
    POLICY: tl.constexpr = "evict_first" if STREAMS else ""
    program = tl.program_id(0)
    tiles = tl.cdiv(columns.vectors, LANES)
    batch = (program // tiles).to(tl.int64 if WIDE else tl.int32)
    m = span(program % tiles * BLOCK_M, BLOCK_M, WIDE)
    valid = m < columns.vectors * columns.V
    first = tl.program_id(1) * splits.share
    last = tl.minimum(first + splits.share, columns.count)
    a_rows = a.ptr + batch * a.batch * columns.V + m * a.row
    x_ptr = x.ptr + batch * x.batch
    partial = tl.zeros((DEPTH, BLOCK_M), SUMS)
    for n in range(first, last, DEPTH * UNROLL):
        for step in tl.static_range(UNROLL):
            cols = span(n + step * DEPTH, DEPTH, WIDE)
            a_ptrs = a_rows[None, :] + (cols * a.col)[:, None] * columns.V
            inside = (cols < last)[:, None] & valid[None, :]
            of_a = tl.load(a_ptrs, mask=inside, other=0, eviction_policy=POLICY)
            of_x = tl.load(x_ptr + cols * x.step, mask=cols < last, other=0)
            partial += of_a.to(SUMS) * of_x.to(SUMS)[:, None]
    sums = tl.sum(partial, axis=0)
    if splits.ptr is None:
        store_rows(sums, valid, batch, m, y, scale, out, alpha)
    else:
        width = tl.num_programs(0).to(tl.int64) * BLOCK_M
        place = splits.ptr + program.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
        tl.store(place + tl.program_id(1) * width, sums, mask=valid)
        if last_to_arrive(counters_ptr + program, tl.num_programs(1)):
            sums = sum_of_splits(place, valid, tl.num_programs(1), width, DEPTH)
            store_rows(sums, valid, batch, m, y, scale, out, alpha)


def configs(problem, target):
    """Splits that fill the GPU, half and twice as many, 1 and 4. The interpreter pays by the operation: large tiles.

    Half the threads with twice the loads each do as much with fewer partial sums, but for a tile that has an SM to itself.
    """
    if not target.is_gpu:
        quads = ceil_div(problem.m, full_vector(problem.a_dtype))
        for splits in (2, 1):
            yield _config(problem, target, within(quads, 128), within(problem.n, 128), 1, splits)
        return
    lanes, threads, best = tile_of_columns(problem, target)
    shapes = ((threads, UNROLL),) if threads > BLOCK or lanes == BLOCK else ((BLOCK // 2, 2 * UNROLL), (BLOCK, UNROLL))
    for splits in dict.fromkeys((best, 1, 4, max(1, best // 2), 2 * best)):
        for threads, unroll in shapes:
            depth = threads // lanes
            rounds = next_power_of_2(max(1, problem.n // (depth * splits)))
            yield _config(problem, target, lanes, depth, min(unroll, rounds), splits)


def _config(problem, target, lanes, depth, unroll, splits):
    """A config with registers for the loads in flight, and for BLOCKS_AT_ONCE where these are few."""
    numbers = {"LANES": lanes, "DEPTH": depth, "UNROLL": unroll, "SPLITS": splits, "STREAMS": streams(problem, target)}
    registers = REGISTERS if unroll > UNROLL else REGISTERS // 2
    return config_of(numbers, num_warps=max(1, lanes * depth // target.warp_size), num_stages=1, maxnreg=registers)


def launches(problem, config, a, x, y, scale, out):
    (batch, m, n), count, pieces = a.shape, config.kwargs["SPLITS"], cut(a.mT, may_have_head=False)
    width, rows = pieces.width, config.kwargs["LANES"] * pieces.width
    programs = batch * ceil_div(m, rows)
    splits = Splits(partial_sums(count, programs * rows, out) if count > 1 else None, ceil_div(n, count))
    matrices = Matrices(a, pitch(a, 0, width), a.stride(1), pitch(a, 2, width))
    operands = matrices, Vectors.of(x), *results(problem, y, scale, out), Columns(n, pieces.vectors, tl.constexpr(width))
    arguments = *operands, splits, counters(programs, out) if count > 1 else None, alpha_of(problem)
    yield TritonLaunch(_transposed_kernel, (programs, count), config, *arguments, WIDE=problem.wide)


def work(problem, config, target):
    tile, threads = config.kwargs, target.warp_size * config.num_warps
    shape = tile["LANES"], tile["DEPTH"], column_vector(problem), tile["UNROLL"], tile["SPLITS"]
    return (along_columns(problem, threads, *shape),)


DESIGN = Design(configs=configs, launches=launches, work=work)
