"""What the designs that walk along rows share: a tile of BLOCK_M rows by LANES vectors, and the kernel that most of them are.

To Triton `naive`, `warp_per_row`, `vectorized`, `rows_per_warp` and `block_per_row` are one kernel under different tiles: the
compiler lays lanes along the columns first, so LANES = 1, 32 and 32 * warps give a row to a thread, a warp and a block.
Partial sums stay in registers over the whole walk, V a thread, and are reduced once, at the end: by shuffles inside a warp,
through shared memory only where several warps share a row. UNROLL steps' loads are independent, so that many are in flight.

Every thread loads x for its own columns, hence the broadcast: a one-dimensional load would be shared between warps through
shared memory, with a barrier in every step (`staged_x`). Rows of a batch are just more rows.
"""

import triton
import triton.language as tl

from ...language.epilogue import rounded
from ...language.tiles import span
from ...launch import TritonLaunch
from .operands import arguments, cut, uncut
from .regime import streams

# Of a thread, at most. Left alone, ptxas makes room for as many threads as an SM holds, by 32 to 40 registers each: it moves
# loads down to where they are used, and UNROLL of them are no longer under way at once.
REGISTERS = 128


@triton.jit
def products(a_rows, x_rows, cols, inside, stride_an, stride_x, STREAMS: tl.constexpr):
    """a * x in fp32, zeros outside; a_rows and x_rows are columns of pointers."""
    POLICY: tl.constexpr = "evict_first" if STREAMS else ""
    a = tl.load(a_rows + cols[None, :] * stride_an, mask=inside, other=0, eviction_policy=POLICY)
    x = tl.load(x_rows + cols[None, :] * stride_x, mask=inside, other=0)
    return a.to(tl.float32) * x.to(tl.float32)


@triton.jit
def row_sums(a_rows, x_rows, valid, first, last, stride_an, stride_x, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
             UNROLL: tl.constexpr, STREAMS: tl.constexpr, WIDE: tl.constexpr):  # fmt: skip
    """Partial sums (BLOCK_M, BLOCK_N) over columns first ... last - 1 of the valid rows."""
    partial = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for n in range(first, last, BLOCK_N * UNROLL):
        for step in tl.static_range(UNROLL):
            cols = span(n + step * BLOCK_N, BLOCK_N, WIDE)
            partial += products(a_rows, x_rows, cols, valid & (cols < last)[None, :], stride_an, stride_x, STREAMS)
    return partial


@triton.jit
def ends(partial, a_rows, x_rows, valid, head, body, size, stride_an, stride_x, BLOCK_N: tl.constexpr, HEAD: tl.constexpr,
         TAIL: tl.constexpr, STREAMS: tl.constexpr, WIDE: tl.constexpr):  # fmt: skip
    """The same with what lies before the vectors and after them: less than a vector each."""
    if HEAD:
        cols = span(-BLOCK_N, BLOCK_N, WIDE)
        partial += products(a_rows, x_rows, cols, valid & (cols >= -head)[None, :], stride_an, stride_x, STREAMS)
    if TAIL:
        cols = span(body, BLOCK_N, WIDE)
        partial += products(a_rows, x_rows, cols, valid & (cols < size)[None, :], stride_an, stride_x, STREAMS)
    return partial


@triton.jit
def store_rows(sums, batch, m, valid, y_ptr, scale_ptr, out_ptr, alpha, beta, stride_yb, stride_y, stride_s, stride_ob,
               stride_o, HAS_Y: tl.constexpr, HAS_SCALE: tl.constexpr):  # fmt: skip
    """out = alpha * scale * sums + beta * y, rounded once; y is not even loaded where beta is 0, whatever it holds."""
    if HAS_SCALE:
        sums *= tl.load(scale_ptr + m * stride_s, mask=valid, other=0)
    sums *= alpha
    if HAS_Y:
        sums += beta * tl.load(y_ptr + batch * stride_yb + m * stride_y, mask=valid, other=0).to(tl.float32)
    tl.store(out_ptr + batch * stride_ob + m * stride_o, rounded(sums, out_ptr.dtype.element_ty), mask=valid)


@triton.jit
def row_tile_kernel(
    a_ptr,  # (batch, M, N), from after the head on
    x_ptr,  # (batch, N), likewise
    y_ptr,  # (batch, M), None without HAS_Y
    scale_ptr,  # (M,), None without HAS_SCALE
    out_ptr,  # (batch, M)
    rows,  # batch * M
    M,
    head,
    vectors,
    size,  # columns after the head
    alpha,
    beta,
    stride_ab,  # in units of V, like stride_am
    stride_am,
    stride_an,
    stride_xb,  # in units of XV
    stride_x,
    stride_yb,
    stride_y,
    stride_s,
    stride_ob,
    stride_o,
    BLOCK_M: tl.constexpr,
    LANES: tl.constexpr,  # vectors side by side in the tile
    UNROLL: tl.constexpr,
    STREAMS: tl.constexpr,  # A is first to leave the caches
    V: tl.constexpr,  # elements of a vector
    XV: tl.constexpr,
    HEAD: tl.constexpr,  # there is one
    TAIL: tl.constexpr,
    BATCHED: tl.constexpr,
    HAS_Y: tl.constexpr,
    HAS_SCALE: tl.constexpr,
    WIDE: tl.constexpr,  # offsets need 64 bits
):
    BLOCK_N: tl.constexpr = LANES * V
    index = span(tl.program_id(0) * BLOCK_M, BLOCK_M, WIDE)
    batch = index // M if BATCHED else index * 0
    m = index - batch * M
    valid = index < rows
    a_rows = a_ptr + (batch * stride_ab + m * stride_am)[:, None] * V
    x_rows = x_ptr + (batch * stride_xb)[:, None] * XV
    in_tile = valid[:, None]
    partial = row_sums(a_rows, x_rows, in_tile, 0, vectors * V, stride_an, stride_x, BLOCK_M, BLOCK_N, UNROLL, STREAMS, WIDE)
    body = vectors * V
    partial = ends(partial, a_rows, x_rows, in_tile, head, body, size, stride_an, stride_x, BLOCK_N, HEAD, TAIL, STREAMS, WIDE)
    store_rows(
        tl.sum(partial, axis=1), batch, m, valid, y_ptr, scale_ptr, out_ptr, alpha, beta,
        stride_yb, stride_y, stride_s, stride_ob, stride_o, HAS_Y, HAS_SCALE,
    )  # fmt: skip


def tile(problem, target, block_m, lanes, unroll=1, num_warps=4):
    """A config of the kernel; BLOCK_N is LANES vectors of whatever V the call allows."""
    numbers = {"BLOCK_M": block_m, "LANES": lanes, "UNROLL": unroll, "STREAMS": streams(problem, target)}
    return triton.Config(numbers, num_warps=num_warps, num_stages=1, maxnreg=REGISTERS)


def within(size, most):
    """The power of two that covers `size`, up to `most`: a side of the interpreter's tiles, who pays by the operation, and by
    the element."""
    return min(most, triton.next_power_of_2(max(1, size)))


def interpreted(problem, target, most_rows, most_lanes):
    return tile(problem, target, within(problem.rows, most_rows), within(problem.n, most_lanes))


def launches(problem, config, *tensors, vector=True):
    """The one launch; without `vector`, element by element whatever the addresses."""
    given = arguments(problem, *tensors, cut(tensors[0]) if vector else uncut(tensors[0]))
    yield TritonLaunch(row_tile_kernel, (triton.cdiv(given["rows"], config.kwargs["BLOCK_M"]),), config, given)
