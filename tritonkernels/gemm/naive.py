"""FP32 GEMM, naive: every element of C walks its row of A and its column of B, one product at a time, nothing staged.

A program owns BLOCK_M x BLOCK_N elements and, per k, loads one column piece of A and one row piece of B: BLOCK_M * BLOCK_N
multiply-adds for BLOCK_M + BLOCK_N floats read from L1. All reuse is in the caches. In the CUDA twin a warp does
64 FLOP per 132 bytes (1 element of A, 32 of B), an intensity of 0.48 FLOP per byte, so L2 bandwidth is the limit.

Mirrors cuda_reference/gemm/naive.cuh, the write-up's first rung.
"""

from ..config import config_of
from ..language.structs import Matrix
from ..language.triton import tl, triton
from ..lesson import lesson
from .parts.lessons import FLOAT32, launch
from .parts.tile import store_tile


@triton.jit
def _naive_kernel(
    a: Matrix, b: Matrix, c: Matrix, out: Matrix, M, N, K, alpha, beta, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):  # fmt: skip
    """a (M, K), b (K, N), c and out (M, N); c is None where beta is 0."""
    tiles_n = tl.cdiv(N, BLOCK_N)
    rows = tl.program_id(0) // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0) % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
    a_ptrs = a.ptr + rows * a.row
    b_ptrs = b.ptr + cols * b.col
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(K):
        a_k = tl.load(a_ptrs, mask=rows < M, other=0)
        b_k = tl.load(b_ptrs, mask=cols < N, other=0)
        acc += a_k[:, None] * b_k[None, :]
        a_ptrs += a.col
        b_ptrs += b.row
    store_tile(acc, c, out, rows, cols, M, N, alpha, beta)


def configs(problem, target):
    """Few elements per thread, so that there is little to reuse in registers; the interpreter wants big tiles."""
    tiles = ((16, 32), (4, 128), (32, 32)) if target.is_gpu else ((1024, 1024), (16, 32))
    return [config_of({"BLOCK_M": m, "BLOCK_N": n}, num_warps=4, num_stages=1) for m, n in tiles]


def launches(problem, config, *tensors):
    yield launch(_naive_kernel, problem, config, *tensors)


DESIGN = lesson(configs, launches, FLOAT32)
