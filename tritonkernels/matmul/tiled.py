"""Matrix product on tensor cores, tiled (tl.dot): a program owns a BLOCK_M x BLOCK_N tile of C and walks K, a slice at a time.

BLOCK_K of A and of B are loaded, staged in shared memory and multiplied, then the next. Each element loaded is used
BLOCK_N times (of A) or BLOCK_M times (of B): per k a tile of 128 x 128 reads 256 elements for 16384 multiply-adds, one for 64,
where single fragments of 16 x 16 read one for 8. tl.dot of 16-bit slices is the block-level spelling of what the CUDA twin
writes out: Triton gives each warp its part of the tile, swizzles shared memory and issues mma.sync, or on Hopper wgmma.

Operands may have any strides: a transposed one is only another pair of strides. Zeros past the edges add nothing to a sum.

Mirrors cuda_reference/matmul/tiled.cuh. CUDA's `naive`, one warp with one WMMA fragment, has no twin here: a Triton program has
no fragments.
"""

from ..config import config_of
from ..integers import ceil_div
from ..language.dot import faithful_dot, widened
from ..language.epilogue import rounded
from ..language.structs import Matrix
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from ..lesson import OF_16_BITS, lesson
from .parts.operands import refuses_operands

CONFIG = config_of({"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}, num_warps=8, num_stages=1)  # one slice at a time


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
        acc = faithful_dot(a_slice, b_slice, acc, "bf16" if a_slice.dtype == tl.bfloat16 else "fp16")  # tl.dot, on a GPU
        a_ptrs += BLOCK_K * a.col
        b_ptrs += BLOCK_K * b.row

    result = alpha * acc
    inside = (rows < M)[:, None] & (cols < N)[None, :]
    if c is not None:
        c_tile = tl.load(c.ptr + rows[:, None] * c.row + cols[None, :] * c.col, mask=inside, other=0)
        result += beta * widened(c_tile, tl.float32)
    out_ptrs = out.ptr + rows[:, None] * out.row + cols[None, :] * out.col
    tl.store(out_ptrs, rounded(result, out.ptr.dtype.element_ty), mask=inside)


def launches(problem, config, a, b, c, bias, out):
    tiles = ceil_div(problem.m, CONFIG.kwargs["BLOCK_M"]) * ceil_div(problem.n, CONFIG.kwargs["BLOCK_N"])
    matrices = (Matrix.of(None if x is None else x[0]) for x in (a, b, c, out))
    sizes = problem.m, problem.n, problem.k
    yield TritonLaunch(_tiled_kernel, (tiles,), config, *matrices, *sizes, problem.alpha, problem.beta)


DESIGN = lesson(lambda problem, target: [CONFIG], launches, OF_16_BITS, refuses_operands)
