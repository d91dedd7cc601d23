"""Matrix product by specialised warps (Gluon): `tma` divided into a producer, one warp, and two consumers, a warpgroup each.

In `tma` the warps that multiply also ask for slices, and meet at a barrier for each. Here the producer only asks and consumers
only multiply, each in its own loop. A stage has two mbarriers: `full` completes when a slice has arrived, `empty` when both
consumers have multiplied it. The producer waits for `empty` of the round before, and in the first round its wait ends at once.
A consumer has 64 of a tile's 128 rows, and while it waits for its product, the other's runs. setmaxnreg leaves the producer 24
registers a thread and gives a consumer 240. So a tile may have 256 columns: L2 sends 48 KB for 128 x 256 x 64 products, where
two tiles of 128 x 128 take 64. Mirrors cuda_reference/matmul/specialized.cuh.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, warpgroup_mma, warpgroup_mma_wait

from ..config import config_of
from ..language.hopper import Product, Tile, barriers_for, copy_box, operand, rows_by_k, store_sums
from ..language.hopper_launches import launch_with_boxes, refuses
from ..language.structs import Matrix
from ..lesson import OF_16_BITS, lesson


@gluon.jit
def _produce(a, b, full, empty, row, col, product: Product, tile: Tile):
    for i in range(gl.cdiv(product.K, tile.BLOCK_K)):
        stage = i % tile.STAGES
        mbarrier.wait(empty.index(stage), i // tile.STAGES & 1 ^ 1)
        mbarrier.expect(full.index(stage), 2 * a.boxes.block_type.nbytes + b.boxes.block_type.nbytes)
        copy_box(a, row, i * tile.BLOCK_K, full.index(stage), 2 * stage, tile.A_ALONG_K)
        copy_box(a, row + 64, i * tile.BLOCK_K, full.index(stage), 2 * stage + 1, tile.A_ALONG_K)
        copy_box(b, col, i * tile.BLOCK_K, full.index(stage), stage, tile.B_ALONG_K)


@gluon.jit
def _consume(WHO: gl.constexpr, a, b, full, empty, row, col, c: Matrix, out: Matrix, product: Product, tile: Tile):
    acc = gl.zeros([64, tile.BLOCK_N], gl.float32, gl.NVMMADistributedLayout([3, 0], [4, 1], [16, tile.BLOCK_N, 16]))
    for i in range(gl.cdiv(product.K, tile.BLOCK_K)):
        stage = i % tile.STAGES
        mbarrier.wait(full.index(stage), i // tile.STAGES & 1)
        a_slice = rows_by_k(a, 2 * stage + WHO, tile.A_ALONG_K)
        b_slice = rows_by_k(b, stage, tile.B_ALONG_K).permute((1, 0))
        acc = warpgroup_mma(a_slice, b_slice, acc, is_async=True)
        acc = warpgroup_mma_wait(1, deps=(acc,))  # the product before has ended
        mbarrier.arrive(empty.index((i + tile.STAGES - 1) % tile.STAGES), pred=i > 0)
    acc = warpgroup_mma_wait(0, deps=(acc,))
    store_sums(acc, row + 64 * WHO, col, c, out, product)


@gluon.jit
def _specialized_kernel(a_boxes, b_boxes, c: Matrix, out: Matrix, product: Product, tile: Tile):
    tiles_n = gl.cdiv(product.N, tile.BLOCK_N)
    row = gl.program_id(0) // tiles_n * tile.BLOCK_M
    col = gl.program_id(0) % tiles_n * tile.BLOCK_N

    a, b = operand(a_boxes, 2 * tile.STAGES), operand(b_boxes, tile.STAGES)
    full, empty = barriers_for(tile.STAGES, 1), barriers_for(tile.STAGES, 2)

    gl.warp_specialize([
        (_consume, (0, a, b, full, empty, row, col, c, out, product, tile)),
        (_consume, (1, a, b, full, empty, row, col, c, out, product, tile)),
        (_produce, (a, b, full, empty, row, col, product, tile)),
    ], [4, 1], [240, 24])  # fmt: skip


def configs(problem, target):
    yield config_of({"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "STAGES": 4}, num_warps=4)


def launches(problem, config, a, b, c, bias, out):
    yield from launch_with_boxes(_specialized_kernel, 64, problem, config, a, b, c, out)


DESIGN = lesson(configs, launches, OF_16_BITS, refuses)
