"""Matrix product by a loop over tiles (Gluon): `specialized` with one program per SM, which walks tile after tile.

A program of `specialized` ends with its tile. The tensor cores of its SM wait while it writes the result, and until the first
slices of the next one have arrived. Here all warps walk the same tiles, each in its own loop, and the ring goes on from tile to
tile: `i` counts the slices of all tiles. While consumers write a result, the producer fills the ring for the next tile, so they
also give back the place of a tile's last slice. Tiles are walked in groups of 8 rows, so that 132 programs at a time share the
slices of 8 rows and 17 columns of tiles in L2. Mirrors cuda_reference/matmul/tile_loop.cuh.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, warpgroup_mma, warpgroup_mma_wait

from ..config import config_of
from ..language.hopper import Product, Tile, barriers_for, copy_box, corner, operand, rows_by_k, store_sums, tiles_in
from ..language.hopper_launches import launch_with_boxes, refuses
from ..language.structs import Matrix
from ..lesson import OF_16_BITS, lesson


@gluon.jit
def _produce(a, b, full, empty, product: Product, tile: Tile):
    i = 0
    for index in range(gl.program_id(0), tiles_in(product, tile), gl.num_programs(0)):
        row, col = corner(index, product, tile)
        for k in range(0, product.K, tile.BLOCK_K):
            stage = i % tile.STAGES
            mbarrier.wait(empty.index(stage), i // tile.STAGES & 1 ^ 1)
            mbarrier.expect(full.index(stage), 2 * a.boxes.block_type.nbytes + b.boxes.block_type.nbytes)
            copy_box(a, row, k, full.index(stage), 2 * stage, tile.A_ALONG_K)
            copy_box(a, row + 64, k, full.index(stage), 2 * stage + 1, tile.A_ALONG_K)
            copy_box(b, col, k, full.index(stage), stage, tile.B_ALONG_K)
            i += 1


@gluon.jit
def _consume(WHO: gl.constexpr, a, b, full, empty, c: Matrix, out: Matrix, product: Product, tile: Tile):
    i = 0
    for index in range(gl.program_id(0), tiles_in(product, tile), gl.num_programs(0)):
        row, col = corner(index, product, tile)
        acc = gl.zeros([64, tile.BLOCK_N], gl.float32, gl.NVMMADistributedLayout([3, 0], [4, 1], [16, tile.BLOCK_N, 16]))
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
        mbarrier.arrive(empty.index((i + tile.STAGES - 1) % tile.STAGES))
        store_sums(acc, row + 64 * WHO, col, c, out, product)


@gluon.jit
def _tile_loop_kernel(a_boxes, b_boxes, c: Matrix, out: Matrix, product: Product, tile: Tile):
    a, b = operand(a_boxes, 2 * tile.STAGES), operand(b_boxes, tile.STAGES)
    full, empty = barriers_for(tile.STAGES, 1), barriers_for(tile.STAGES, 2)

    gl.warp_specialize([
        (_consume, (0, a, b, full, empty, c, out, product, tile)),
        (_consume, (1, a, b, full, empty, c, out, product, tile)),
        (_produce, (a, b, full, empty, product, tile)),
    ], [4, 1], [240, 24])  # fmt: skip


def configs(problem, target):
    yield config_of({"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "STAGES": 4, "PROGRAMS": target.sms}, num_warps=4)


def launches(problem, config, a, b, c, bias, out):
    yield from launch_with_boxes(_tile_loop_kernel, 64, problem, config, a, b, c, out)


DESIGN = lesson(configs, launches, OF_16_BITS, refuses)
