"""FP32 GEMM, vectorized: `warp_tiled`, with 128 bits per thread on the way from global into shared memory.

    LOAD_B = BlockedLayout(size_per_thread=[1, 4], threads_per_warp=[1, 32], warps_per_cta=[8, 1], order=[1, 0])

A quad of floats costs one instruction where four floats cost four. Global memory gains little as long as each instruction is
contiguous across the warp; the quad split into four strided loads cost the seed about 10 %. So quads are loaded only where the
launcher can prove alignment (pointer, pitch and length multiples of 16), else contiguous single floats.

Row-major A has its quads along K, but is stored in shared memory along M: a quad becomes four stores, whose bank conflicts are
left to `conflict_free`. Mirrors cuda_reference/gemm/vectorized.cuh, the seed's vectorised access.
"""

from . import warp_tiled
from .parts.gluon_tile import gluon_design, k_inside, loads, reads_quads


def layouts(problem, config, a, b):
    a_along_k, b_along_k = k_inside(problem)
    return {
        **warp_tiled.layouts(problem, config, a, b),
        "LOAD_A": loads(config, config.kwargs["BLOCK_M"], a_along_k, width=4 if reads_quads(a) else 1),
        "LOAD_B": loads(config, config.kwargs["BLOCK_N"], b_along_k, width=4 if reads_quads(b) else 1),
    }


DESIGN = gluon_design(layouts)
