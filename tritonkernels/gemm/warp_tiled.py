"""FP32 GEMM, warp_tiled: the 32 lanes of a warp own a 4 x 8 grid of 8 x 8 thread tiles, so a warp owns 32 x 64 of C.

In `tiled` Triton decides which thread holds which element. Here the program does, in Gluon, by layouts: ACC is thread tiles of
8 x 8, times 4 x 8 lanes, times 4 x 2 warps. Per k a warp then reads 4 * 8 + 8 * 8 = 96 floats from shared memory for 2048
multiply-adds. 2 x 16 lanes read 144 and 1 x 32 read 264: lanes that read the same float share one broadcast.

What tl.dot hides is written out: two barriers a slice, and an outer product in registers per k. From shared memory Triton reads
the 8 neighbours of a thread tile as two 128-bit words, where the CUDA twin still reads floats. Mirrors
cuda_reference/gemm/warp_tiled.cuh, the write-up's warp tile.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from ..config import config_of
from ..language.renamed import barrier
from ..language.structs import Matrix
from .parts.gluon_lessons import gluon_lesson, span, store_tile
from .parts.lessons import launch

TILE = config_of({"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 8}, num_warps=8, num_stages=1)
ACC = gl.constexpr(gl.BlockedLayout(size_per_thread=[8, 8], threads_per_warp=[4, 8], warps_per_cta=[4, 2], order=[1, 0]))
SHARED = gl.constexpr(gl.SwizzledSharedLayout(vec=1, per_phase=1, max_phase=1, order=[1, 0]))  # row after row of k


def load_layout(along_k):
    """Who loads what of a slice of 8 x 128: neighbouring lanes load what lies side by side in memory, a float each."""
    if along_k:
        return gl.BlockedLayout([1, 1], [8, 4], [1, 8], [0, 1])
    return gl.BlockedLayout([1, 1], [1, 32], [8, 1], [1, 0])


@gluon.jit
def _warp_tiled_kernel(
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
    layouts = {"LOAD_A": load_layout(problem.a_layout == "row"), "LOAD_B": load_layout(problem.b_layout == "col")}
    yield launch(_warp_tiled_kernel, problem, config, a, b, c, out, **layouts)


DESIGN = gluon_lesson(TILE, launches)
