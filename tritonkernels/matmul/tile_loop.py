"""Matrix product by a loop over tiles (Gluon): `specialized` with one program per SM, which walks tile after tile.

A program of `specialized` ends with its tile. Until the next one has made its barriers and its first slices have arrived, the
tensor cores of its SM wait, and they wait while a result is written. Here producer and consumers walk the same tiles, each in
its own loop, and the ring goes on from tile to tile: `i` counts the slices of all tiles. While consumers write a result, the
producer fills the ring with slices of the next tile. So each consumer gives back the place of a tile's last slice, too.

Tiles are walked in groups of 8 rows of tiles. 132 programs then need the slices of 8 x 17 tiles at a time, 25 rows and columns of
tiles, and L2 has most of them already. Row by row, 4096 columns would be 16 tiles: 8 x 17 as well, but 65536 columns 1 x 132.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, warpgroup_mma, warpgroup_mma_wait

from ..config import config_of
from ..language.hopper import Operand, Product, Tile, barriers_for, copy_box, places_for, rows_by_k, store_sums
from ..language.hopper_launches import TYPES, launch_with_boxes, refuses, tiles_of
from ..language.structs import Matrix
from ..language.tiles import grouped_tile
from ..lesson import lesson


@gluon.jit
def _produce(a: Operand, b: Operand, full, empty, tiles_m, tiles_n, product: Product, tile: Tile):
    i = 0
    for index in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        tile_m, tile_n = grouped_tile(index, tiles_m, tiles_n, 8)
        for k in range(0, product.K, tile.BLOCK_K):
            stage = i % tile.STAGES
            mbarrier.wait(empty.index(stage), i // tile.STAGES & 1 ^ 1)
            mbarrier.expect(full.index(stage), 2 * a.boxes.block_type.nbytes + b.boxes.block_type.nbytes)
            copy_box(a, tile_m * tile.BLOCK_M, k, full.index(stage), 2 * stage, tile.A_ALONG_K)
            copy_box(a, tile_m * tile.BLOCK_M + 64, k, full.index(stage), 2 * stage + 1, tile.A_ALONG_K)
            copy_box(b, tile_n * tile.BLOCK_N, k, full.index(stage), stage, tile.B_ALONG_K)
            i += 1


@gluon.jit
def _consume(
    WHO: gl.constexpr, a, b, full, empty, tiles_m, tiles_n, c: Matrix, out: Matrix, product: Product, tile: Tile
):
    SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, tile.BLOCK_N, 16])
    i = 0
    for index in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        tile_m, tile_n = grouped_tile(index, tiles_m, tiles_n, 8)
        acc = gl.zeros([64, tile.BLOCK_N], gl.float32, SUMS)
        for k in range(0, product.K, tile.BLOCK_K):
            stage = i % tile.STAGES
            mbarrier.wait(full.index(stage), i // tile.STAGES & 1)
            a_slice = rows_by_k(a, 2 * stage + WHO, tile.A_ALONG_K)
            b_slice = rows_by_k(b, stage, tile.B_ALONG_K).permute((1, 0))
            acc = warpgroup_mma(a_slice, b_slice, acc, is_async=True)
            acc = warpgroup_mma_wait(1, deps=(acc,))  # the product before has ended
            mbarrier.arrive(empty.index((i + tile.STAGES - 1) % tile.STAGES), pred=k > 0)
            i += 1
        acc = warpgroup_mma_wait(0, deps=(acc,))
        mbarrier.arrive(empty.index((i + tile.STAGES - 1) % tile.STAGES), pred=product.K > 0)
        store_sums(acc, tile_m * tile.BLOCK_M + 64 * WHO, tile_n * tile.BLOCK_N, c, out, product)


@gluon.jit
def _tile_loop_kernel(a_boxes, b_boxes, c: Matrix, out: Matrix, product: Product, tile: Tile):
    """a_boxes, b_boxes: TMA descriptors, of 64 rows of A. c is None where beta is 0."""
    tiles_m = gl.cdiv(product.M, tile.BLOCK_M)
    tiles_n = gl.cdiv(product.N, tile.BLOCK_N)

    a = Operand(a_boxes, places_for(2 * tile.STAGES, a_boxes))
    b = Operand(b_boxes, places_for(tile.STAGES, b_boxes))
    full = barriers_for(tile.STAGES, 1)
    empty = barriers_for(tile.STAGES, 2)
    gl.warp_specialize([
        (_consume, (0, a, b, full, empty, tiles_m, tiles_n, c, out, product, tile)),
        (_consume, (1, a, b, full, empty, tiles_m, tiles_n, c, out, product, tile)),
        (_produce, (a, b, full, empty, tiles_m, tiles_n, product, tile)),
    ], [4, 1], [240, 24])  # fmt: skip


def configs(problem, target):
    yield config_of({"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "STAGES": 4, "PROGRAMS": target.sms}, num_warps=4)


def launches(problem, config, a, b, c, bias, out):
    programs = min(config.kwargs["PROGRAMS"], tiles_of(problem, config))
    yield from launch_with_boxes(_tile_loop_kernel, programs, 64, problem, config, a, b, c, out)


DESIGN = lesson(configs, launches, TYPES, refuses)
