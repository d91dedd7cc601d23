"""conv2d_weight, naive: a lane per element of the weight, which walks all positions of the output.

Two loads for a multiply-add, straight from the caches; neighbouring lanes own neighbouring taps, so they read the same
grad_output and neighbouring inputs. A small filter keeps only a few lanes busy, each with millions of products: it is what the
other designs are measured by.
Mirrors cuda_reference/conv2d_weight/naive.cuh.
"""

from ..config import config_of
from ..conv2d.parts.operands import Geometry
from ..conv2d.parts.splits import count_positions, element, store_weights
from ..design import Design
from ..integers import ceil_div, next_power_of_2
from ..language.dot import widened
from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Filters, Images
from ..language.tiles import block_of, span
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from .parts.gather import load_grads, load_inputs, place_of_tap
from .parts.work import of_elements


@triton.jit
def _naive_kernel(
    input: Images, grad: Images, weight: Filters, g: Geometry, BLOCK: tl.constexpr, AT_ONCE: tl.constexpr, WIDE: tl.constexpr
):
    """weight (K, C / groups, R, S), the result. AT_ONCE: positions. WIDE: offsets need 64 bits."""
    wait_for_earlier_kernels()
    positions = count_positions(g.N, g.P, g.Q, WIDE)
    k, c, r, s = element(block_of(tl.program_id(0), BLOCK, WIDE), g.c_per_group, g.R, g.S)
    channel, tap_h, tap_w = place_of_tap(input, g, k // g.k_per_group, c, r, s)
    SUMS: tl.constexpr = tl.float64 if weight.ptr.dtype.element_ty == tl.float64 else tl.float32
    acc = tl.zeros((BLOCK,), SUMS)
    for first in range(0, positions, AT_ONCE):
        at = span(first, AT_ONCE, WIDE)[None, :]
        inside = (k < g.K)[:, None] & (at < positions)
        gradient = load_grads(grad, g, at, k[:, None], inside)
        x = load_inputs(input, g, at, channel[:, None], tap_h[:, None], tap_w[:, None], inside)
        acc += tl.sum(widened(gradient, SUMS) * widened(x, SUMS), axis=1)
    store_weights(acc, weight, k, c, r, s, k < g.K)


def configs(problem, target):
    """The interpreter pays by the operation, so it takes many positions at once."""
    if not target.is_gpu:
        block = min(2**10, next_power_of_2(max(1, problem.outputs)))
        at_once = min(2**18 // block, next_power_of_2(max(1, problem.terms)))
        yield config_of({"BLOCK": block, "AT_ONCE": at_once})
    yield config_of({"BLOCK": 128, "AT_ONCE": 1}, num_warps=128 // target.warp_size, num_stages=1)


def launches(problem, config, input, grad_output, out):
    grid = (ceil_div(problem.outputs, config.kwargs["BLOCK"]),)
    operands = Images.of(input), Images.of(grad_output), Filters.of(out)
    yield TritonLaunch(_naive_kernel, grid, config, *operands, Geometry.of(problem), WIDE=problem.wide)


def work(problem, config, target):
    return (of_elements(problem, config.kwargs["BLOCK"], target.warp_size * config.num_warps),)


DESIGN = Design(configs=configs, launches=launches, work=work)
