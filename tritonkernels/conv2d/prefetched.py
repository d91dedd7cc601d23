"""conv2d, prefetched: `direct`, but the next tap's inputs and weights are loaded while this tap's are multiplied.

In `direct` a tap is loads, a wait and BLOCK_K multiply-adds per input: only other warps hide the 30 cycles of L1, or the 500 of
DRAM where a channel begins. Here each operand was loaded a tap earlier, so the next tap's loads, also those of the next
channel's first tap, overlap a whole product. The price is a second set of registers: BLOCK_K weights and an input per position.

Mirrors cuda_reference/conv2d/prefetched.cuh.
"""

import math

import torch

from ..integers import ceil_div
from ..language.convolution import Geometry, operands
from ..language.structs import Filters, Images, Vector
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from ..lesson import lesson
from .direct import configs


@triton.jit
def _loaded(input, weight, plane_ptr, filter_ptrs, p, q, r, s, exists, k, g):
    """(inputs, weights) of a channel's tap, where there is one."""
    h = p * g.step_h + (r * g.dilation_h - g.padding_h)
    w = q * g.step_w + (s * g.dilation_w - g.padding_w)
    inside = exists & (h >= 0) & (h < g.H) & (w >= 0) & (w < g.W)  # the padding is zeros
    x = tl.load(plane_ptr + h * input.h + w * input.w, mask=inside, other=0)
    return x, tl.load(filter_ptrs + r * weight.r + s * weight.s, mask=exists & (k < g.K), other=0)


@triton.jit
def _prefetched_kernel(
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
    x, taps = _loaded(input, weight, plane_ptr, filter_ptrs, p, q, 0, 0, g.C > 0, k, g)
    for c in range(g.C):
        for r in range(g.R):
            for s in range(g.S):
                ends_row = s + 1 == g.S
                ends_plane = ends_row & (r + 1 == g.R)
                plane_ptr += tl.where(ends_plane, input.c, 0)
                filter_ptrs += tl.where(ends_plane, weight.c, 0)
                next_r = tl.where(ends_plane, 0, tl.where(ends_row, r + 1, r))
                next_s = tl.where(ends_row, 0, s + 1)
                more = (c + 1 < g.C) | (r + 1 < g.R) | (s + 1 < g.S)
                next_x, next_taps = _loaded(input, weight, plane_ptr, filter_ptrs, p, q, next_r, next_s, more, k, g)
                acc += taps[:, None] * x[None, :]  # while those are under way
                x = next_x
                taps = next_taps
    exists = (k < g.K)[:, None] & ((p < g.P) & (q < g.Q))[None, :]
    tl.store(out.ptr + image * out.n + k[:, None] * out.c + (p * out.h + q * out.w)[None, :], acc, mask=exists)


def launches(problem, config, *tensors):
    tiles = zip((problem.p, problem.q, problem.k), ("BLOCK_P", "BLOCK_Q", "BLOCK_K"))
    grid = (problem.n * math.prod(ceil_div(size, config.kwargs[name]) for size, name in tiles),)
    yield TritonLaunch(_prefetched_kernel, grid, config, *operands(*tensors), Geometry.of(problem))


DESIGN = lesson(configs, launches, types=((torch.float32, torch.float32),))
