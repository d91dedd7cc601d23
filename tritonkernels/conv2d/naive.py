"""conv2d, naive: a lane per output, with its whole inner product straight from the caches.

Neighbouring lanes own neighbouring outputs of a row, so they read neighbouring inputs and the same filter tap. A multiply-add
takes two loads, and each input is read K R S times: the baseline for the other designs.

Mirrors cuda_reference/conv2d/naive.cuh.
"""

import torch

from ..config import config_of
from ..integers import ceil_div, next_power_of_2
from ..language.convolution import Geometry, operands
from ..language.structs import Filters, Images, Vector
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from ..lesson import lesson


@triton.jit
def _naive_kernel(input: Images, weight: Filters, bias: Vector, out: Images, g: Geometry, BLOCK: tl.constexpr):
    """input (N, C, H, W), weight (K, C, R, S), bias (K,) or None, out (N, K, P, Q)."""
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # of the output, q fastest
    q = index % g.Q
    p = index // g.Q % g.P
    k = index // (g.Q * g.P) % g.K
    image = index // (g.Q * g.P) // g.K
    exists = image < g.N
    acc = tl.zeros((BLOCK,), tl.float32)
    if bias is not None:
        acc += tl.load(bias.ptr + k * bias.step, mask=exists, other=0)
    plane_ptrs = input.ptr + image * input.n
    filter_ptrs = weight.ptr + k * weight.k
    for _ in range(g.C):
        for r in range(g.R):
            for s in range(g.S):
                h = p * g.step_h + (r * g.dilation_h - g.padding_h)
                w = q * g.step_w + (s * g.dilation_w - g.padding_w)
                inside = exists & (h >= 0) & (h < g.H) & (w >= 0) & (w < g.W)  # the padding is zeros
                x = tl.load(plane_ptrs + h * input.h + w * input.w, mask=inside, other=0)
                acc += tl.load(filter_ptrs + r * weight.r + s * weight.s, mask=exists, other=0) * x
        plane_ptrs += input.c
        filter_ptrs += weight.c
    tl.store(out.ptr + image * out.n + k * out.c + p * out.h + q * out.w, acc, mask=exists)


def configs(problem, target):
    """One or two outputs a lane. The interpreter's cost is per operation: it gets all outputs at once."""
    if not target.is_gpu:
        return [config_of({"BLOCK": min(2**16, next_power_of_2(max(1, problem.outputs)))})]
    warps = 128 // target.warp_size
    return [config_of({"BLOCK": 128 * outputs}, num_warps=warps, num_stages=1) for outputs in (1, 2)]


def launches(problem, config, *tensors):
    grid = (ceil_div(problem.outputs, config.kwargs["BLOCK"]),)
    yield TritonLaunch(_naive_kernel, grid, config, *operands(*tensors), Geometry.of(problem))


DESIGN = lesson(configs, launches, types=((torch.float32, torch.float32),))
