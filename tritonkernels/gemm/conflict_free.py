"""FP32 GEMM, conflict_free: `vectorized` without bank conflicts in the loop over slices.

Shared memory has 32 banks of 4 bytes; lanes that access different words of one bank are served one after the other, 128-bit
accesses in 4 phases of 8 lanes. `vectorized` has conflicts in two places, and two layouts avoid them:

store of A  a warp stores 16 rows of 2 quads of K. Two values of k that are 4 apart lie 4 * 128 floats apart, which is 0 banks:
            2 lanes a bank. SHARED pads rows by 4 floats, so that they lie 16 banks apart, for 16 BLOCK_K bytes of memory.
            Single floats come 8 k by 4 rows at a time. The 8 k then lie 4 banks apart, so these fill all banks, too.
load of B   8 lanes side by side with 8 floats each ask for quads 0, 2, .. 14, of which 0 and 8 share banks. ACC with
            order=[0, 1] counts lanes down first: a phase is 4 x 2 lanes, 4 quads of A and 2 of B. With this order C is stored
            in single floats, once a tile.

Gluon also has swizzled layouts, which take an XOR instead of memory; but single rows of k cannot be cut out of those. Mirrors
cuda_reference/gemm/conflict_free.cuh, the write-up's conflict-free store and load.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from ..config import config_of
from ..language.gluon_tile import reads_quads
from ..language.renamed import barrier
from ..language.structs import Matrix
from .parts.gluon_lessons import gluon_lesson, span, store_tile
from .parts.lessons import launch

TILE = config_of({"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 8}, num_warps=8, num_stages=1)
ACC = gl.constexpr(gl.BlockedLayout(size_per_thread=[8, 8], threads_per_warp=[4, 8], warps_per_cta=[4, 2], order=[0, 1]))
SHARED = gl.constexpr(gl.PaddedSharedLayout.with_identity_for([[128, 4]], shape=[8, 128], order=[1, 0]))  # 4 after 128


def load_layout(matrix, along_k):
    """Who loads what of a slice of 8 x 128: neighbouring lanes load what lies side by side in memory, a quad each if it can."""
    width = 4 if reads_quads(matrix) else 1
    if along_k:
        return gl.BlockedLayout([width, 1], [8 // width, 4 * width], [1, 8], [0, 1])
    return gl.BlockedLayout([1, width], [1, 32], [8, 1], [1, 0])


@gluon.jit
def _conflict_free_kernel(
    a: Matrix, b: Matrix, c: Matrix, out: Matrix, M, N, K, alpha, beta,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr, LOAD_A: gl.constexpr, LOAD_B: gl.constexpr,
):  # fmt: skip
    """a (M, K), b (K, N), c and out (M, N); c is None where beta is 0. Slices are (k, rows of A) and (k, columns of B)."""
    row = gl.program_id(0) // gl.cdiv(N, BLOCK_N) * BLOCK_M
    col = gl.program_id(0) % gl.cdiv(N, BLOCK_N) * BLOCK_N
    a_k, a_m = span(0, BLOCK_K, LOAD_A, 0), span(row, BLOCK_M, LOAD_A, 1)
    b_k, b_n = span(0, BLOCK_K, LOAD_B, 0), span(col, BLOCK_N, LOAD_B, 1)
    a_ptrs = a.ptr + a_k * a.col + a_m * a.row
    b_ptrs = b.ptr + b_k * b.row + b_n * b.col
    a_shared = gl.allocate_shared_memory(gl.float32, [BLOCK_K, BLOCK_M], SHARED)
    b_shared = gl.allocate_shared_memory(gl.float32, [BLOCK_K, BLOCK_N], SHARED)
    acc = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, ACC)
    for k in range(0, K, BLOCK_K):
        a_slice = gl.load(a_ptrs, mask=(a_k < K - k) & (a_m < M), other=0)
        b_slice = gl.load(b_ptrs, mask=(b_k < K - k) & (b_n < N), other=0)
        barrier()  # nobody reads the slice before any more
        a_shared.store(a_slice)
        b_shared.store(b_slice)
        barrier()  # the slice is complete
        for i in gl.static_range(BLOCK_K):  # (BLOCK_M, 1) * (1, BLOCK_N): 16 floats of a thread, 64 multiply-adds
            acc += a_shared.slice(i, 1).permute((1, 0)).load(ACC) * b_shared.slice(i, 1).load(ACC)
        a_ptrs += BLOCK_K * a.col
        b_ptrs += BLOCK_K * b.row
    store_tile(acc, c, out, row, col, M, N, alpha, beta)


def launches(problem, config, a, b, c, out):
    layouts = {"LOAD_A": load_layout(a, problem.a_layout == "row"), "LOAD_B": load_layout(b, problem.b_layout == "col")}
    yield launch(_conflict_free_kernel, problem, config, a, b, c, out, **layouts)


DESIGN = gluon_lesson(TILE, launches)
