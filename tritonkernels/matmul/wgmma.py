"""Matrix product by wgmma (Gluon): the four warps of a program multiply slices of K straight from shared memory.

Ampere's tensor cores (`pipelined`) take operands out of registers, so each warp loads its fragments out of shared memory first.
On Hopper a warpgroup issues one wgmma, 64 x 128 x 16, whose operands are addresses in shared memory. 8 of them multiply a
slice, and registers hold only the sums, 128 in each thread. Slices lie in rows of 128 bytes, whose chunks of 16 bytes are
swizzled, so that wgmma reads them without bank conflicts. It reads through the async proxy, so each thread has a fence between
its stores and the barrier after which they are read. Mirrors cuda_reference/matmul/wgmma.cuh, which copies by cp.async.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, warpgroup_mma

from ..config import config_of
from ..language.hopper import Product, Tile, store_sums
from ..language.hopper_launches import launch, refuses
from ..language.renamed import barrier
from ..language.structs import Matrix
from ..lesson import OF_16_BITS, lesson


@gluon.jit
def _wgmma_kernel(a: Matrix, b: Matrix, c: Matrix, out: Matrix, product: Product, tile: Tile):
    """c is None where beta is 0."""
    LOADS: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])  # 16 bytes a thread where strides allow
    SLICES: gl.constexpr = gl.NVMMASharedLayout(128, 16, 2)
    tiles_n = gl.cdiv(product.N, tile.BLOCK_N)
    row = gl.program_id(0) // tiles_n * tile.BLOCK_M
    col = gl.program_id(0) % tiles_n * tile.BLOCK_N

    rows = row + gl.arange(0, tile.BLOCK_M, gl.SliceLayout(1, LOADS))[:, None]
    cols = col + gl.arange(0, tile.BLOCK_N, gl.SliceLayout(0, LOADS))[None, :]
    a_ks = gl.arange(0, tile.BLOCK_K, gl.SliceLayout(0, LOADS))[None, :]
    b_ks = gl.arange(0, tile.BLOCK_K, gl.SliceLayout(1, LOADS))[:, None]
    a_place = gl.allocate_shared_memory(a.ptr.dtype.element_ty, [tile.BLOCK_M, tile.BLOCK_K], SLICES)
    b_place = gl.allocate_shared_memory(b.ptr.dtype.element_ty, [tile.BLOCK_K, tile.BLOCK_N], SLICES)

    acc = gl.zeros([tile.BLOCK_M, tile.BLOCK_N], gl.float32, gl.NVMMADistributedLayout([3, 0], [4, 1], [16, tile.BLOCK_N, 16]))
    for k in range(0, product.K, tile.BLOCK_K):
        a_inside = (rows < product.M) & (a_ks < product.K - k)
        b_inside = (b_ks < product.K - k) & (cols < product.N)
        barrier()  # all warps have multiplied the slice before
        a_place.store(gl.load(a.ptr + rows * a.row + (k + a_ks) * a.col, mask=a_inside, other=0))
        b_place.store(gl.load(b.ptr + (k + b_ks) * b.row + cols * b.col, mask=b_inside, other=0))
        fence_async_shared()
        barrier()  # the slice is complete
        acc = warpgroup_mma(a_place, b_place, acc)
    store_sums(acc, row, col, c, out, product)


def configs(problem, target):
    yield config_of({"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "STAGES": 1}, num_warps=4)


def launches(problem, config, a, b, c, bias, out):
    yield from launch(_wgmma_kernel, problem, config, a, b, c, out)


DESIGN = lesson(configs, launches, OF_16_BITS, refuses)
