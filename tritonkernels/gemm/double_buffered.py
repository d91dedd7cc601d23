"""FP32 GEMM, double_buffered: `z_order`, but the next slice is on its way while this one is multiplied.

In `z_order` a warp waits for each slice: about 600 ns for global memory, and only other warps can hide that. With 128 registers
a thread an SM holds 512 threads, 4 warps a scheduler, too few. Here each thread overlaps its own loads: it asks for the next
slice, multiplies this one, and only then stores the next one in the other of two buffers. All threads had read that buffer
before the last barrier, so one barrier a slice is enough. It costs twice the shared memory, 16 KB, and 8 registers a thread for
what is on its way. Single floats need more addresses: then a thread has over 128 registers, and an SM one block instead of two.

The CUDA twin also loads fragments a k ahead. Here ptxas does that, as far as it moves loads up within a slice. A tl program
only sets num_stages: Triton then makes this loop, with copies by cp.async (as in `rasterized`). Mirrors
cuda_reference/gemm/double_buffered.cuh, the write-up's last rung but one.
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
ACC = gl.constexpr(gl.BlockedLayout(size_per_thread=[4, 4], threads_per_warp=[4, 8], warps_per_cta=[4, 2], order=[1, 0]))
SHARED = gl.constexpr(gl.PaddedSharedLayout.with_identity_for([[128, 4]], shape=[8, 128], order=[1, 0]))  # 4 after 128


def load_layout(matrix, along_k):
    """Who loads what of a slice of 8 x 128: neighbouring lanes load what lies side by side in memory, a quad each if it can."""
    width = 4 if reads_quads(matrix) else 1
    if along_k:
        return gl.BlockedLayout([width, 1], [8 // width, 4 * width], [1, 8], [0, 1])
    return gl.BlockedLayout([1, width], [1, 32], [8, 1], [1, 0])


@gluon.jit
def allocate(LENGTH: gl.constexpr, BLOCK_K: gl.constexpr):
    return gl.allocate_shared_memory(gl.float32, [BLOCK_K, LENGTH], SHARED)


@gluon.jit
def _double_buffered_kernel(
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
    a_buffers = allocate(BLOCK_M, BLOCK_K), allocate(BLOCK_M, BLOCK_K)
    b_buffers = allocate(BLOCK_N, BLOCK_K), allocate(BLOCK_N, BLOCK_K)
    acc = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, ACC)
    a_buffers[0].store(gl.load(a_ptrs, mask=(a_k < K) & (a_m < M), other=0))
    b_buffers[0].store(gl.load(b_ptrs, mask=(b_k < K) & (b_n < N), other=0))
    barrier()  # the first slice is complete
    for first in range(0, K, 2 * BLOCK_K):
        for now in gl.static_range(2):  # constants: else Triton cannot tell the buffers apart, and adds a barrier
            k = first + (now + 1) * BLOCK_K  # where the next slice begins, all zeros from K on
            a_ptrs += BLOCK_K * a.col
            b_ptrs += BLOCK_K * b.row
            a_slice = gl.load(a_ptrs, mask=(a_k < K - k) & (a_m < M), other=0)
            b_slice = gl.load(b_ptrs, mask=(b_k < K - k) & (b_n < N), other=0)
            for i in gl.static_range(BLOCK_K):  # (BLOCK_M, 1) * (1, BLOCK_N): 16 floats of a thread, 64 multiply-adds
                acc += a_buffers[now].slice(i, 1).permute((1, 0)).load(ACC) * b_buffers[now].slice(i, 1).load(ACC)
            a_buffers[1 - now].store(a_slice)
            b_buffers[1 - now].store(b_slice)
            barrier()  # the next slice is complete, and nobody reads this one any more
    store_tile(acc, c, out, row, col, M, N, alpha, beta)


def launches(problem, config, a, b, c, out):
    layouts = {"LOAD_A": load_layout(a, problem.a_layout == "row"), "LOAD_B": load_layout(b, problem.b_layout == "col")}
    yield launch(_double_buffered_kernel, problem, config, a, b, c, out, **layouts)


DESIGN = gluon_lesson(TILE, launches)
