"""async_copy with a single stage: slices come through registers, so operands are read as they lie, and none is packed.

For products of few k, or of few rows or columns, packing an operand costs more than cp.async gains. While a program multiplies
a slice, only the other programs of its SM load theirs: two fit. The layouts are z_order's.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from ...config import config_of
from ...language.gluon_tile import (
    PLAIN,
    Operand,
    Staging,
    accumulators,
    distance,
    loads,
    multiply_add,
    reads_quads,
    span,
    store_tile,
)
from ...language.overlap import wait_for_earlier_kernels
from ...language.renamed import barrier
from ...language.structs import Matrix

TILES = ((128, 128, 16, 8), (64, 128, 16, 4), (64, 64, 16, 2))  # (BLOCK_M, BLOCK_N, BLOCK_K, num_warps): 64 sums a thread
CONFIGS = [config_of({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}, warps, num_stages=1) for m, n, k, warps in TILES]


# c and out come last: before the sizes they cost 12 registers on sm_90, and one program fits on an SM instead of two.
@gluon.jit
def one_stage_kernel(
    a: Operand, b: Operand, M, N, K, alpha, beta, c: Matrix, out: Matrix, how: Staging,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr, WIDE: gl.constexpr,
):  # fmt: skip
    """c and out (M, N); c is None where beta is 0. WIDE: offsets need 64 bits."""
    wait_for_earlier_kernels()
    LOAD_A: gl.constexpr = how.LOAD_A
    LOAD_B: gl.constexpr = how.LOAD_B
    tiles_n = gl.cdiv(N, BLOCK_N)
    row = gl.program_id(0) // tiles_n * BLOCK_M
    col = gl.program_id(0) % tiles_n * BLOCK_N

    a_k = span(0, BLOCK_K, gl.SliceLayout(1, LOAD_A), WIDE)[:, None]
    a_m = span(row, BLOCK_M, gl.SliceLayout(0, LOAD_A), WIDE)[None, :]
    b_k = span(0, BLOCK_K, gl.SliceLayout(1, LOAD_B), WIDE)[:, None]
    b_n = span(col, BLOCK_N, gl.SliceLayout(0, LOAD_B), WIDE)[None, :]
    a_ptrs = a.ptr + a_k * a.k + a_m * a.across
    b_ptrs = b.ptr + b_k * b.k + b_n * b.across
    a_step = distance(BLOCK_K, a.k, WIDE)
    b_step = distance(BLOCK_K, b.k, WIDE)

    a_shared = gl.allocate_shared_memory(gl.float32, [BLOCK_K, BLOCK_M], how.SHARED_A)
    b_shared = gl.allocate_shared_memory(gl.float32, [BLOCK_K, BLOCK_N], how.SHARED_B)
    acc = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, how.ACC)
    for k in range(0, K, BLOCK_K):
        a_slice = gl.load(a_ptrs, mask=(a_k < K - k) & (a_m < a.length), other=0)
        b_slice = gl.load(b_ptrs, mask=(b_k < K - k) & (b_n < b.length), other=0)
        barrier()  # nobody reads the slice before any more
        a_shared.store(a_slice)
        b_shared.store(b_slice)
        barrier()  # the slice is complete
        acc = multiply_add(acc, a_shared, b_shared)
        a_ptrs += a_step
        b_ptrs += b_step
    store_tile(acc, c, out, row, col, M, N, alpha, beta, WIDE)


def staging(problem, config, a, b):
    """The layouts of operands as they lie."""
    load_a, shared_a = _stored(config, config.kwargs["BLOCK_M"], problem.a_layout == "row", 4 if reads_quads(a) else 1)
    load_b, shared_b = _stored(config, config.kwargs["BLOCK_N"], problem.b_layout == "col", 4 if reads_quads(b) else 1)
    return Staging(*map(gl.constexpr, (1, accumulators(config), load_a, load_b, shared_a, shared_b)))


def _stored(config, length, along_k, width):
    """(LOAD, SHARED) of an operand, whose stores have no bank conflict: what lies along K is swizzled, since 4 lanes of a warp
    would share a bank. Single floats come 16 k at a time; there lanes stand 8 (along k) x 4, and every row has a phase."""
    if not along_k:
        return loads(config, length, along_k, width), PLAIN
    if width == 4:
        return loads(config, length, along_k, width), gl.SwizzledSharedLayout(4, 2, 8, [1, 0])
    return loads(config, length, along_k, width, lanes=8), gl.SwizzledSharedLayout(4, 1, 8, [1, 0])
