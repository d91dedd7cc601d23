"""conv2d, naive: a lane per output, with its whole inner product straight from the caches.

Neighbouring lanes own neighbouring outputs of a row, so they read neighbouring inputs and the same filter tap. A multiply-add
takes two loads, and each input is read K / groups * R * S times: the baseline for the other designs.
Mirrors cuda_reference/conv2d/naive.cuh.
"""

from ..config import config_of
from ..design import Design
from ..integers import ceil_div, next_power_of_2
from ..language.epilogue import rounded
from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Filters, Images, Vector
from ..language.tiles import block_of
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from .parts.operands import Geometry, operands
from .parts.tile import bias_or_zero, multiply_taps
from .parts.work import of_outputs, strip


@triton.jit
def _naive_kernel(
    input: Images, weight: Filters, bias: Vector, out: Images, g: Geometry, BLOCK: tl.constexpr, WIDE: tl.constexpr
):
    """input (N, C, H, W), weight (K, C / groups, R, S), bias (K,) or None, out (N, K, P, Q). WIDE: offsets need 64 bits."""
    wait_for_earlier_kernels()
    index = block_of(tl.program_id(0), BLOCK, WIDE)  # of the output, q fastest
    q = index % g.Q
    p = index // g.Q % g.P
    k = index // g.Q // g.P % (g.k_per_group * g.groups)
    image = index // g.Q // g.P // (g.k_per_group * g.groups)
    valid = image < g.N
    SUMS: tl.constexpr = tl.float64 if out.ptr.dtype.element_ty == tl.float64 else tl.float32
    acc = bias_or_zero(bias, k, valid, SUMS)
    plane_ptrs = input.ptr + image * input.n + k // g.k_per_group * g.c_per_group * input.c
    acc = multiply_taps(acc, input, plane_ptrs, weight, k, p, q, valid, valid, g, OUTER=False)
    out_ptrs = out.ptr + image * out.n + k * out.c + p * out.h + q * out.w
    tl.store(out_ptrs, rounded(acc, out.ptr.dtype.element_ty), mask=valid)


def configs(problem, target):
    """One or two outputs a lane. The interpreter's cost is per operation: it gets all outputs at once."""
    if not target.is_gpu:
        yield config_of({"BLOCK": min(2**16, next_power_of_2(max(1, problem.outputs)))})
    for outputs in (1, 2):
        yield config_of({"BLOCK": 128 * outputs}, num_warps=128 // target.warp_size, num_stages=1)


def launches(problem, config, *tensors):
    grid = (ceil_div(problem.outputs, config.kwargs["BLOCK"]),)
    yield TritonLaunch(_naive_kernel, grid, config, *operands(*tensors), Geometry.of(problem), WIDE=problem.wide)


def work(problem, config, target):
    block, threads = config.kwargs["BLOCK"], target.warp_size * config.num_warps
    blocks, piece = ceil_div(problem.outputs, block), strip(problem, 1, block)
    return (of_outputs(problem, target, blocks, threads, piece, 1, problem.terms, outputs=block),)


DESIGN = Design(configs=configs, launches=launches, work=work)
