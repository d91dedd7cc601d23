"""Shared by the tiled designs: the tile of a program, its inputs and biases, and the store of its results."""

import functools

from ...config import config_of
from ...integers import next_power_of_2
from ...language.dot import widened
from ...language.epilogue import rounded
from ...language.triton import tl, triton
from .shapes import tiles_of_outputs
from .work import of_outputs


@triton.jit
def place_of_program(g, BLOCK_K: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_Q: tl.constexpr, WIDE: tl.constexpr):
    """(image, group, block of output channels, tile row, tile column) of a program, the last fastest."""
    tiles_q = tl.cdiv(g.Q, BLOCK_Q)
    tiles_p = tl.cdiv(g.P, BLOCK_P)
    blocks_k = tl.cdiv(g.k_per_group, BLOCK_K)
    program = tl.program_id(0)
    tile_q = program % tiles_q
    tile_p = program // tiles_q % tiles_p
    block_k = program // (tiles_q * tiles_p) % blocks_k
    group = program // (tiles_q * tiles_p * blocks_k) % g.groups
    image = program // (tiles_q * tiles_p * blocks_k * g.groups)
    if WIDE:
        image = image.to(tl.int64)
        group = group.to(tl.int64)
    return image, group, block_k, tile_p, tile_q


@triton.jit
def tile_of_program(g, BLOCK_K: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_Q: tl.constexpr, WIDE: tl.constexpr):
    """(image, group, output rows and columns of the tile, output channels, which of these are the group's)."""
    image, group, block_k, tile_p, tile_q = place_of_program(g, BLOCK_K, BLOCK_P, BLOCK_Q, WIDE)
    pixel = tl.arange(0, BLOCK_P * BLOCK_Q)  # the tile, row by row, as one axis
    p = tile_p * BLOCK_P + pixel // BLOCK_Q
    q = tile_q * BLOCK_Q + pixel % BLOCK_Q
    if WIDE:
        p = p.to(tl.int64)
        q = q.to(tl.int64)
    k, k_inside = channels_of(block_k, group, g, BLOCK_K)
    return image, group, p, q, k, k_inside


@triton.jit
def channels_of(block_k, group, g, BLOCK_K: tl.constexpr):
    """A block's output channels, and which of these are the group's."""
    k = block_k * BLOCK_K + tl.arange(0, BLOCK_K)
    return k + group * g.k_per_group, k < g.k_per_group


@triton.jit
def bias_or_zero(bias, k, k_inside, SUMS: tl.constexpr):
    """The initial sums of output channels k."""
    first = tl.zeros(k.shape, SUMS)
    if bias is not None:
        first += widened(tl.load(bias.ptr + k * bias.step, mask=k_inside, other=0), SUMS)
    return first


@triton.jit
def load_tap(plane_ptr, input, p, q, r, s, there, g):
    """The inputs of a channel that tap (r, s) multiplies, zeros outside of the image."""
    h = p * g.step_h + (r * g.dilation_h - g.padding_h)
    w = q * g.step_w + (s * g.dilation_w - g.padding_w)
    inside = there & (h >= 0) & (h < g.H) & (w >= 0) & (w < g.W)
    return tl.load(plane_ptr + h * input.h + w * input.w, mask=inside, other=0)


@triton.jit
def multiply_taps(acc, input, plane_ptrs, weight, k, p, q, there, k_inside, g, OUTER: tl.constexpr):
    """acc and the products of all channels and taps: each weight with its own input, or the outer product of both if OUTER."""
    filter_ptrs = weight.ptr + k * weight.k
    for _ in range(g.c_per_group):
        row_ptrs = filter_ptrs  # pointers advance by strides: a tap's index times its stride could exceed 32 bits
        for r in range(g.R):
            tap_ptrs = row_ptrs
            for s in range(g.S):
                x = load_tap(plane_ptrs, input, p, q, r, s, there, g)
                tap = widened(tl.load(tap_ptrs, mask=k_inside, other=0), acc.dtype)
                if OUTER:
                    acc += tap[:, None] * widened(x, acc.dtype)[None, :]
                else:
                    acc += tap * widened(x, acc.dtype)
                tap_ptrs += weight.s
            row_ptrs += weight.r
        plane_ptrs += input.c
        filter_ptrs += weight.c
    return acc


@triton.jit
def store_sums(acc, out, image, p, q, k, k_inside, g):
    """Writes the part of a tile that lies inside the result."""
    inside = k_inside[:, None] & ((p < g.P) & (q < g.Q))[None, :]
    out_ptrs = out.ptr + image * out.n + k[:, None] * out.c + (p * out.h + q * out.w)[None, :]
    tl.store(out_ptrs, rounded(acc, out.ptr.dtype.element_ty), mask=inside)


def covering_configs(problem, target):
    """BLOCK_K just covers the output channels of a group; at most 64 accumulators per thread."""
    channels = next_power_of_2(min(16, max(1, problem.k // problem.groups)))
    if not target.is_gpu:
        pixels = 2**17 // channels
        block_q = min(512, next_power_of_2(max(1, problem.q)))
        block_p = min(pixels // block_q, next_power_of_2(max(1, problem.p)))
        yield config_of({"BLOCK_K": channels, "BLOCK_P": block_p, "BLOCK_Q": block_q})
    yield from _covering(channels, target.warp_size)


@functools.cache
def _covering(channels, warp_size):
    tiles = ((4, 64, 4), (8, 32, 4), (4, 32, 2), (8, 16, 4), (2, 32, 2), (4, 8, 1))
    return [
        config_of({"BLOCK_K": channels, "BLOCK_P": block_p, "BLOCK_Q": block_q}, num_warps=num_warps, num_stages=1)
        for block_p, block_q, num_warps in tiles
        if channels * block_p * block_q <= 64 * warp_size * num_warps
    ]


def count_tiles(problem, tile):
    """Programs of place_of_program."""
    return tiles_of_outputs(problem, (tile["BLOCK_P"], tile["BLOCK_Q"]), tile["BLOCK_K"])


def work_of_tiles(problem, config, target, steps):
    """Of a kernel whose programs are tiles of outputs, with so many trips to memory."""
    tile, threads = config.kwargs, target.warp_size * config.num_warps
    rows, cols, channels = tile["BLOCK_P"], tile["BLOCK_Q"], tile["BLOCK_K"]
    registers = min(255, 32 + rows * cols * channels // threads)
    blocks = count_tiles(problem, tile)
    return (of_outputs(problem, target, blocks, threads, (rows, cols, 1), channels, steps, registers=registers),)
