"""FP32 GEMM, naive: every element of C walks its row of A and its column of B, one product at a time, nothing staged.

A program owns BLOCK_M x BLOCK_N elements and, per k, loads one column piece of A and one row piece of B: BLOCK_M * BLOCK_N
multiply-adds for BLOCK_M + BLOCK_N floats asked of L1. What reuse there is, the caches provide. In the CUDA twin a warp does
64 FLOP per 132 bytes (1 element of A, 32 of B), an intensity of 0.48 FLOP per byte, so L2 bandwidth is the limit.

Mirrors cuda_reference/gemm/naive.cuh, the seed's first rung.
"""

import triton
import triton.language as tl

from ..design import Design, takes_everything
from ..language.epilogue import blend
from ..language.tiles import span
from ..launch import TritonLaunch
from .arguments import gemm_arguments
from .space import count_tiles


@triton.jit
def _naive_kernel(
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
    HAS_C: tl.constexpr,
    WIDE: tl.constexpr,  # offsets need 64 bits
):
    tiles_n = tl.cdiv(N, BLOCK_N)
    program = tl.program_id(0)
    rows = span(program // tiles_n * BLOCK_M, BLOCK_M, WIDE)
    cols = span(program % tiles_n * BLOCK_N, BLOCK_N, WIDE)
    a_ptrs = a_ptr + rows * stride_am
    b_ptrs = b_ptr + cols * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(K):
        a = tl.load(a_ptrs, mask=rows < M, other=0)
        b = tl.load(b_ptrs, mask=cols < N, other=0)
        acc += a[:, None] * b[None, :]
        a_ptrs += stride_ak
        b_ptrs += stride_bk
    inside = (rows < M)[:, None] & (cols < N)[None, :]
    c_ptrs = c_ptr + rows[:, None] * stride_cm + cols[None, :] * stride_cn if HAS_C else None
    result = blend(acc, c_ptrs, alpha, beta, inside, HAS_C)
    tl.store(out_ptr + rows[:, None] * stride_om + cols[None, :] * stride_on, result, mask=inside)


def configs(problem, target):
    """Few elements per thread, so that there is little to reuse in registers; the interpreter wants big tiles."""
    if not target.is_gpu:
        yield triton.Config({"BLOCK_M": 1024, "BLOCK_N": 1024})
    for block_m, block_n in ((16, 32), (4, 128), (32, 32)):
        yield triton.Config({"BLOCK_M": block_m, "BLOCK_N": block_n}, num_warps=4, num_stages=1)


def launches(problem, config, a, b, c, out):
    yield TritonLaunch(_naive_kernel, (count_tiles(problem, config.kwargs),), config, gemm_arguments(problem, a, b, c, out))


DESIGN = Design(
    name="naive",
    summary="one multiply-add per element and k, operands straight from the caches",
    mirrors="gemm seed: naive",
    refuses=takes_everything,
    configs=configs,
    launches=launches,
)
