"""conv2d, prefetched: `direct`, but the next tap's inputs and weights are loaded while this tap's are multiplied.

In `direct` a tap is loads, a wait and BLOCK_K multiply-adds per input: only other warps hide the 30 cycles of L1, or the 500 of
DRAM where a channel begins. Here each operand was loaded a tap earlier, so the next tap's loads, also those of the next
channel's first tap, overlap a whole product. The price is a second set of registers: BLOCK_K weights and an input per position.

Mirrors cuda_reference/conv2d/prefetched.cuh.
"""

from ..design import Design
from ..language.dot import widened
from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Filters, Images, Vector
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from .parts.operands import Geometry, operands
from .parts.tile import bias_or_zero, count_tiles, covering_configs, load_tap, store_sums, tile_of_program, work_of_tiles


@triton.jit
def _prefetched_kernel(
    input: Images, weight: Filters, bias: Vector, out: Images, g: Geometry,
    BLOCK_K: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_Q: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """input (N, C, H, W), weight (K, C / groups, R, S), bias (K,) or None, out (N, K, P, Q). WIDE: offsets need 64 bits."""
    wait_for_earlier_kernels()
    image, group, p, q, k, k_inside = tile_of_program(g, BLOCK_K, BLOCK_P, BLOCK_Q, WIDE)
    plane_ptr = input.ptr + image * input.n + group * g.c_per_group * input.c
    SUMS: tl.constexpr = tl.float64 if out.ptr.dtype.element_ty == tl.float64 else tl.float32
    acc = tl.zeros((BLOCK_K, BLOCK_P * BLOCK_Q), SUMS) + bias_or_zero(bias, k, k_inside, SUMS)[:, None]
    filters = k * weight.k
    channel_ptr = weight.ptr
    row_ptr = channel_ptr  # pointers advance by strides: a tap's index times its stride could exceed 32 bits
    is_one = g.c_per_group > 0
    x = load_tap(plane_ptr, input, p, q, 0, 0, is_one, g)
    weights = tl.load(row_ptr + filters, mask=k_inside & is_one, other=0)
    for c in range(g.c_per_group):
        channel_ptr += weight.c  # the next
        for r in range(g.R):
            tap_ptr = row_ptr
            for s in range(1, g.S):
                tap_ptr += weight.s
                next_x = load_tap(plane_ptr, input, p, q, r, s, True, g)
                next_weights = tl.load(tap_ptr + filters, mask=k_inside, other=0)
                acc += widened(weights, SUMS)[:, None] * widened(x, SUMS)[None, :]
                x = next_x
                weights = next_weights
            next_r = r + 1
            row_ptr += weight.r
            if next_r == g.R:
                next_r = 0
                row_ptr = channel_ptr
                plane_ptr += input.c
            is_one = (c + 1 < g.c_per_group) | (next_r > 0)
            next_x = load_tap(plane_ptr, input, p, q, next_r, 0, is_one, g)
            next_weights = tl.load(row_ptr + filters, mask=k_inside & is_one, other=0)
            acc += widened(weights, SUMS)[:, None] * widened(x, SUMS)[None, :]
            x = next_x
            weights = next_weights
    store_sums(acc, out, image, p, q, k, k_inside, g)


def launches(problem, config, *tensors):
    grid = (count_tiles(problem, config.kwargs),)
    yield TritonLaunch(_prefetched_kernel, grid, config, *operands(*tensors), Geometry.of(problem), WIDE=problem.wide)


def work(problem, config, target):
    """The loads of two taps are in flight."""
    return work_of_tiles(problem, config, target, problem.terms / 2)


DESIGN = Design(configs=covering_configs, launches=launches, work=work)
