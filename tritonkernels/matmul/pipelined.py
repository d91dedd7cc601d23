"""Matrix product on tensor cores, pipelined (tl.dot, cp.async): while one slice of K is multiplied, the next ones are copied.

In `tiled` every slice waits for global memory, about 600 ns, in which the tensor cores of an H200's SM could do 2.4 million
multiply-adds, more than two slices of 128 x 128 x 64. With s stages Triton keeps s - 1 slices in flight by cp.async, at s times
the shared memory, and one barrier a slice is enough. One stage, as `tiled` has, is for products with few slices, and where many
programs an SM hide the wait: slices then need neither shared memory for copies nor registers for their addresses.

Operands may have any strides, batches any single stride, 0 included: an operand shared by the batch is never copied. Tiles are
walked in groups of GROUP_M tile rows, so that a wave of programs re-uses its operands in L2: a wave of w blocks reads at least
BM + w BN columns and rows where a square one reads sqrt(w) (BM + BN).

The precision is the caller's: language/dot.py says how each is kept. ieee runs on CUDA cores; bytes, nibbles and bits become
int8 in registers. On Hopper, where WGMMA reads tf32, fp8 and int8 along K only, an operand that lies otherwise is packed once
(language/packed.py), if the product re-uses it enough.

Mirrors cuda_reference/matmul/pipelined.cuh, which spells out the stages, ldmatrix and mma.sync; on Hopper tl.dot is wgmma.
"""

from ..design import Design
from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Matrices, Vector
from ..language.tiles import span
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from ..operations.matmul.work import of_tiles
from .parts.arguments import Arithmetic, Epilogue, Sizes, matmul_arguments
from .parts.epilogue import store_tile
from .parts.operands import packed_operands, refuses_operands
from .parts.space import block_tile, count_tiles, good_tiles, packs_of, tiled_configs, tiles_with_room
from .parts.tile import tile_corner, tile_product


@triton.jit
def _pipelined_kernel(
    a: Matrices, b: Matrices, scale_a: Matrices, scale_b: Matrices, c: Matrices, bias: Vector, out: Matrices,
    sizes: Sizes, epilogue: Epilogue, how: Arithmetic,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """Scales, c and bias may be None. The stages are in the config: Triton makes them of the loop in tile_product."""
    wait_for_earlier_kernels()
    batch, row, col = tile_corner(tl.program_id(0), sizes, BLOCK_M, BLOCK_N, GROUP_M, how.WIDE)
    rows = span(row, BLOCK_M, how.WIDE)
    cols = span(col, BLOCK_N, how.WIDE)
    acc = tile_product(a, b, batch, rows, cols, 0, sizes.K, sizes, how, BLOCK_K)
    pairs = span(col // 2, BLOCK_N // 2, how.WIDE) if epilogue.GATED else None
    store_tile(acc, scale_a, scale_b, c, bias, out, batch, rows, cols, sizes, epilogue, pairs)


def configs(problem, target):
    """2 to 4 stages, as many as fit each tile, then one. A single slice is in registers, which 64-bit addresses need too."""
    tiles = good_tiles(problem, target)
    alone = tiles_with_room(problem, target) if problem.wide else tiles
    return tiled_configs(problem, target, [*tiles, *((*tile, 1) for *tile, _ in alone)])


def launches(problem, config, a, b, c, bias, out, *scales):
    packs, a, b, are_tf32 = packed_operands(problem, config, a, b)
    yield from packs
    arguments = matmul_arguments(problem, a, b, c, bias, out, *scales, are_tf32=are_tf32)
    yield TritonLaunch(_pipelined_kernel, (count_tiles(problem, config.kwargs, out.shape[0]),), config, *arguments)


DESIGN = Design(
    refuses=refuses_operands,
    configs=configs,
    launches=launches,
    work=of_tiles(block_tile, packs_of),
    tile=block_tile,
    gates=True,
)
