"""conv2d, direct: a program owns a tile of output positions and BLOCK_K output channels, and walks channels and filter taps.

Per channel and tap it loads the tile's inputs once and multiplies them by BLOCK_K weights, an outer product in registers. So an
input is used for every output channel of the block, and is loaded again from L1 for other taps. (The CUDA twin stages the halo
in shared memory, where each input arrives once.) Only the result is written.

Mirrors cuda_reference/conv2d/direct.cuh, the seed's direct convolution.
"""

from ..design import Design
from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Filters, Images, Vector
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from .parts.operands import Geometry, operands
from .parts.tile import bias_or_zero, count_tiles, covering_configs, multiply_taps, store_sums, tile_of_program, work_of_tiles


@triton.jit
def _direct_kernel(
    input: Images, weight: Filters, bias: Vector, out: Images, g: Geometry,
    BLOCK_K: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_Q: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """input (N, C, H, W), weight (K, C / groups, R, S), bias (K,) or None, out (N, K, P, Q). WIDE: offsets need 64 bits."""
    wait_for_earlier_kernels()
    image, group, p, q, k, k_inside = tile_of_program(g, BLOCK_K, BLOCK_P, BLOCK_Q, WIDE)
    plane_ptr = input.ptr + image * input.n + group * g.c_per_group * input.c
    SUMS: tl.constexpr = tl.float64 if out.ptr.dtype.element_ty == tl.float64 else tl.float32
    acc = tl.zeros((BLOCK_K, BLOCK_P * BLOCK_Q), SUMS) + bias_or_zero(bias, k, k_inside, SUMS)[:, None]
    acc = multiply_taps(acc, input, plane_ptr, weight, k, p, q, True, k_inside, g, OUTER=True)
    store_sums(acc, out, image, p, q, k, k_inside, g)


def launches(problem, config, *tensors):
    grid = (count_tiles(problem, config.kwargs),)
    yield TritonLaunch(_direct_kernel, grid, config, *operands(*tensors), Geometry.of(problem), WIDE=problem.wide)


def work(problem, config, target):
    return work_of_tiles(problem, config, target, problem.terms)


DESIGN = Design(configs=covering_configs, launches=launches, work=work)
