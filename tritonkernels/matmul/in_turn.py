"""Matrix product by consumers in turn (Gluon): `tile_loop` with a tile per consumer; one writes while the other multiplies.

In `tile_loop` both consumers write at once, and nothing is multiplied meanwhile. Here they take tiles in turn ("ping-pong").
The slices of all tiles go through one ring in order, and a consumer skips those of the other. `turn` ends a phase with a tile's
last slice: consumer 0 starts after odd phases, 1 after even ones. Without it a wait for `full` could be a round too early, and
end at once, as it names one bit of the round. 192 x 128 is 192 sums a thread, in three accumulators: more do not fit, and
128 x 128 takes a fifth more from L2. Mirrors cuda_reference/matmul/in_turn.cuh (128 x 128, in pairs of blocks).
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
            mbarrier.expect(full.index(stage), 3 * a.boxes.block_type.nbytes + b.boxes.block_type.nbytes)
            for part in gl.static_range(3):
                copy_box(a, row + 64 * part, k, full.index(stage), 3 * stage + part, tile.A_ALONG_K)
            copy_box(b, col, k, full.index(stage), stage, tile.B_ALONG_K)
            i += 1


@gluon.jit
def _consume(WHO: gl.constexpr, a, b, full, empty, turn, c: Matrix, out: Matrix, product: Product, tile: Tile):
    for index in range(gl.program_id(0) + WHO * gl.num_programs(0), tiles_in(product, tile), 2 * gl.num_programs(0)):
        row, col = corner(index, product, tile)
        i = index // gl.num_programs(0) * gl.cdiv(product.K, tile.BLOCK_K)
        zeros = gl.zeros([64, tile.BLOCK_N], gl.float32, gl.NVMMADistributedLayout([3, 0], [4, 1], [16, tile.BLOCK_N, 16]))
        acc = zeros, zeros, zeros
        mbarrier.wait(turn.index(0), WHO ^ 1)
        for k in range(0, product.K, tile.BLOCK_K):
            stage = i % tile.STAGES
            mbarrier.wait(full.index(stage), i // tile.STAGES & 1)
            b_slice = rows_by_k(b, stage, tile.B_ALONG_K).permute((1, 0))
            upper = warpgroup_mma(rows_by_k(a, 3 * stage, tile.A_ALONG_K), b_slice, acc[0], is_async=True)
            middle = warpgroup_mma(rows_by_k(a, 3 * stage + 1, tile.A_ALONG_K), b_slice, acc[1], is_async=True)
            lower = warpgroup_mma(rows_by_k(a, 3 * stage + 2, tile.A_ALONG_K), b_slice, acc[2], is_async=True)
            acc = warpgroup_mma_wait(3, deps=(upper, middle, lower))  # the slice before is multiplied
            mbarrier.arrive(empty.index((i + tile.STAGES - 1) % tile.STAGES), pred=k > 0)
            i += 1
        mbarrier.arrive(turn.index(0))
        acc = warpgroup_mma_wait(0, deps=acc)
        mbarrier.arrive(empty.index((i + tile.STAGES - 1) % tile.STAGES))
        for part in gl.static_range(3):
            store_sums(acc[part], row + 64 * part, col, c, out, product)


@gluon.jit
def _in_turn_kernel(a_boxes, b_boxes, c: Matrix, out: Matrix, product: Product, tile: Tile):
    a, b = operand(a_boxes, 3 * tile.STAGES), operand(b_boxes, tile.STAGES)
    full, empty, turn = barriers_for(tile.STAGES, 1), barriers_for(tile.STAGES, 1), barriers_for(1, 1)
    gl.warp_specialize([
        (_consume, (0, a, b, full, empty, turn, c, out, product, tile)),
        (_consume, (1, a, b, full, empty, turn, c, out, product, tile)),
        (_produce, (a, b, full, empty, product, tile)),
    ], [4, 1], [240, 24])  # fmt: skip


def configs(problem, target):
    yield config_of({"BLOCK_M": 192, "BLOCK_N": 128, "BLOCK_K": 64, "STAGES": 5, "PROGRAMS": target.sms}, num_warps=4)


def launches(problem, config, a, b, c, bias, out):
    yield from launch_with_boxes(_in_turn_kernel, 64, problem, config, a, b, c, out)


DESIGN = lesson(configs, launches, OF_16_BITS, refuses)
