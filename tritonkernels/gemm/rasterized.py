"""FP32 GEMM, rasterized: tiles are handed out in groups of GROUP_M tile rows, so that a wave of programs shares what it reads.

A wave of w programs in plain order is flat: it reads 1 tile row of A and w tile columns of B. It needs BM + w BN distinct rows
and columns, of w (BM + BN) that its tiles read, so L2 can serve at most 1 - (BM + w BN) / (w (BM + BN)) of them: 49.46 % for
the write-up's wave of 92 tiles of 128 x 128. The squarer the wave the better: a wave of r tile rows and w / r tile columns
needs r BM + w / r BN.

The write-up found the flat order (blockIdx.x along N) about 10 % faster than the tall one; GROUP_M = 1 is that order.

The loop is `tiled`'s, but with num_stages = 3: Triton then copies slices by cp.async, two ahead of the one that is multiplied,
which the CUDA twin leaves to `async_copy`. Mirrors cuda_reference/gemm/rasterized.cuh.
"""

from ..design import Design
from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Matrix
from ..language.tiles import grouped_tile, span
from ..language.triton import tl, triton
from ..operations.gemm.float32_only import float32_only
from ..operations.gemm.work import of_tiles
from .parts.packed_b import may_pack_b
from .parts.space import block_tile, blocked_configs
from .parts.tile import one_program_a_tile, store_tile, tile_product


@triton.jit
def _rasterized_kernel(
    a: Matrix, b: Matrix, c: Matrix, out: Matrix, M, N, K, alpha, beta,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """a (M, K), b (K, N), c and out (M, N); c is None where beta is 0. WIDE: offsets need 64 bits."""
    wait_for_earlier_kernels()
    tile_m, tile_n = grouped_tile(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
    rows = span(tile_m * BLOCK_M, BLOCK_M, WIDE)
    cols = span(tile_n * BLOCK_N, BLOCK_N, WIDE)
    acc = tile_product(a, b, rows, cols, 0, K, M, N, BLOCK_K, WIDE)
    store_tile(acc, c, out, rows, cols, M, N, alpha, beta)


def configs(problem, target):
    """GROUP_M = 8 makes the waves of current GPUs about square; 1 and 16 are for comparison."""
    for group_m in (8, 16, 1):
        yield from blocked_configs(problem, target, num_stages=(3,), GROUP_M=group_m)


DESIGN = may_pack_b(
    Design(
        refuses=float32_only,
        configs=configs,
        launches=one_program_a_tile(_rasterized_kernel),
        work=of_tiles(block_tile),
        tile=block_tile,
    )
)
