"""FP32 GEMM, naive: every element of C walks its row of A and its column of B, one product at a time, nothing staged.

A program owns BLOCK_M x BLOCK_N elements and, per k, loads one column piece of A and one row piece of B: BLOCK_M * BLOCK_N
multiply-adds for BLOCK_M + BLOCK_N floats read from L1. All reuse is in the caches. In the CUDA twin a warp does
64 FLOP per 132 bytes (1 element of A, 32 of B), an intensity of 0.48 FLOP per byte, so L2 bandwidth is the limit.

Mirrors cuda_reference/gemm/naive.cuh, the seed's first rung.
"""

from ..config import config_of
from ..design import Design
from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Matrix
from ..language.triton import tl, triton
from .parts.space import block_tile
from .parts.tile import one_program_a_tile, rows_and_cols, store_tile
from .parts.work import of_tiles


@triton.jit
def _naive_kernel(
    a: Matrix, b: Matrix, c: Matrix, out: Matrix, M, N, K, alpha, beta,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """a (M, K), b (K, N), c and out (M, N); c is None where beta is 0. WIDE: offsets need 64 bits."""
    wait_for_earlier_kernels()
    rows, cols = rows_and_cols(tl.program_id(0), N, BLOCK_M, BLOCK_N, WIDE)
    a_ptrs = a.ptr + rows * a.row
    b_ptrs = b.ptr + cols * b.col
    acc = tl.zeros((BLOCK_M, BLOCK_N), out.ptr.dtype.element_ty)
    for _ in range(K):
        a_k = tl.load(a_ptrs, mask=rows < M, other=0)
        b_k = tl.load(b_ptrs, mask=cols < N, other=0)
        acc += a_k[:, None] * b_k[None, :]
        a_ptrs += a.col
        b_ptrs += b.row
    store_tile(acc, c, out, rows, cols, M, N, alpha, beta)


def configs(problem, target):
    """Few elements per thread, so that there is little to reuse in registers; the interpreter wants big tiles."""
    if not target.is_gpu:
        yield config_of({"BLOCK_M": 1024, "BLOCK_N": 1024})
    for block_m, block_n in ((16, 32), (4, 128), (32, 32)):
        yield config_of({"BLOCK_M": block_m, "BLOCK_N": block_n}, num_warps=4, num_stages=1)


def tile(config):
    """Four loads of k in flight."""
    return block_tile(config) | {"stages": 4}


DESIGN = Design(configs=configs, launches=one_program_a_tile(_naive_kernel), work=of_tiles(tile))
