"""FP32 GEMM, conflict_free: `vectorized` without bank conflicts in the slice loop.

Shared memory has 32 banks of 4 bytes; lanes that access different words of one bank are served one after the other, 128-bit
accesses in 4 phases of 8 lanes. `vectorized` has conflicts in two places, and two layouts avoid them:

store of A  a warp stores 8 rows at 4 values of k, 4 apart; every k begins at bank 0, so 4 lanes share a bank. SHARED_A moves
            quad q of row k to q ^ (k / 2 % 8): SwizzledSharedLayout(vec=4, per_phase=2, max_phase=8). The quads of rows k and
            k + 4 then lie 2 apart, and 4 k times 2 quads fill the banks. Single floats come 16 k at a time; there the lanes
            stand 8 (along k) x 4, and every row has a phase of its own. The CUDA twin pads instead: no XOR, but more memory.
load of B   8 lanes side by side with 8 floats each ask for quads 0, 2, .. 14, of which 0 and 8 share banks. ACC with
            order=[0, 1] counts lanes down first: a phase is 4 x 2 lanes, 4 quads of A and 2 of B. The same order makes the
            stores of C single floats, once per tile.

Mirrors cuda_reference/gemm/conflict_free.cuh, the seed's conflict-free store and load.
"""

from triton.experimental.gluon import language as gl

from . import vectorized
from .parts.gluon_tile import PLAIN, accumulators, gluon_design, k_inside, loads, reads_quads


def stored(config, length, along_k, width):
    """(LOAD, SHARED) of an operand, with conflict-free stores."""
    if not along_k:
        return loads(config, length, along_k, width), PLAIN
    if width == 4:
        return loads(config, length, along_k, width), gl.SwizzledSharedLayout(4, 2, 8, [1, 0])
    return loads(config, length, along_k, width, lanes=8), gl.SwizzledSharedLayout(4, 1, 8, [1, 0])


def layouts(problem, config, a, b):
    a_along_k, b_along_k = k_inside(problem)
    load_a, shared_a = stored(config, config.kwargs["BLOCK_M"], a_along_k, width=4 if reads_quads(a) else 1)
    load_b, shared_b = stored(config, config.kwargs["BLOCK_N"], b_along_k, width=4 if reads_quads(b) else 1)
    return {
        **vectorized.layouts(problem, config, a, b),
        "ACC": accumulators(config, thread_tile=[8, 8], order=[0, 1]),
        "LOAD_A": load_a,
        "LOAD_B": load_b,
        "SHARED_A": shared_a,
        "SHARED_B": shared_b,
    }


DESIGN = gluon_design(layouts)
