"""FP32 GEMM, tiled: a program owns a BLOCK_M x BLOCK_N tile of C and walks K in slices of BLOCK_K, staged in shared memory.

Over `naive` each element loaded is used BLOCK_N (of A) or BLOCK_M (of B) times, and inside a thread the outer product of TM +
TN registers does TM * TN multiply-adds. The tile's intensity is BM * BN / (2 (BM + BN)) FLOP per byte: 64 x 64 gives 16, 128 x
128 gives 32; BLOCK_K cancels, it only sets how often the loop pays its overhead.

tl.dot with input_precision="ieee" is the block-level spelling: Triton stages both slices in shared memory and issues FFMA.
It wants slices of at least 16 k, where the CUDA twin has 8, and gives each of 256 threads 64 sums in four squares of 4 x 4, as
`z_order` will. Mirrors cuda_reference/gemm/tiled.cuh, the write-up's "shared memory + outer product".
"""

from ..config import config_of
from ..language.structs import Matrix
from ..language.triton import tl, triton
from ..lesson import lesson
from .parts.lessons import FLOAT32, launch
from .parts.tile import store_tile

TILE = config_of({"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 16}, num_warps=8, num_stages=1)  # one slice at a time


@triton.jit
def _tiled_kernel(
    a: Matrix, b: Matrix, c: Matrix, out: Matrix, M, N, K, alpha, beta,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """a (M, K), b (K, N), c and out (M, N); c is None where beta is 0."""
    tiles_n = tl.cdiv(N, BLOCK_N)
    rows = tl.program_id(0) // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0) % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    a_ptrs = a.ptr + rows[:, None] * a.row + ks[None, :] * a.col
    b_ptrs = b.ptr + ks[:, None] * b.row + cols[None, :] * b.col
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a_slice = tl.load(a_ptrs, mask=(rows < M)[:, None] & (ks < K - k)[None, :], other=0)
        b_slice = tl.load(b_ptrs, mask=(ks < K - k)[:, None] & (cols < N)[None, :], other=0)
        acc = tl.dot(a_slice, b_slice, acc, input_precision="ieee")
        a_ptrs += BLOCK_K * a.col
        b_ptrs += BLOCK_K * b.row
    store_tile(acc, c, out, rows, cols, M, N, alpha, beta)


def launches(problem, config, a, b, c, out):
    yield launch(_tiled_kernel, problem, config, a, b, c, out)


DESIGN = lesson(lambda problem, target: [TILE], launches, FLOAT32)
