"""FP32 GEMM, z_order: `conflict_free` with the thread tile split in quadrants of 4 x 4.

    ACC = BlockedLayout(size_per_thread=[4, 4], threads_per_warp=[4, 8], warps_per_cta=[4, 2], order=[1, 0])

The layout covers 64 x 64; a 128 x 128 tile is covered by repeating it, and each repetition gives a thread one more quadrant. So
neighbouring lanes own neighbouring quads: 8 lanes of a phase read 8 quads of B in a row, 128 bytes on all 32 banks, and a warp
stores 4 rows of 128 bytes of C at a time, 16 full sectors, where tiles 8 wide wrote 32 halves.

The seed also arranges the lanes in Z order, with bits of the lane alternating between column and row, and measured it as faster
without knowing why. dot_fma takes only BlockedLayouts, whose lanes run along one dimension after the other, so this part is
missing here: a phase reads 1 quad of A and 8 of B instead of 2 and 4, neither with a conflict. Mirrors
cuda_reference/gemm/z_order.cuh.
"""

from . import conflict_free
from .parts.gluon_tile import accumulators, gluon_design


def layouts(problem, config, a, b):
    return {**conflict_free.layouts(problem, config, a, b), "ACC": accumulators(config, thread_tile=[4, 4], order=[1, 0])}


DESIGN = gluon_design(layouts)
