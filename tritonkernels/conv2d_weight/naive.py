"""conv2d_weight, naive: a lane per element of the weight, which walks all positions of the output.

Two loads for a multiply-add, straight from the caches; neighbouring lanes own neighbouring taps, so they read the same
grad_output and neighbouring inputs. A small filter keeps only a few lanes busy, each with millions of products: it is what the
other designs are measured by.

Mirrors cuda_reference/conv2d_weight/naive.cuh.
"""

import torch

from ..config import config_of
from ..integers import ceil_div, next_power_of_2
from ..language.convolution import Geometry
from ..language.structs import Filters, Images
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from ..lesson import lesson


@triton.jit
def _naive_kernel(input: Images, grad: Images, weight: Filters, g: Geometry, BLOCK: tl.constexpr, AT_ONCE: tl.constexpr):
    """input (N, C, H, W), grad (N, K, P, Q), the result weight (K, C, R, S). AT_ONCE: columns of a row of positions."""
    index = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))[:, None]  # of the weight, s fastest
    s = index % g.S
    r = index // g.S % g.R
    c = index // (g.S * g.R) % g.C
    k = index // (g.S * g.R) // g.C
    exists = k < g.K
    acc = tl.zeros((BLOCK, AT_ONCE), tl.float32)
    plane_ptrs = input.ptr + c * input.c
    grad_ptrs = grad.ptr + k * grad.c
    for _ in range(g.N):
        for p in range(g.P):
            for first in range(0, g.Q, AT_ONCE):
                q = (first + tl.arange(0, AT_ONCE))[None, :]
                h = p * g.step_h + (r * g.dilation_h - g.padding_h)
                w = q * g.step_w + (s * g.dilation_w - g.padding_w)
                inside = exists & (q < g.Q) & (h >= 0) & (h < g.H) & (w >= 0) & (w < g.W)  # the padding is zeros
                x = tl.load(plane_ptrs + h * input.h + w * input.w, mask=inside, other=0)
                acc += tl.load(grad_ptrs + p * grad.h + q * grad.w, mask=exists & (q < g.Q), other=0) * x
        plane_ptrs += input.n
        grad_ptrs += grad.n
    weight_ptrs = weight.ptr + k * weight.k + c * weight.c + r * weight.r + s * weight.s
    tl.store(weight_ptrs, tl.sum(acc, axis=1)[:, None], mask=exists)


def configs(problem, target):
    """The interpreter pays by the operation, so it takes many positions at once."""
    if not target.is_gpu:
        block, at_once = (next_power_of_2(max(1, n)) for n in (min(2**10, problem.outputs), min(2**8, problem.q)))
        return [config_of({"BLOCK": block, "AT_ONCE": at_once})]
    return [config_of({"BLOCK": 128, "AT_ONCE": 1}, num_warps=128 // target.warp_size, num_stages=1)]


def launches(problem, config, input, grad_output, out):
    grid = (ceil_div(problem.outputs, config.kwargs["BLOCK"]),)
    operands = Images.of(input), Images.of(grad_output), Filters.of(out)
    yield TritonLaunch(_naive_kernel, grid, config, *operands, Geometry.of(problem))


DESIGN = lesson(configs, launches, types=((torch.float32, torch.float32),))
