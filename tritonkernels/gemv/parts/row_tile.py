"""Shared by the designs whose loop walks along rows: a step of it in a tile of BLOCK_M rows by LANES vectors, and the launch.

The compiler lays lanes along the columns first, so LANES = 1, 32 and 32 * warps give a row to a thread, a warp and a block.
Partial sums stay in registers over the whole walk, V a thread, and are reduced once, at the end.

Every thread loads x for its own columns, hence the broadcast: a one-dimensional load would be shared between warps through
shared memory, with a barrier in every step (`staged_x`).
"""

from typing import Any, NamedTuple

from ...config import config_of
from ...design import Design
from ...integers import ceil_div, next_power_of_2
from ...language.epilogue import rounded
from ...language.scalars import factor
from ...language.tiles import span
from ...language.triton import tl, triton
from ...launch import TritonLaunch
from ...operations.gemv.shapes import streams
from ...operations.gemv.vectors import cut
from ...operations.gemv.work import along_rows, row_vector
from .structs import alpha_of, reading, results

# Of a thread, at most. Left alone, ptxas makes room for as many threads as an SM holds, by 32 to 40 registers each: it moves
# loads down to where they are used, and UNROLL of them are no longer in flight at once.
REGISTERS = 128


class Walk(NamedTuple):
    """A walk along rows: their numbers in the whole batch, whether they exist, their matrices, their rows there; and columns of
    pointers to A and x after the head."""

    index: Any
    valid: Any
    batch: Any
    m: Any
    a: Any
    x: Any


@triton.jit
def walk_of(a, x, rows, BLOCK_M: tl.constexpr, WIDE: tl.constexpr):
    """The Walk along the program's rows."""
    index = span(tl.program_id(0) * BLOCK_M, BLOCK_M, WIDE)
    if rows.per_matrix is None:
        batch, m = index * 0, index
    else:
        batch = index // rows.per_matrix
        m = index - batch * rows.per_matrix
    a_rows = a.ptr + (batch * a.batch + m * a.row)[:, None] * rows.V
    x_rows = x.ptr + (batch * x.batch)[:, None] * rows.XV
    return Walk(index, index < rows.count, batch, m, a_rows, x_rows)


@triton.jit
def zero_sums(x, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """The partial sums, in fp64 of doubles and else in fp32."""
    SUMS: tl.constexpr = tl.float64 if x.ptr.dtype.element_ty == tl.float64 else tl.float32
    return tl.zeros((BLOCK_M, BLOCK_N), SUMS)


@triton.jit
def _products(a, x, walk, cols, inside, SUMS: tl.constexpr, STREAMS: tl.constexpr):
    """a * x in SUMS, zeros outside."""
    POLICY: tl.constexpr = "evict_first" if STREAMS else ""
    inside = walk.valid[:, None] & inside[None, :]
    of_a = tl.load(walk.a + cols[None, :] * a.col, mask=inside, other=0, eviction_policy=POLICY)
    of_x = tl.load(walk.x + cols[None, :] * x.step, mask=inside, other=0)
    return of_a.to(SUMS) * of_x.to(SUMS)


@triton.jit
def add_step(partial, a, x, walk, n, end, STREAMS: tl.constexpr, WIDE: tl.constexpr):
    """The partial sums plus the products of the columns from n on that are before `end`.

    STREAMS: A is evicted first from the caches. WIDE: offsets need 64 bits.
    """
    cols = span(n, partial.shape[1], WIDE)
    return partial + _products(a, x, walk, cols, cols < end, partial.dtype, STREAMS)


@triton.jit
def add_ends(partial, a, x, rows, walk, STREAMS: tl.constexpr, WIDE: tl.constexpr):
    """The partial sums plus the products of what is before the first whole vector and after the last."""
    BLOCK_N: tl.constexpr = partial.shape[1]
    if rows.head is not None:
        cols = span(-BLOCK_N, BLOCK_N, WIDE)
        partial += _products(a, x, walk, cols, cols >= -rows.head, partial.dtype, STREAMS)
    if rows.size is not None:
        cols = span(rows.vectors * rows.V, BLOCK_N, WIDE)
        partial += _products(a, x, walk, cols, cols < rows.size, partial.dtype, STREAMS)
    return partial


@triton.jit
def store_rows(sums, valid, batch, m, y, scale, out, alpha):
    """out = alpha * scale * sums + beta * y, rounded once. y is None where beta is 0: never read."""
    if scale is not None:
        sums *= tl.load(scale.ptr + m * scale.step, mask=valid, other=0)
    sums *= factor(alpha, sums.dtype)
    if y is not None:
        of_y = tl.load(y.ptr + batch * y.batch + m * y.step, mask=valid, other=0)
        sums += factor(y.beta, sums.dtype) * of_y.to(sums.dtype)
    tl.store(out.ptr + batch * out.batch + m * out.step, rounded(sums, out.ptr.dtype.element_ty), mask=valid)


def tile(problem, target, block_m, lanes, unroll=1, num_warps=4, **more):
    """A config of the kernel; a tile has LANES vectors of whatever V the call allows side by side."""
    numbers = more | {"BLOCK_M": block_m, "LANES": lanes, "UNROLL": unroll, "STREAMS": streams(problem, target)}
    return config_of(numbers, num_warps=num_warps, num_stages=1, maxnreg=REGISTERS)


def within(size, most):
    """The power of two that covers `size`, up to `most`: a side of a tile in the interpreter, whose time goes by the number of
    operations, and of elements."""
    return min(most, next_power_of_2(max(1, size)))


def interpreted(problem, target, most_rows, most_lanes):
    return tile(problem, target, within(problem.rows, most_rows), within(problem.n, most_lanes))


def row_design(kernel, configs):
    """The Design of a kernel that takes such tiles and is the only launch."""

    def launches(problem, config, a, x, y, scale, out):
        a, x, rows = reading(a, x, cut(a))
        grid = (ceil_div(rows.count, config.kwargs["BLOCK_M"]),)
        arguments = a, x, *results(problem, y, scale, out), rows, alpha_of(problem)
        yield TritonLaunch(kernel, grid, config, *arguments, WIDE=problem.wide)

    return Design(configs=configs, launches=launches, work=work)


def work(problem, config, target):
    """The work of a kernel that takes such tiles, over several splits or one."""
    tile, width = config.kwargs, row_vector(problem)
    shape = target.warp_size * config.num_warps, tile["BLOCK_M"], tile["LANES"], width, tile["UNROLL"], tile.get("SPLITS", 1)
    return (along_rows(problem, *shape),)
