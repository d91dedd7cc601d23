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
from ..language.epilogue import blend
from ..language.tiles import span
from ..launch import TritonLaunch
from .arguments import gemm_arguments


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
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        ks = span(k, BLOCK_K, WIDE)
        a_inside = (rows < M)[:, None] & (ks < K)[None, :]
        b_inside = (ks < K)[:, None] & (cols < N)[None, :]
        a = tl.load(a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak, mask=a_inside, other=0)
        b = tl.load(b_ptr + ks[:, None] * stride_bk + cols[None, :] * stride_bn, mask=b_inside, other=0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    inside = (rows < M)[:, None] & (cols < N)[None, :]
    c_ptrs = c_ptr + rows[:, None] * stride_cm + cols[None, :] * stride_cn if HAS_C else None
    result = blend(acc, c_ptrs, alpha, beta, inside, HAS_C)
    tl.store(out_ptr + rows[:, None] * stride_om + cols[None, :] * stride_on, result, mask=inside)


# (BLOCK_M, BLOCK_N, BLOCK_K, num_warps), biggest tile first: at most 64 accumulators per thread, so that 128 registers do
TILES = ((128, 128, 16, 8), (128, 64, 16, 4), (64, 128, 16, 4), (64, 64, 16, 4), (32, 64, 32, 4), (32, 32, 32, 4))


def configs(problem, target):
    """The biggest tile that still gives every SM a block comes first; the others follow for the tuner."""
    if not target.is_gpu:
        yield triton.Config({"BLOCK_M": 256, "BLOCK_N": 256, "BLOCK_K": 64})

    def blocks(tile):
        return triton.cdiv(problem.m, tile[0]) * triton.cdiv(problem.n, tile[1])

    full = [tile for tile in TILES if blocks(tile) >= target.sms]
    best = full[0] if full else TILES[-1]
    for block_m, block_n, block_k, num_warps in (best, *(tile for tile in TILES if tile != best)):
        tile = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k}
        yield triton.Config(tile, num_warps=num_warps, num_stages=2)


def launches(problem, config, a, b, c, out):
    tiles = triton.cdiv(problem.m, config.kwargs["BLOCK_M"]) * triton.cdiv(problem.n, config.kwargs["BLOCK_N"])
    yield TritonLaunch(_tiled_kernel, (tiles,), config, gemm_arguments(problem, a, b, c, out))


DESIGN = Design(
    name="tiled",
    summary="block tile in shared memory, outer products in registers",
    mirrors="gemm seed: shared memory + outer product",
    refuses=takes_everything,
    configs=configs,
    launches=launches,
)
