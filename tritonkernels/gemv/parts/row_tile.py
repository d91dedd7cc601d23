"""Shared by the designs that walk along rows: a tile of BLOCK_M rows by LANES vectors, and the kernel of most of them.

To Triton `vectorized`, `rows_per_warp` and `block_per_row` are one kernel under different tiles: the compiler lays lanes along
the columns first, so LANES = 1, 32 and 32 * warps give a row to a thread, a warp and a block.
Partial sums stay in registers over the whole walk, V a thread, and are reduced once, at the end: by shuffles inside a warp,
through shared memory only where several warps share a row. UNROLL steps' loads are independent, so that many are in flight.

Every thread loads x for its own columns, hence the broadcast: a one-dimensional load would be shared between warps through
shared memory, with a barrier in every step (`staged_x`).
"""

from ...config import config_of
from ...integers import ceil_div, next_power_of_2
from ...language.epilogue import rounded
from ...language.overlap import wait_for_earlier_kernels
from ...language.scalars import factor
from ...language.structs import Matrices, Vector, Vectors
from ...language.tiles import span
from ...language.triton import tl, triton
from ...launch import TritonLaunch
from ...operations.gemv.shapes import streams
from ...operations.gemv.vectors import cut
from ...operations.gemv.work import along_rows, row_vector
from .structs import Addend, Rows, alpha_of, reading, results

# Of a thread, at most. Left alone, ptxas makes room for as many threads as an SM holds, by 32 to 40 registers each: it moves
# loads down to where they are used, and UNROLL of them are no longer in flight at once.
REGISTERS = 128


@triton.jit
def tile_rows(rows, BLOCK_M: tl.constexpr, WIDE: tl.constexpr):
    """(index, valid, batch, m) of the program's rows: number in the whole batch, does it exist, its matrix, its row there."""
    index = span(tl.program_id(0) * BLOCK_M, BLOCK_M, WIDE)
    if rows.per_matrix is None:
        batch, m = index * 0, index
    else:
        batch = index // rows.per_matrix
        m = index - batch * rows.per_matrix
    return index, index < rows.count, batch, m


@triton.jit
def products(a, x, a_rows, x_rows, cols, inside, SUMS: tl.constexpr, STREAMS: tl.constexpr):
    """a * x in SUMS, zeros outside; a_rows and x_rows are columns of pointers."""
    POLICY: tl.constexpr = "evict_first" if STREAMS else ""
    of_a = tl.load(a_rows + cols[None, :] * a.col, mask=inside, other=0, eviction_policy=POLICY)
    of_x = tl.load(x_rows + cols[None, :] * x.step, mask=inside, other=0)
    return of_a.to(SUMS) * of_x.to(SUMS)


@triton.jit
def row_sums(a, x, rows, valid, batch, m, first, last, LANES: tl.constexpr, UNROLL: tl.constexpr, STREAMS: tl.constexpr,
             WIDE: tl.constexpr):  # fmt: skip
    """The valid rows' sums over vectors first ... last - 1, and over what is before and after them all if `first` is 0."""
    BLOCK_N: tl.constexpr = LANES * rows.V
    SUMS: tl.constexpr = tl.float64 if x.ptr.dtype.element_ty == tl.float64 else tl.float32
    a_rows = a.ptr + (batch * a.batch + m * a.row)[:, None] * rows.V
    x_rows = x.ptr + (batch * x.batch)[:, None] * rows.XV
    valid = valid[:, None]
    partial = tl.zeros((valid.shape[0], BLOCK_N), SUMS)
    end = last * rows.V
    for n in range(first * rows.V, end, BLOCK_N * UNROLL):
        for step in tl.static_range(UNROLL):
            cols = span(n + step * BLOCK_N, BLOCK_N, WIDE)
            partial += products(a, x, a_rows, x_rows, cols, valid & (cols < end)[None, :], SUMS, STREAMS)
    if first == 0:
        if rows.head is not None:
            cols = span(-BLOCK_N, BLOCK_N, WIDE)
            partial += products(a, x, a_rows, x_rows, cols, valid & (cols >= -rows.head)[None, :], SUMS, STREAMS)
        if rows.size is not None:
            cols = span(rows.vectors * rows.V, BLOCK_N, WIDE)
            partial += products(a, x, a_rows, x_rows, cols, valid & (cols < rows.size)[None, :], SUMS, STREAMS)
    return tl.sum(partial, axis=1)


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


@triton.jit
def row_tile_kernel(
    a: Matrices, x: Vectors, y: Addend, scale: Vector, out: Vectors, rows: Rows, alpha,
    BLOCK_M: tl.constexpr, LANES: tl.constexpr, UNROLL: tl.constexpr, STREAMS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """LANES contiguous vectors. STREAMS: A is evicted first from the caches. WIDE: offsets need 64 bits."""
    wait_for_earlier_kernels()
    _, valid, batch, m = tile_rows(rows, BLOCK_M, WIDE)
    sums = row_sums(a, x, rows, valid, batch, m, 0, rows.vectors, LANES, UNROLL, STREAMS, WIDE)
    store_rows(sums, valid, batch, m, y, scale, out, alpha)


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


def launches(problem, config, a, x, y, scale, out):
    """The one launch."""
    a, x, rows = reading(a, x, cut(a))
    grid = (ceil_div(rows.count, config.kwargs["BLOCK_M"]),)
    arguments = a, x, *results(problem, y, scale, out), rows, alpha_of(problem)
    yield TritonLaunch(row_tile_kernel, grid, config, *arguments, WIDE=problem.wide)


def work(problem, config, target):
    """The work of row_tile_kernel, and of split_n's over several splits."""
    tile, width = config.kwargs, row_vector(problem)
    shape = target.warp_size * config.num_warps, tile["BLOCK_M"], tile["LANES"], width, tile["UNROLL"], tile.get("SPLITS", 1)
    return (along_rows(problem, *shape),)
