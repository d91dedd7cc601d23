"""FP32 GEMM, tiled: a program owns a BLOCK_M x BLOCK_N tile of C and walks K in slices of BLOCK_K, staged in shared memory.

Over `naive` each element fetched is used BLOCK_N (of A) or BLOCK_M (of B) times before it is dropped, and inside a thread the
outer product of TM + TN registers does TM * TN multiply-adds. The tile's intensity is BM * BN / (2 (BM + BN)) FLOP per byte:
64 x 64 gives 16, 128 x 128 gives 32; BLOCK_K cancels, it only sets how often the loop pays its overhead.

tl.dot with input_precision="ieee" is the block-level spelling: Triton stages both slices in shared memory and issues FFMA.
Mirrors cuda_reference/gemm/tiled.cuh, the seed's "shared memory + outer product".
"""

import triton
import triton.language as tl

from ..design import Design, takes_everything
from ..language.tiles import span
from ..launch import TritonLaunch
from .arguments import gemm_arguments
from .space import block_tile, blocked_configs, count_tiles
from .tile import store_tile, tile_product


@triton.jit
def _tiled_kernel(
    a_ptr,  # (M, K)
    b_ptr,  # (K, N)
    c_ptr,  # (M, N), None without HAS_C
    out_ptr,  # (M, N)
    M,
    N,
    K,
    alpha,
    beta,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    stride_om,
    stride_on,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    HAS_C: tl.constexpr,
    WIDE: tl.constexpr,  # offsets need 64 bits
):
    tiles_n = tl.cdiv(N, BLOCK_N)
    program = tl.program_id(0)
    rows = span(program // tiles_n * BLOCK_M, BLOCK_M, WIDE)
    cols = span(program % tiles_n * BLOCK_N, BLOCK_N, WIDE)
    acc = tile_product(a_ptr, b_ptr, rows, cols, 0, K, M, N, stride_am, stride_ak, stride_bk, stride_bn, BLOCK_K, WIDE)
    store_tile(acc, c_ptr, out_ptr, rows, cols, M, N, alpha, beta, stride_cm, stride_cn, stride_om, stride_on, HAS_C)


def configs(problem, target):
    """One stage: a slice is loaded, then multiplied, then the next is loaded."""
    return blocked_configs(problem, target, num_stages=(1,))


def launches(problem, config, a, b, c, out):
    tiles = count_tiles(problem, config.kwargs)
    yield TritonLaunch(_tiled_kernel, (tiles,), config, gemm_arguments(problem, a, b, c, out))


DESIGN = Design(
    name="tiled",
    summary="block tile in shared memory, outer products in registers",
    mirrors="gemm seed: shared memory + outer product",
    refuses=takes_everything,
    configs=configs,
    launches=launches,
    tile=block_tile,
)
