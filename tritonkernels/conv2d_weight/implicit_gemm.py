"""conv2d_weight, implicit_gemm: a program owns a tile of the weight as a matrix and sums over its share of all positions.

The weight of a group is a matrix of K / groups rows and C / groups * R * S columns (c, r, s), a product of grad_output and of
the im2col matrix of the input, which is never written: its elements are gathered where they are. Rows of the product are as
long as there are positions, N P Q, and its tiles few; so the positions are split over programs (conv2d/parts/splits.py).

Two ways to sum a tile. Of large ones tl.dot multiplies slices of BLOCK_L positions: each element loaded serves a whole row or
column, on tensor cores for 16-bit types. THIN tiles, of few channels, would be mostly padding there: a lane has its own
positions instead, and for them all sums of the tile in registers, M N multiply-adds for M + N loads; lanes are added up at the
end, once.

Mirrors cuda_reference/conv2d_weight/implicit_gemm.cuh.
"""

import triton
import triton.language as tl

from ..conv2d.parts.splits import launches_of_splits, position
from ..design import Design, takes_everything
from ..language.dot import faithful_dot, widened
from ..language.epilogue import rounded
from ..language.tiles import span
from .parts.operands import arguments
from .parts.space import THIN_ROWS, ceil_div, count_tiles, power_of_2, splits_for


@triton.jit
def load_grads(at, k, inside_l, inside_k, grad_ptr, P, Q, stride_on, stride_ok, stride_op, stride_oq):
    """grad_output at positions `at` and channels `k`, of shapes that broadcast against each other."""
    image, p, q = position(at, P, Q)
    ptrs = grad_ptr + image * stride_on + p * stride_op + q * stride_oq + k * stride_ok
    return tl.load(ptrs, mask=inside_l & inside_k, other=0)


@triton.jit
def load_inputs(
    at, channel, tap_h, tap_w, inside_l, inside_n, input_ptr, H, W, P, Q, STEP_H, STEP_W, stride_in, stride_ih, stride_iw,
):  # fmt: skip
    """The inputs that columns (c, r, s) meet at positions `at`, zeros outside of the image; shapes that broadcast.

    Offsets are added up, not pointers: a lane has many columns, and a pointer takes two registers.
    """
    image, p, q = position(at, P, Q)
    h = p * STEP_H + tap_h
    w = q * STEP_W + tap_w
    inside = inside_l & inside_n & (h >= 0) & (h < H) & (w >= 0) & (w < W)
    return tl.load(input_ptr + (image * stride_in + channel + h * stride_ih + w * stride_iw), mask=inside, other=0)


@triton.jit
def _implicit_gemm_kernel(
    input_ptr,  # (N, C, H, W)
    grad_ptr,  # (N, K, P, Q)
    sums_ptr,  # (SPLITS, K, C / GROUPS, R, S)
    N,
    H,
    W,
    P,
    Q,
    C_PER_GROUP,
    K_PER_GROUP,
    GROUPS,
    R,
    S,
    STEP_H,
    STEP_W,
    PADDING_H,
    PADDING_W,
    DILATION_H,
    DILATION_W,
    positions_per_split,
    stride_in,
    stride_ic,
    stride_ih,
    stride_iw,
    stride_split,
    stride_wk,
    stride_wc,
    stride_wr,
    stride_ws,
    stride_on,
    stride_ok,
    stride_op,
    stride_oq,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_L: tl.constexpr,  # positions
    THIN: tl.constexpr,
    CHANNELS_INSIDE: tl.constexpr,  # channels lie side by side in memory, so columns are (r, s, c)
    PRECISION: tl.constexpr,
    WIDE: tl.constexpr,  # offsets need 64 bits
):
    # program -> (split, group, tile of rows, tile of columns), the last fastest
    tiles_n = tl.cdiv(C_PER_GROUP * R * S, BLOCK_N)
    tiles_m = tl.cdiv(K_PER_GROUP, BLOCK_M)
    program = tl.program_id(0)
    tile_n = program % tiles_n
    tile_m = program // tiles_n % tiles_m
    group = program // (tiles_n * tiles_m) % GROUPS
    split = program // (tiles_n * tiles_m * GROUPS)
    positions = N * P * Q
    if WIDE:
        group = group.to(tl.int64)
        split = split.to(tl.int64)
        positions = N.to(tl.int64) * P * Q
    k = span(tile_m * BLOCK_M, BLOCK_M, WIDE)
    column = span(tile_n * BLOCK_N, BLOCK_N, WIDE)
    inside_k = k < K_PER_GROUP
    inside_n = column < C_PER_GROUP * R * S
    k += group * K_PER_GROUP
    if CHANNELS_INSIDE:
        c = column % C_PER_GROUP
        s = column // C_PER_GROUP % S
        r = column // C_PER_GROUP // S
    else:
        s = column % S
        r = column // S % R
        c = column // S // R
    channel = (group * C_PER_GROUP + c) * stride_ic
    tap_h = r * DILATION_H - PADDING_H
    tap_w = s * DILATION_W - PADDING_W

    SUMS: tl.constexpr = tl.float64 if sums_ptr.dtype.element_ty == tl.float64 else tl.float32
    acc = tl.zeros((BLOCK_M, BLOCK_N, BLOCK_L) if THIN else (BLOCK_M, BLOCK_N), SUMS)
    first = split * positions_per_split
    end = min(first + positions_per_split, positions)
    for l in range(first, end, BLOCK_L):
        at = span(l, BLOCK_L, WIDE)
        inside_l = at < end
        if CHANNELS_INSIDE and not THIN:  # lanes along channels
            grad = load_grads(
                at[:, None], k[None, :], inside_l[:, None], inside_k[None, :], grad_ptr, P, Q,
                stride_on, stride_ok, stride_op, stride_oq,
            )  # fmt: skip
            x = load_inputs(
                at[:, None], channel[None, :], tap_h[None, :], tap_w[None, :], inside_l[:, None], inside_n[None, :],
                input_ptr, H, W, P, Q, STEP_H, STEP_W, stride_in, stride_ih, stride_iw,
            )  # fmt: skip
            acc = faithful_dot(tl.trans(grad), x, acc, PRECISION)
        else:  # lanes along positions
            grad = load_grads(
                at[None, :], k[:, None], inside_l[None, :], inside_k[:, None], grad_ptr, P, Q,
                stride_on, stride_ok, stride_op, stride_oq,
            )  # fmt: skip
            x = load_inputs(
                at[None, :], channel[:, None], tap_h[:, None], tap_w[:, None], inside_l[None, :], inside_n[:, None],
                input_ptr, H, W, P, Q, STEP_H, STEP_W, stride_in, stride_ih, stride_iw,
            )  # fmt: skip
            if THIN:
                acc += widened(grad, SUMS)[:, None, :] * widened(x, SUMS)[None, :, :]
            else:
                acc = faithful_dot(grad, tl.trans(x), acc, PRECISION)
    sums = tl.sum(acc, axis=2) if THIN else acc
    sums_ptrs = sums_ptr + split * stride_split + k[:, None] * stride_wk
    sums_ptrs += (c * stride_wc + r * stride_wr + s * stride_ws)[None, :]
    tl.store(sums_ptrs, rounded(sums, sums_ptr.dtype.element_ty), mask=inside_k[:, None] & inside_n[None, :])


def thin_tile(problem):
    """(BLOCK_M, BLOCK_N, BLOCK_L, num_warps): a position a lane, which has room for 64 sums and 16 columns; fewer in fp64."""
    block_m = power_of_2(problem.rows, 1, 4)
    return block_m, power_of_2(problem.columns, 1, 8 if problem.precision == "fp64" else 16), 128, 4


def tiles_of_dot(problem):
    """The same of tl.dot: first what covers the weight with least padding."""
    block_m, block_n = power_of_2(problem.rows, 16, 64), power_of_2(problem.columns, 16, 64)
    block_l = 16 if problem.wide or block_m * block_n <= 512 else 32  # of small tiles ptxas spills a few words otherwise
    if problem.precision == "fp64":
        return [(32, 32, 16, 4)]
    return list(dict.fromkeys(((block_m, block_n, block_l, 4), *([] if problem.wide else [(64, 64, 16, 4)]))))


def configs(problem, target):
    """The tile that suits the weight, with as many splits as fill the GPU; then others. The interpreter pays by the operation,
    so there slices are long."""
    if not target.is_gpu:
        length = power_of_2(problem.terms // 2, 16, 1024)
        yield _config((64, 64, length, 4), thin=False, splits=2)
        yield _config((2, 16, length, 4), thin=True, splits=3)
        yield _config((16, 16, 16, 4), thin=False, splits=1)
        return
    thin = [(thin_tile(problem), True, 4)]
    dots = [(tile, False, 2) for tile in tiles_of_dot(problem)]
    for tile, is_thin, per_sm in thin + dots if problem.rows <= THIN_ROWS else dots + thin:
        block_m, block_n, block_l, _ = tile
        tiles = count_tiles(problem, block_m, block_n)
        yield _config(tile, is_thin, splits_for(problem, target, tiles, block_l, per_sm))


def _config(tile, thin, splits):
    numbers = dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_L"), tile)) | {"THIN": thin, "SPLITS": splits}
    return triton.Config(numbers, num_warps=tile[3], num_stages=1 if thin else 3)


def launches(problem, config, input, grad_output, out):
    tile, splits = config.kwargs, config.kwargs["SPLITS"]
    grid = (count_tiles(problem, tile["BLOCK_M"], tile["BLOCK_N"]) * splits,)
    given = arguments(problem, input, grad_output, out) | {
        "positions_per_split": ceil_div(ceil_div(problem.terms, splits), tile["BLOCK_L"]) * tile["BLOCK_L"],
        "CHANNELS_INSIDE": input.stride(1) == 1 and grad_output.stride(1) == 1,
        "PRECISION": problem.precision,
    }
    yield from launches_of_splits(_implicit_gemm_kernel, grid, config, given, out)


DESIGN = Design(
    name="implicit_gemm",
    summary="a tile of the weight per program, positions split over programs; tl.dot, or thin tiles in registers",
    mirrors="conv2d_weight: a reduction over N, P and Q",
    refuses=takes_everything,
    configs=configs,
    launches=launches,
)
