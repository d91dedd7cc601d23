"""FP32 GEMM, warp_tiled: the 32 lanes of a warp own a 4 x 8 grid of 8 x 8 thread tiles, so a warp owns 32 x 64 of C.

In `tiled` Triton decides how a warp's lanes are arranged in the tile. Here the program does: of all splits of 32 lanes, 4 x 8
reads the fewest words per k, 4 * 8 + 8 * 8 = 96 for 2048 multiply-adds, where 2 x 16 reads 144 and 1 x 32 reads 264, because
lanes that read the same word share one broadcast. It only changes two index formulas.

    ACC = BlockedLayout(size_per_thread=[8, 8], threads_per_warp=[4, 8], warps_per_cta=[4, 2], order=[1, 0])

A thread copies single floats from global to shared memory. From there Triton reads the 8 neighbours of a thread tile as two
128-bit words, where the CUDA twin still reads floats. Mirrors cuda_reference/gemm/warp_tiled.cuh, the seed's warp tile.
"""

from .parts.gluon_tile import PLAIN, accumulators, gluon_design, k_inside, loads


def layouts(problem, config, a, b):
    a_along_k, b_along_k = k_inside(problem)
    return {
        "ACC": accumulators(config, thread_tile=[8, 8], order=[1, 0]),
        "LOAD_A": loads(config, config.kwargs["BLOCK_M"], a_along_k, width=1),
        "LOAD_B": loads(config, config.kwargs["BLOCK_N"], b_along_k, width=1),
        "SHARED_A": PLAIN,
        "SHARED_B": PLAIN,
    }


DESIGN = gluon_design(layouts)
