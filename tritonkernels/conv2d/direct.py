"""conv2d, direct: a program owns a tile of output positions and BLOCK_K output channels, and walks channels and filter taps.

Over `naive`, an input that is loaded once for a channel and tap is multiplied by BLOCK_K weights, an outer product in
registers: BLOCK_K multiply-adds a load instead of half of one. It is loaded again from L1 for other taps. (The CUDA twin
stages a tile's inputs in shared memory, where each arrives once.) Only the result is written.

Mirrors cuda_reference/conv2d/direct.cuh, the write-up's direct convolution.
"""

import math

import torch

from ..config import config_of
from ..integers import ceil_div, next_power_of_2
from ..language.convolution import Geometry, operands
from ..language.structs import Filters, Images, Vector
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from ..lesson import lesson


@triton.jit
def _direct_kernel(
    input: Images, weight: Filters, bias: Vector, out: Images, g: Geometry,
    BLOCK_K: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_Q: tl.constexpr,
):  # fmt: skip
    """input (N, C, H, W), weight (K, C, R, S), bias (K,) or None, out (N, K, P, Q)."""
    program, tiles_q, tiles_p = tl.program_id(0), tl.cdiv(g.Q, BLOCK_Q), tl.cdiv(g.P, BLOCK_P)
    pixel = tl.arange(0, BLOCK_P * BLOCK_Q)  # the tile, row by row, as one axis
    q = program % tiles_q * BLOCK_Q + pixel % BLOCK_Q
    p = program // tiles_q % tiles_p * BLOCK_P + pixel // BLOCK_Q
    block = program // (tiles_q * tiles_p)
    k = block % tl.cdiv(g.K, BLOCK_K) * BLOCK_K + tl.arange(0, BLOCK_K)
    image = block // tl.cdiv(g.K, BLOCK_K)
    acc = tl.zeros((BLOCK_K, BLOCK_P * BLOCK_Q), tl.float32)
    if bias is not None:
        acc += tl.load(bias.ptr + k * bias.step, mask=k < g.K, other=0)[:, None]
    plane_ptr = input.ptr + image * input.n
    filter_ptrs = weight.ptr + k * weight.k
    for _ in range(g.C):
        for r in range(g.R):
            for s in range(g.S):
                h = p * g.step_h + (r * g.dilation_h - g.padding_h)
                w = q * g.step_w + (s * g.dilation_w - g.padding_w)
                inside = (h >= 0) & (h < g.H) & (w >= 0) & (w < g.W)  # the padding is zeros
                x = tl.load(plane_ptr + h * input.h + w * input.w, mask=inside, other=0)
                taps = tl.load(filter_ptrs + r * weight.r + s * weight.s, mask=k < g.K, other=0)
                acc += taps[:, None] * x[None, :]
        plane_ptr += input.c
        filter_ptrs += weight.c
    exists = (k < g.K)[:, None] & ((p < g.P) & (q < g.Q))[None, :]
    tl.store(out.ptr + image * out.n + k[:, None] * out.c + (p * out.h + q * out.w)[None, :], acc, mask=exists)


def configs(problem, target):
    """BLOCK_K just covers the output channels, up to 16; at most 64 sums a thread."""
    channels = next_power_of_2(min(16, max(1, problem.k)))
    if not target.is_gpu:  # whose cost is per operation
        block_p, block_q = (min(most, next_power_of_2(max(1, n))) for most, n in ((64, problem.p), (128, problem.q)))
        return [config_of({"BLOCK_K": channels, "BLOCK_P": block_p, "BLOCK_Q": block_q})]
    tiles = ((4, 64, 4), (4, 32, 2), (4, 8, 1))
    return [config_of({"BLOCK_K": channels, "BLOCK_P": p, "BLOCK_Q": q}, num_warps=w, num_stages=1) for p, q, w in tiles]


def launches(problem, config, *tensors):
    tiles = zip((problem.p, problem.q, problem.k), ("BLOCK_P", "BLOCK_Q", "BLOCK_K"))
    grid = (problem.n * math.prod(ceil_div(size, config.kwargs[name]) for size, name in tiles),)
    yield TritonLaunch(_direct_kernel, grid, config, *operands(*tensors), Geometry.of(problem))


DESIGN = lesson(configs, launches, types=((torch.float32, torch.float32),))
