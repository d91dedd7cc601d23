"""FP32 GEMM, async_copy: `z_order` with slices copied by cp.async, and twice the accumulators per thread.

A copy goes from global to shared memory by itself: no register holds it and no warp waits to put it down. The registers that
this saves become accumulators: 128 x 256 on 8 warps is 16 x 8 per thread, which reads 6 quads from shared memory per 128
multiply-adds where 8 x 8 reads 4 per 64. Of the instructions of the slice loop 92 % are FFMA (sm_90), the rest is those reads.
STAGES - 1 slices of 24 KB are under way: at 3 stages 6 MB on 132 SMs, where Little's law asks for 3 MB at 4.3 TB/s and 600 ns.

Row-major A is transposed on the way, so its copies are single floats: 8 lanes copy the 32 bytes of one sector, which the
swizzle of `conflict_free` puts into 8 different quads, and 4 such rows fill the quads: all 32 banks.
Mirrors cuda_reference/gemm/async_copy.cuh.
"""

from ..design import Design
from . import z_order
from .conflict_free import stored
from .gluon_tile import gluon_configs, gluon_launch, k_inside, needs_a_gpu, reads_quads
from .space import block_tile

TILES = ((128, 256, 16, 8), (128, 128, 16, 8), (64, 128, 16, 4), (64, 64, 16, 2))


def refuses(problem, target):
    if target.is_gpu and target.arch < 80:
        return "cp.async needs sm_80 or newer"
    return needs_a_gpu(problem, target)


def configs(problem, target):
    """At 128 x 256, 2 to 4 stages are 48 to 96 KB."""
    return gluon_configs(problem, target, TILES, num_stages=(3, 4, 2))


def layouts(problem, config, a, b):
    a_along_k, b_along_k = k_inside(problem)
    load_a, shared_a = stored(config, config.kwargs["BLOCK_M"], a_along_k, width=4 if reads_quads(a) and not a_along_k else 1)
    load_b, shared_b = stored(config, config.kwargs["BLOCK_N"], b_along_k, width=4 if reads_quads(b) and not b_along_k else 1)
    return {
        **z_order.layouts(problem, config, a, b),
        "LOAD_A": load_a,
        "LOAD_B": load_b,
        "SHARED_A": shared_a,
        "SHARED_B": shared_b,
    }


def launches(problem, config, a, b, c, out):
    yield gluon_launch(problem, config, layouts(problem, config, a, b), a, b, c, out)


DESIGN = Design(
    name="async_copy",
    summary="Gluon: z_order with slices copied by cp.async and 16 x 8 accumulators a thread",
    mirrors="async_copy",
    refuses=refuses,
    configs=configs,
    launches=launches,
    tile=block_tile,
)
