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
from ..language.structs import Matrices, Vector
from ..language.tiles import span
from ..launch import TritonLaunch
from .parts.arguments import Arithmetic, Epilogue, Sizes, matmul_arguments
from .parts.epilogue import store_tile
from .parts.operands import packed_operands, refuses_operands
from .parts.space import block_tile, count_tiles, fastest, good_tiles, packing, tile_configs, two_warpgroups_wait
from .parts.tile import tile_corner, tile_product


@triton.jit
def _tensor_core_kernel(
    a: Matrices,
    b: Matrices,
    c: Matrices,  # or None
    bias: Vector,  # or None
    out: Matrices,
    sizes: Sizes,
    epilogue: Epilogue,
    how: Arithmetic,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    batch, row, col = tile_corner(tl.program_id(0), sizes, BLOCK_M, BLOCK_N, GROUP_M, how.WIDE)
    rows = span(row, BLOCK_M, how.WIDE)
    cols = span(col, BLOCK_N, how.WIDE)
    acc = tile_product(a, b, batch, rows, cols, 0, sizes.K, sizes, how, BLOCK_K)
    store_tile(acc, c, bias, out, batch, rows, cols, sizes, epilogue)


def configs(problem, target):
    pack = packing(problem, target)
    b_along_k = problem.b_layout == "col" or pack["PACK_B"]
    tiles = good_tiles(problem, target)
    if b_along_k and two_warpgroups_wait(problem, target):
        tiles = [tile for tile in tiles if tile[3] == 4]
    return tile_configs(problem, target, fastest(tiles, problem, target), GROUP_M=8, **pack)


def launches(problem, config, a, b, c, bias, out):
    packs, a, b, are_tf32 = packed_operands(problem, config, a, b)
    yield from packs
    arguments = matmul_arguments(problem, a, b, c, bias, out, are_tf32=are_tf32)
    yield TritonLaunch(_tensor_core_kernel, (count_tiles(problem, config.kwargs, out.shape[0]),), config, *arguments)


DESIGN = Design(
    name="tensor_core",
    summary="tl.dot on tiles in grouped order, any strides; every precision, ieee on CUDA cores",
    mirrors="wmma",
    refuses=refuses_operands,
    configs=configs,
    launches=launches,
    tile=block_tile,
)
