"""conv2d, direct: a program owns a tile of output positions and BLOCK_K output channels, and walks channels and filter taps.

Per (channel, tap) it loads the tile's inputs once and multiplies them with BLOCK_K weights, an outer product in registers: a
fetched input is used for every output channel of the block, and for its other taps it comes from L1 again (the CUDA twin
stages the halo in shared memory instead, where each input arrives once). Nothing is written but the result.

Padding is a mask: an input position outside the image reads 0. Works for any stride, dilation, groups and memory format, since
every tensor comes with its own strides.

Mirrors cuda_reference/conv2d/direct.cuh, the seed's direct convolution.
"""

import triton
import triton.language as tl

from ..design import Design, takes_everything
from ..language.dot import widened
from ..language.epilogue import rounded
from ..launch import TritonLaunch
from .parts.operands import arguments


@triton.jit
def tile_of_program(
    P, Q, K_PER_GROUP, GROUPS, BLOCK_K: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_Q: tl.constexpr, WIDE: tl.constexpr
):
    """(image, group, output rows and columns of the tile, output channels, which of these are the group's)."""
    # program -> (image, group, block of output channels, tile row, tile column), the last fastest
    tiles_q = tl.cdiv(Q, BLOCK_Q)
    tiles_p = tl.cdiv(P, BLOCK_P)
    blocks_k = tl.cdiv(K_PER_GROUP, BLOCK_K)
    program = tl.program_id(0)
    tile_q = program % tiles_q
    tile_p = program // tiles_q % tiles_p
    block_k = program // (tiles_q * tiles_p) % blocks_k
    group = program // (tiles_q * tiles_p * blocks_k) % GROUPS
    image = program // (tiles_q * tiles_p * blocks_k * GROUPS)
    pixel = tl.arange(0, BLOCK_P * BLOCK_Q)  # the tile, row by row, as one axis
    p = tile_p * BLOCK_P + pixel // BLOCK_Q
    q = tile_q * BLOCK_Q + pixel % BLOCK_Q
    k = block_k * BLOCK_K + tl.arange(0, BLOCK_K)
    k_inside = k < K_PER_GROUP
    if WIDE:
        image = image.to(tl.int64)
        group = group.to(tl.int64)
        p = p.to(tl.int64)
        q = q.to(tl.int64)
    k += group * K_PER_GROUP
    return image, group, p, q, k, k_inside


@triton.jit
def first_sums(bias_ptr, k, k_inside, stride_bias, PIXELS: tl.constexpr, SUMS: tl.constexpr, HAS_BIAS: tl.constexpr):
    """What the sums of a tile begin with."""
    acc = tl.zeros((k.shape[0], PIXELS), SUMS)
    if HAS_BIAS:
        acc += widened(tl.load(bias_ptr + k * stride_bias, mask=k_inside, other=0), SUMS)[:, None]
    return acc


@triton.jit
def load_tap(
    input_ptr, p, q, r, s, there, H, W,
    STEP_H, STEP_W, PADDING_H, PADDING_W, DILATION_H, DILATION_W, stride_ih, stride_iw,
):  # fmt: skip
    """The inputs of a channel that tap (r, s) multiplies, zeros outside of the image."""
    h = p * STEP_H + (r * DILATION_H - PADDING_H)
    w = q * STEP_W + (s * DILATION_W - PADDING_W)
    inside = there & (h >= 0) & (h < H) & (w >= 0) & (w < W)
    return tl.load(input_ptr + h * stride_ih + w * stride_iw, mask=inside, other=0)


@triton.jit
def store_sums(acc, out_ptr, image, p, q, k, k_inside, P, Q, stride_on, stride_ok, stride_op, stride_oq):
    """Write the part of a tile that lies inside."""
    inside = k_inside[:, None] & ((p < P) & (q < Q))[None, :]
    out_ptrs = out_ptr + image * stride_on + k[:, None] * stride_ok + (p * stride_op + q * stride_oq)[None, :]
    tl.store(out_ptrs, rounded(acc, out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _direct_kernel(
    input_ptr,  # (N, C, H, W)
    weight_ptr,  # (K, C / GROUPS, R, S)
    bias_ptr,  # (K,), None without HAS_BIAS
    out_ptr,  # (N, K, P, Q)
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
    stride_in,
    stride_ic,
    stride_ih,
    stride_iw,
    stride_wk,
    stride_wc,
    stride_wr,
    stride_ws,
    stride_bias,
    stride_on,
    stride_ok,
    stride_op,
    stride_oq,
    BLOCK_K: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_Q: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    WIDE: tl.constexpr,  # offsets need 64 bits
):
    image, group, p, q, k, k_inside = tile_of_program(P, Q, K_PER_GROUP, GROUPS, BLOCK_K, BLOCK_P, BLOCK_Q, WIDE)
    SUMS: tl.constexpr = tl.float64 if out_ptr.dtype.element_ty == tl.float64 else tl.float32
    acc = first_sums(bias_ptr, k, k_inside, stride_bias, BLOCK_P * BLOCK_Q, SUMS, HAS_BIAS)
    input_ptr += image * stride_in + group * C_PER_GROUP * stride_ic
    weight_ptrs = weight_ptr + k * stride_wk
    for _ in range(C_PER_GROUP):
        row_ptrs = weight_ptrs  # pointers step by strides: a tap's index times its stride could leave 32 bits
        for r in range(R):
            tap_ptrs = row_ptrs
            for s in range(S):
                x = load_tap(
                    input_ptr, p, q, r, s, True, H, W,
                    STEP_H, STEP_W, PADDING_H, PADDING_W, DILATION_H, DILATION_W, stride_ih, stride_iw,
                )  # fmt: skip
                weights = tl.load(tap_ptrs, mask=k_inside, other=0)
                acc += widened(weights, SUMS)[:, None] * widened(x, SUMS)[None, :]
                tap_ptrs += stride_ws
            row_ptrs += stride_wr
        input_ptr += stride_ic
        weight_ptrs += stride_wc
    store_sums(acc, out_ptr, image, p, q, k, k_inside, P, Q, stride_on, stride_ok, stride_op, stride_oq)


def configs(problem, target):
    """BLOCK_K just covers the output channels of a group; at most 64 accumulators per thread."""
    channels = triton.next_power_of_2(min(16, max(1, problem.k // problem.groups)))
    if not target.is_gpu:
        pixels = 2**17 // channels
        block_q = min(512, triton.next_power_of_2(max(1, problem.q)))
        block_p = min(pixels // block_q, triton.next_power_of_2(max(1, problem.p)))
        yield triton.Config({"BLOCK_K": channels, "BLOCK_P": block_p, "BLOCK_Q": block_q})
    for block_p, block_q, num_warps in ((4, 64, 4), (8, 32, 4), (4, 32, 2), (8, 16, 4), (2, 32, 2), (4, 8, 1)):
        tile = {"BLOCK_K": channels, "BLOCK_P": block_p, "BLOCK_Q": block_q}
        if channels * block_p * block_q <= 64 * target.warp_size * num_warps:
            yield triton.Config(tile, num_warps=num_warps, num_stages=1)


def count_tiles(problem, tile):
    """Programs of tile_of_program."""
    blocks_k = problem.groups * triton.cdiv(problem.k // problem.groups, tile["BLOCK_K"])
    return problem.n * blocks_k * triton.cdiv(problem.p, tile["BLOCK_P"]) * triton.cdiv(problem.q, tile["BLOCK_Q"])


def launches(problem, config, *tensors):
    yield TritonLaunch(_direct_kernel, (count_tiles(problem, config.kwargs),), config, arguments(problem, *tensors))


DESIGN = Design(
    name="direct",
    summary="a tile of positions times a block of output channels, walking channels and taps",
    mirrors="conv2d seed: direct",
    refuses=takes_everything,
    configs=configs,
    launches=launches,
)
