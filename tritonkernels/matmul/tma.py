"""Matrix product by TMA and wgmma (Gluon): `wgmma` with slices that one thread asks for, STAGES - 1 of them ahead.

In `wgmma` all threads load a slice through registers, and nothing is multiplied meanwhile. Here one thread asks TMA for a box
of A and one of B. TMA swizzles them, and fills them up with zeros where the matrix ends, so only the result needs a mask. The
places of slices are a ring. Each has an mbarrier `full`, which expects the 32 KB of a slice. Its phases count the rounds of the
ring, and a wait names the last bit of the round. Slice i is multiplied asynchronously. Once all warps know that the product of
slice i - 1 has ended, its place takes slice i + STAGES - 1. Three stages are 96 KB, so two programs share an SM: one writes its
result while the other multiplies. Mirrors cuda_reference/matmul/tma.cuh.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, warpgroup_mma, warpgroup_mma_wait

from ..config import config_of
from ..language.hopper import Product, Tile, barriers_for, copy_box, operand, rows_by_k, store_sums
from ..language.hopper_launches import launch_with_boxes, refuses
from ..language.renamed import barrier
from ..language.structs import Matrix
from ..lesson import OF_16_BITS, lesson


@gluon.jit
def _ask(i, a, b, full, row, col, K, tile: Tile):
    """Ask for slice i, if there is one."""
    place = i % tile.STAGES
    k = i * tile.BLOCK_K
    mbarrier.expect(full.index(place), a.boxes.block_type.nbytes + b.boxes.block_type.nbytes, pred=k < K)
    copy_box(a, row, k, full.index(place), place, tile.A_ALONG_K, pred=k < K)
    copy_box(b, col, k, full.index(place), place, tile.B_ALONG_K, pred=k < K)


@gluon.jit
def _tma_kernel(a_boxes, b_boxes, c: Matrix, out: Matrix, product: Product, tile: Tile):
    """a_boxes, b_boxes: TMA descriptors. c is None where beta is 0."""
    tiles_n = gl.cdiv(product.N, tile.BLOCK_N)
    row = gl.program_id(0) // tiles_n * tile.BLOCK_M
    col = gl.program_id(0) % tiles_n * tile.BLOCK_N

    a = operand(a_boxes, tile.STAGES)
    b = operand(b_boxes, tile.STAGES)
    full = barriers_for(tile.STAGES, 1)

    acc = gl.zeros([tile.BLOCK_M, tile.BLOCK_N], gl.float32, gl.NVMMADistributedLayout([3, 0], [4, 1], [16, tile.BLOCK_N, 16]))
    for i in gl.static_range(tile.STAGES - 1):
        _ask(i, a, b, full, row, col, product.K, tile)
    for i in range(gl.cdiv(product.K, tile.BLOCK_K)):
        stage = i % tile.STAGES
        mbarrier.wait(full.index(stage), i // tile.STAGES & 1)
        a_slice = rows_by_k(a, stage, tile.A_ALONG_K)
        b_slice = rows_by_k(b, stage, tile.B_ALONG_K).permute((1, 0))
        acc = warpgroup_mma(a_slice, b_slice, acc, is_async=True)
        acc = warpgroup_mma_wait(1, deps=(acc,))  # the product before has ended, for this warp
        barrier()  # and for all warps
        _ask(i + tile.STAGES - 1, a, b, full, row, col, product.K, tile)
    acc = warpgroup_mma_wait(0, deps=(acc,))
    store_sums(acc, row, col, c, out, product)


def configs(problem, target):
    yield config_of({"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "STAGES": 3}, num_warps=4)


def launches(problem, config, a, b, c, bias, out):
    yield from launch_with_boxes(_tma_kernel, 128, problem, config, a, b, c, out)


DESIGN = lesson(configs, launches, OF_16_BITS, refuses)
