"""Matrix product by consumers in turn (Gluon): `tile_loop`, but each consumer has tiles of its own; one writes while one multiplies.

In `tile_loop` both consumers write at the same time, and nothing is multiplied meanwhile ("cooperative"). Here the tiles of a
program go to its consumers by turns ("ping-pong"): consumer 0 multiplies the first one, and while it writes the result, consumer
1 multiplies the second. The ring has the slices of all tiles in order; each consumer skips those of the other.

Who multiplies says `turn`, a barrier whose phase ends with a tile's last slice: consumer 0 waits for the ends of odd phases, 1 for
those of even ones. It is needed although slices come in order: a wait for `full` names one bit of the round, so a consumer that
waited for a slice of a later round than the next would be let in by an earlier one.

A tile is 192 x 128: three accumulators of 64 x 128, 192 sums a thread, as large as its registers allow.
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
            mbarrier.expect(full.index(stage), 3 * a.boxes.block_type.nbytes + b.boxes.block_type.nbytes)
            for part in gl.static_range(3):
                copy_box(a, tile_m * tile.BLOCK_M + 64 * part, k, full.index(stage), 3 * stage + part, tile.A_ALONG_K)
            copy_box(b, tile_n * tile.BLOCK_N, k, full.index(stage), stage, tile.B_ALONG_K)
            i += 1


@gluon.jit
def _consume(
    WHO: gl.constexpr, a, b, full, empty, turn, tiles_m, tiles_n, c: Matrix, out: Matrix, product: Product, tile: Tile
):
    SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, tile.BLOCK_N, 16])
    slices = gl.cdiv(product.K, tile.BLOCK_K)
    i = WHO * slices
    for index in range(gl.program_id(0) + WHO * gl.num_programs(0), tiles_m * tiles_n, 2 * gl.num_programs(0)):
        tile_m, tile_n = grouped_tile(index, tiles_m, tiles_n, 8)
        upper = gl.zeros([64, tile.BLOCK_N], gl.float32, SUMS)
        middle = gl.zeros([64, tile.BLOCK_N], gl.float32, SUMS)
        lower = gl.zeros([64, tile.BLOCK_N], gl.float32, SUMS)
        mbarrier.wait(turn.index(0), WHO ^ 1)
        for k in range(0, product.K, tile.BLOCK_K):
            stage = i % tile.STAGES
            mbarrier.wait(full.index(stage), i // tile.STAGES & 1)
            b_slice = rows_by_k(b, stage, tile.B_ALONG_K).permute((1, 0))
            upper = warpgroup_mma(rows_by_k(a, 3 * stage, tile.A_ALONG_K), b_slice, upper, is_async=True)
            middle = warpgroup_mma(rows_by_k(a, 3 * stage + 1, tile.A_ALONG_K), b_slice, middle, is_async=True)
            lower = warpgroup_mma(rows_by_k(a, 3 * stage + 2, tile.A_ALONG_K), b_slice, lower, is_async=True)
            upper, middle, lower = warpgroup_mma_wait(3, deps=(upper, middle, lower))  # the slice before is multiplied
            mbarrier.arrive(empty.index((i + tile.STAGES - 1) % tile.STAGES), pred=k > 0)
            i += 1
        mbarrier.arrive(turn.index(0))
        upper, middle, lower = warpgroup_mma_wait(0, deps=(upper, middle, lower))
        mbarrier.arrive(empty.index((i + tile.STAGES - 1) % tile.STAGES), pred=product.K > 0)
        store_sums(upper, tile_m * tile.BLOCK_M, tile_n * tile.BLOCK_N, c, out, product)
        store_sums(middle, tile_m * tile.BLOCK_M + 64, tile_n * tile.BLOCK_N, c, out, product)
        store_sums(lower, tile_m * tile.BLOCK_M + 128, tile_n * tile.BLOCK_N, c, out, product)
        i += slices


@gluon.jit
def _in_turn_kernel(a_boxes, b_boxes, c: Matrix, out: Matrix, product: Product, tile: Tile):
    """a_boxes, b_boxes: TMA descriptors, of 64 rows of A. c is None where beta is 0."""
    tiles_m = gl.cdiv(product.M, tile.BLOCK_M)
    tiles_n = gl.cdiv(product.N, tile.BLOCK_N)

    a = Operand(a_boxes, places_for(3 * tile.STAGES, a_boxes))
    b = Operand(b_boxes, places_for(tile.STAGES, b_boxes))
    full = barriers_for(tile.STAGES, 1)
    empty = barriers_for(tile.STAGES, 1)
    turn = barriers_for(1, 1)
    gl.warp_specialize([
        (_consume, (0, a, b, full, empty, turn, tiles_m, tiles_n, c, out, product, tile)),
        (_consume, (1, a, b, full, empty, turn, tiles_m, tiles_n, c, out, product, tile)),
        (_produce, (a, b, full, empty, tiles_m, tiles_n, product, tile)),
    ], [4, 1], [240, 24])  # fmt: skip


def configs(problem, target):
    yield config_of({"BLOCK_M": 192, "BLOCK_N": 128, "BLOCK_K": 64, "STAGES": 5, "PROGRAMS": target.sms}, num_warps=4)


def launches(problem, config, a, b, c, bias, out):
    programs = min(config.kwargs["PROGRAMS"], tiles_of(problem, config))
    yield from launch_with_boxes(_in_turn_kernel, programs, 64, problem, config, a, b, c, out)


DESIGN = lesson(configs, launches, TYPES, refuses)
