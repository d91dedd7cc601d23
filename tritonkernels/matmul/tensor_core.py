"""Matrix product on tensor cores: a program owns a tile of C and walks K; tl.dot becomes mma or wgmma instructions.

Operands may have any strides (a transposed one is only another pair of strides), batches any single stride, 0 included: an
operand shared by the batch is never copied. Tiles are walked in groups of GROUP_M tile rows, so that a wave of programs re-uses
its operands in L2: a wave of w blocks reads at least BM + w BN columns and rows where a square one reads sqrt(w) (BM + BN).

The precision is the caller's: fp16, bf16 and int8 products are exact, tf32 operands are rounded to nearest first (the hardware
would truncate), ieee runs on CUDA cores. Sums are fp32, or int32 for int8.

Mirrors cuda_reference/matmul/wmma.cuh, the seed's tensor-core chapter, which computes a 16 x 16 x 16 tile per warp instruction.
"""

import triton
import triton.language as tl

from ..design import Design
from ..language.dot import faithful_dot
from ..language.epilogue import rounded
from ..language.tiles import grouped_tile, span
from ..launch import TritonLaunch


@triton.jit
def _tensor_core_kernel(
    a_ptr,  # (BATCH, M, K)
    b_ptr,  # (BATCH, K, N)
    out_ptr,  # (BATCH, M, N)
    M,
    N,
    K,
    stride_ab,
    stride_am,
    stride_ak,
    stride_bb,
    stride_bk,
    stride_bn,
    stride_ob,
    stride_om,
    stride_on,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    PRECISION: tl.constexpr,
    WIDE: tl.constexpr,  # offsets need 64 bits
):
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    program = tl.program_id(0)
    batch = program // (tiles_m * tiles_n)
    tile_m, tile_n = grouped_tile(program % (tiles_m * tiles_n), tiles_m, tiles_n, GROUP_M)
    rows = span(tile_m * BLOCK_M, BLOCK_M, WIDE)
    cols = span(tile_n * BLOCK_N, BLOCK_N, WIDE)
    if WIDE:
        batch = batch.to(tl.int64)
    a_ptr += batch * stride_ab
    b_ptr += batch * stride_bb
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.int32 if PRECISION == "int8" else tl.float32)
    for k in range(0, K, BLOCK_K):
        ks = span(k, BLOCK_K, WIDE)
        a_inside = (rows < M)[:, None] & (ks < K)[None, :]
        b_inside = (ks < K)[:, None] & (cols < N)[None, :]
        a = tl.load(a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak, mask=a_inside, other=0)
        b = tl.load(b_ptr + ks[:, None] * stride_bk + cols[None, :] * stride_bn, mask=b_inside, other=0)
        acc = faithful_dot(a, b, acc, PRECISION)
    inside = (rows < M)[:, None] & (cols < N)[None, :]
    out_ptrs = out_ptr + batch * stride_ob + rows[:, None] * stride_om + cols[None, :] * stride_on
    tl.store(out_ptrs, rounded(acc, out_ptr.dtype.element_ty), mask=inside)


# (BLOCK_M, BLOCK_N, bytes of K per row, num_warps, num_stages), biggest tile first
TILES = (
    (128, 256, 128, 8, 3),
    (128, 128, 128, 8, 3),
    (128, 64, 128, 4, 3),
    (64, 64, 128, 8, 3),
    (32, 64, 128, 4, 4),
    (16, 64, 256, 4, 4),
)
ON_CUDA_CORES = ((128, 128, 64, 8, 2), (64, 64, 128, 4, 2), (32, 32, 128, 4, 2))


def shared_bytes(tile):
    """What the staged slices of A and B take: BLOCK_K is given in bytes, so the dtype does not matter."""
    block_m, block_n, k_bytes, _, num_stages = tile
    return (block_m + block_n) * k_bytes * num_stages


def fits(tile, problem, target):
    """Whether the staged slices fit in shared memory and the accumulators in registers, beside the operands.

    128 accumulators per thread fit only where the instruction reads its operands from shared memory: wgmma (sm_90) and tcgen05
    (sm_100, which has no int8). mma wants them in registers.
    """
    if not target.is_gpu:
        return True
    block_m, block_n, _, num_warps, _ = tile
    operands_in_shared = target.arch == 90 or (target.arch == 100 and problem.precision != "int8")
    per_thread = block_m * block_n / (32 * num_warps)
    return shared_bytes(tile) <= target.shared_per_block and per_thread <= (128 if operands_in_shared else 64)


def configs(problem, target):
    """The biggest tile that still gives every SM a block comes first; the others that fit follow."""
    if not target.is_gpu:
        yield triton.Config({"BLOCK_M": 256, "BLOCK_N": 256, "BLOCK_K": 64, "GROUP_M": 1})
    tiles = ON_CUDA_CORES if problem.precision == "ieee" else TILES
    tiles = [tile for tile in tiles if fits(tile, problem, target)]

    def blocks(tile):
        return problem.batch * triton.cdiv(problem.m, tile[0]) * triton.cdiv(problem.n, tile[1])

    full = [tile for tile in tiles if blocks(tile) >= target.sms]
    best = full[0] if full else tiles[-1]
    for block_m, block_n, k_bytes, num_warps, num_stages in (best, *(tile for tile in tiles if tile != best)):
        tile = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": k_bytes // problem.dtype.itemsize, "GROUP_M": 8}
        yield triton.Config(tile, num_warps=num_warps, num_stages=num_stages)


def block_tile(config):
    """The block tile of a config in the analysis' terms."""
    tile = {name: config.kwargs[f"BLOCK_{name[1]}"] for name in ("BM", "BN", "BK")}
    return {**tile, "GROUP_M": config.kwargs["GROUP_M"], "threads": 32 * config.num_warps, "stages": config.num_stages}


def launches(problem, config, a, b, c, bias, out):
    tiles = triton.cdiv(problem.m, config.kwargs["BLOCK_M"]) * triton.cdiv(problem.n, config.kwargs["BLOCK_N"])
    arguments = {
        "a_ptr": a,
        "b_ptr": b,
        "out_ptr": out,
        "M": problem.m,
        "N": problem.n,
        "K": problem.k,
        **dict(zip(("stride_ab", "stride_am", "stride_ak"), a.stride())),
        **dict(zip(("stride_bb", "stride_bk", "stride_bn"), b.stride())),
        **dict(zip(("stride_ob", "stride_om", "stride_on"), out.stride())),
        "PRECISION": problem.precision,
        "WIDE": problem.wide,
    }
    yield TritonLaunch(_tensor_core_kernel, (a.shape[0] * tiles,), config, arguments)


def refuses(problem, target):
    if problem.precision not in ("fp16", "bf16", "tf32", "ieee", "int8"):
        return f"it has no {problem.precision}"
    if problem.accumulate == "fp16":
        return "it adds up in fp32, not in fp16"
    if problem.fused:
        return f"it fuses nothing with the product, not {', '.join(problem.fused)}"
    return None


DESIGN = Design(
    name="tensor_core",
    summary="tl.dot on tiles in grouped order; fp16, bf16, tf32, int8 on tensor cores, ieee on CUDA cores",
    mirrors="wmma",
    refuses=refuses,
    configs=configs,
    launches=launches,
    tile=block_tile,
)
