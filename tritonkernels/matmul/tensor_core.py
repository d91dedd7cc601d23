"""Matrix product on tensor cores: a program owns a tile of C and walks K; tl.dot becomes mma or wgmma instructions.

Operands may have any strides (a transposed one is only another pair of strides), batches any single stride, 0 included: an
operand shared by the batch is never copied. Tiles are walked in groups of GROUP_M tile rows, so that a wave of programs re-uses
its operands in L2: a wave of w blocks reads at least BM + w BN columns and rows where a square one reads sqrt(w) (BM + BN).

The precision is the caller's: language/dot.py says how each is kept. ieee runs on CUDA cores; bytes, nibbles and bits become
int8 in registers. On Hopper, where WGMMA reads tf32, fp8 and int8 along K only, an operand that lies otherwise is packed once
(language/packed.py), if the product re-uses it enough.

Mirrors cuda_reference/matmul/wmma.cuh, the seed's tensor-core chapter, which computes a 16 x 16 x 16 tile per warp instruction.
"""

import triton
import triton.language as tl

from ..design import Design
from ..language.tiles import span
from ..launch import TritonLaunch
from .arguments import matmul_arguments
from .operands import packed_operands, refuses_operands
from .space import block_tile, count_tiles, good_tiles, packing, soonest, tile_configs, two_warpgroups_wait
from .tile import store_tile, tile_corner, tile_product


@triton.jit
def _tensor_core_kernel(
    a_ptr,  # (BATCH, M, K)
    b_ptr,  # (BATCH, K, N)
    c_ptr,  # (BATCH, M, N), None without HAS_C
    bias_ptr,  # (N,), None without HAS_BIAS
    out_ptr,  # (BATCH, M, N)
    M,
    N,
    K,
    alpha,
    beta,
    stride_ab,
    stride_am,
    stride_ak,
    stride_bb,
    stride_bk,
    stride_bn,
    stride_cb,
    stride_cm,
    stride_cn,
    stride_bias,
    stride_ob,
    stride_om,
    stride_on,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    HAS_C: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    ACTIVATION: tl.constexpr,
    PRECISION: tl.constexpr,
    ACCUMULATE: tl.constexpr,
    ARE_TF32: tl.constexpr,
    WIDE: tl.constexpr,  # offsets need 64 bits
):
    batch, row, col = tile_corner(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M, WIDE)
    rows = span(row, BLOCK_M, WIDE)
    cols = span(col, BLOCK_N, WIDE)
    a_ptr += batch * stride_ab
    b_ptr += batch * stride_bb
    acc = tile_product(
        a_ptr, b_ptr, rows, cols, 0, K, M, N, stride_am, stride_ak, stride_bk, stride_bn,
        BLOCK_K, PRECISION, ACCUMULATE, ARE_TF32, WIDE,
    )  # fmt: skip
    store_tile(
        acc, c_ptr, bias_ptr, out_ptr, batch, rows, cols, M, N, alpha, beta,
        stride_cb, stride_cm, stride_cn, stride_bias, stride_ob, stride_om, stride_on, HAS_C, HAS_BIAS, ACTIVATION,
    )  # fmt: skip


def configs(problem, target):
    pack = packing(problem, target)
    b_along_k = problem.b_layout == "col" or pack["PACK_B"]
    tiles = good_tiles(problem, target)
    if b_along_k and two_warpgroups_wait(problem, target):
        tiles = [tile for tile in tiles if tile[3] == 4]
    return tile_configs(problem, target, soonest(tiles, problem, target), GROUP_M=8, **pack)


def launches(problem, config, a, b, c, bias, out):
    before, a, b, how = packed_operands(problem, config, a, b)
    yield from before
    arguments = matmul_arguments(problem, a, b, c, bias, out) | how
    yield TritonLaunch(_tensor_core_kernel, (count_tiles(problem, config.kwargs, out.shape[0]),), config, arguments)


DESIGN = Design(
    name="tensor_core",
    summary="tl.dot on tiles in grouped order, any strides; every precision, ieee on CUDA cores",
    mirrors="wmma",
    refuses=refuses_operands,
    configs=configs,
    launches=launches,
    tile=block_tile,
)
