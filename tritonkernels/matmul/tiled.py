"""Matrix product on tensor cores, tiled (tl.dot): a program owns a tile of C and walks K, one slice of A and of B at a time.

Operands may have any strides (a transposed one is only another pair of strides), batches any single stride, 0 included: an
operand shared by the batch is never copied. Tiles are walked in groups of GROUP_M tile rows, so that a wave of programs re-uses
its operands in L2: a wave of w blocks reads at least BM + w BN columns and rows where a square one reads sqrt(w) (BM + BN).

The precision is the caller's: language/dot.py says how each is kept. ieee runs on CUDA cores; bytes, nibbles and bits become
int8 in registers. On Hopper, where WGMMA reads tf32, fp8 and int8 along K only, an operand that lies otherwise is packed once
(language/packed.py), if the product re-uses it enough.

Mirrors cuda_reference/matmul/tiled.cuh. CUDA's `naive`, one warp with one WMMA fragment, has no twin here: a Triton program has
no fragments.
"""

from ..design import Design
from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Matrices, Vector
from ..language.tiles import span
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from .parts.arguments import Arithmetic, Epilogue, Sizes, matmul_arguments
from .parts.epilogue import store_tile
from .parts.operands import packed_operands, refuses_operands
from .parts.space import block_tile, count_tiles, good_tiles, packs_of, tiled_configs, tiles_with_room
from .parts.tile import tile_corner, tile_product
from .parts.work import of_tiles


@triton.jit
def _tiled_kernel(
    a: Matrices, b: Matrices, scale_a: Matrices, scale_b: Matrices, c: Matrices, bias: Vector, out: Matrices,
    sizes: Sizes, epilogue: Epilogue, how: Arithmetic,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """Scales, c and bias may be None."""
    wait_for_earlier_kernels()
    batch, row, col = tile_corner(tl.program_id(0), sizes, BLOCK_M, BLOCK_N, GROUP_M, how.WIDE)
    rows = span(row, BLOCK_M, how.WIDE)
    cols = span(col, BLOCK_N, how.WIDE)
    acc = tile_product(a, b, batch, rows, cols, 0, sizes.K, sizes, how, BLOCK_K)
    store_tile(acc, scale_a, scale_b, c, bias, out, batch, rows, cols, sizes, epilogue)


def configs(problem, target):
    """One stage: a slice is loaded, then multiplied, then the next is loaded. In registers, which 64-bit addresses need too."""
    tiles = tiles_with_room(problem, target) if problem.wide else good_tiles(problem, target)
    return tiled_configs(problem, target, tiles, num_stages=1)


def launches(problem, config, a, b, c, bias, out, *scales):
    packs, a, b, are_tf32 = packed_operands(problem, config, a, b)
    yield from packs
    arguments = matmul_arguments(problem, a, b, c, bias, out, *scales, are_tf32=are_tf32)
    yield TritonLaunch(_tiled_kernel, (count_tiles(problem, config.kwargs, out.shape[0]),), config, *arguments)


DESIGN = Design(
    refuses=refuses_operands, configs=configs, launches=launches, work=of_tiles(block_tile, packs_of), tile=block_tile
)
