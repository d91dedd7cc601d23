"""FP32 GEMM, async_copy: `z_order` with slices copied by cp.async, fragments read ahead, twice the accumulators a thread.

A copy goes from global to shared memory asynchronously, without registers, and no warp waits to store it. The saved registers
become accumulators: 128 x 256 on 8 warps is 16 x 8 per thread, which reads 6 quads from shared memory per 128 multiply-adds,
where 8 x 8 reads 4 per 64. 93 % of the instructions of the slice loop are FFMA (sm_90), most others are these reads. A block
has STAGES - 1 slices of 24 KB in flight: at 3 stages 6 MB on 132 SMs, where Little's law needs 3 MB at 4.3 TB/s and 600 ns. The
rest of the time is waiting, so the order inside the loop matters: the first fragments of a slice are loaded before the copies,
which would delay them, and no copy but the first ones computes a mask: the last slice, which may exceed K, comes first.

A copy moves 16 bytes at once or single floats, 4 times as many, and cannot transpose in quads. So an operand without aligned
quads along M or N (row-major A, column-major B, odd pitches) is packed first by another kernel; packed.py says what that costs.
The CUDA twin copies row-major A in single floats into padded rows: Triton pads no rows here, and swizzled ones cannot be read
one by one. (A whole slice can be read from swizzled rows at once: matmul/cuda_cores.py needs no packing.) With one stage
nothing is copied asynchronously, and nothing packed: parts/one_stage.py. Mirrors cuda_reference/gemm/async_copy.cuh.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy

from ..config import config_of
from ..design import Design
from ..language.gluon_tile import (
    PLAIN,
    Operand,
    Staging,
    accumulators,
    distance,
    loads,
    needs_a_gpu,
    reads_quads,
    span,
    store_tile,
    words_inside,
)
from ..language.overlap import wait_for_earlier_kernels
from ..language.packed import packed
from ..language.renamed import barrier, copy_async
from ..language.structs import Matrix
from ..launch import TritonLaunch
from ..operations.gemm.float32_only import float32_only
from ..operations.gemm.work import of_packed_tiles, of_tiles
from ..problem import needs_wide_offsets
from .parts import one_stage
from .parts.space import block_tile, count_tiles


@gluon.jit
def _fragments(a_shared, b_shared, k: gl.constexpr, ACC: gl.constexpr):
    """What a thread needs of row k of the slices, as (BLOCK_M, 1) and (1, BLOCK_N): its rows of A and columns of B."""
    return a_shared.slice(k, 1).permute((1, 0)).load(ACC), b_shared.slice(k, 1).load(ACC)


@gluon.jit
def _async_copy_kernel(
    a: Operand, b: Operand, M, N, K, alpha, beta, c: Matrix, out: Matrix, how: Staging,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr, WIDE: gl.constexpr,
):  # fmt: skip
    """c and out (M, N); c is None where beta is 0. WIDE: offsets need 64 bits."""
    wait_for_earlier_kernels()
    STAGES: gl.constexpr = how.STAGES
    ACC: gl.constexpr = how.ACC
    LOAD_A: gl.constexpr = how.LOAD_A
    LOAD_B: gl.constexpr = how.LOAD_B
    tiles_n = gl.cdiv(N, BLOCK_N)
    row = gl.program_id(0) // tiles_n * BLOCK_M
    col = gl.program_id(0) % tiles_n * BLOCK_N

    a_k = span(0, BLOCK_K, gl.SliceLayout(1, LOAD_A), WIDE)[:, None]
    a_m = span(row, BLOCK_M, gl.SliceLayout(0, LOAD_A), WIDE)
    b_k = span(0, BLOCK_K, gl.SliceLayout(1, LOAD_B), WIDE)[:, None]
    b_n = span(col, BLOCK_N, gl.SliceLayout(0, LOAD_B), WIDE)
    a_m = words_inside(a_m, a.length, 4)  # a copy without a mask costs one instruction
    b_n = words_inside(b_n, b.length, 4)
    a_ptrs = a.ptr + a_k * a.k + a_m[None, :] * a.across
    b_ptrs = b.ptr + b_k * b.k + b_n[None, :] * b.across
    a_step = distance(BLOCK_K, a.k, WIDE)
    b_step = distance(BLOCK_K, b.k, WIDE)

    a_shared = gl.allocate_shared_memory(gl.float32, [STAGES, BLOCK_K, BLOCK_M], how.SHARED_A)
    b_shared = gl.allocate_shared_memory(gl.float32, [STAGES, BLOCK_K, BLOCK_N], how.SHARED_B)
    acc = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, ACC)

    # The last slice, which may exceed K, is done first, so that no copy in the loop needs a mask.
    slices = gl.cdiv(gl.maximum(K, 1), BLOCK_K)
    last = (slices - 1) * BLOCK_K
    copy_async(a_shared.index(0), a_ptrs + distance(last, a.k, WIDE), mask=a_k < K - last)
    copy_async(b_shared.index(0), b_ptrs + distance(last, b.k, WIDE), mask=b_k < K - last)
    async_copy.commit_group()
    for s in gl.static_range(1, STAGES):
        if s < slices:
            copy_async(a_shared.index(s), a_ptrs)
            copy_async(b_shared.index(s), b_ptrs)
        async_copy.commit_group()  # of nothing where there is no slice, so that waits can count groups
        a_ptrs += a_step
        b_ptrs += b_step
    # Fragments are read while those before them are multiplied, across slices too: with 2 warps a scheduler, nothing else
    # hides the wait for shared memory. Rows of a slice are cut out of it, so its layout may not be swizzled.
    stage = 0  # holds the slice that is multiplied
    async_copy.wait_group(STAGES - 1)
    barrier()
    frag_a, frag_b = _fragments(a_shared.index(0), b_shared.index(0), 0, ACC)
    for left in range(slices, 0, -1):
        for i in gl.static_range(1, BLOCK_K):
            next_a, next_b = _fragments(a_shared.index(stage), b_shared.index(stage), i, ACC)
            acc += frag_a * frag_b
            frag_a = next_a
            frag_b = next_b
        async_copy.wait_group(STAGES - 2)  # this thread's part of the next slice is there
        barrier()  # everybody's is, and nobody reads this slice any more: the one STAGES ahead takes its place
        free = stage
        stage = stage + 1 if stage < STAGES - 1 else 0
        next_a, next_b = _fragments(a_shared.index(stage), b_shared.index(stage), 0, ACC)  # before copies block the way
        if left > STAGES:
            copy_async(a_shared.index(free), a_ptrs)
            copy_async(b_shared.index(free), b_ptrs)
        async_copy.commit_group()
        a_ptrs += a_step
        b_ptrs += b_step
        acc += frag_a * frag_b
        frag_a = next_a
        frag_b = next_b

    # More than 64 accumulators and as many elements of C do not fit into a thread's registers at once.
    if 64 * 32 * gl.num_warps() < BLOCK_M * BLOCK_N:
        left, right = acc.reshape((BLOCK_M, 2, BLOCK_N // 2)).permute((0, 2, 1)).split()
        store_tile(left, c, out, row, col, M, N, alpha, beta, WIDE)
        col += BLOCK_N // 2
        store_tile(right, c, out, row, col, M, N, alpha, beta, WIDE)
    else:
        store_tile(acc, c, out, row, col, M, N, alpha, beta, WIDE)


TILES = ((128, 256, 16, 8), (128, 128, 16, 4), (64, 128, 16, 2), (64, 64, 16, 2))  # (BLOCK_M, BLOCK_N, BLOCK_K, num_warps)
CONFIGS = [
    *(config_of({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}, warps, stages) for m, n, k, warps in TILES for stages in (3, 4, 2)),
    *one_stage.CONFIGS,
]


def refuses(problem, target):
    return needs_a_gpu(target) or float32_only(problem, target) or target.lacks("cp.async", 80)


def configs(problem, target):
    """The configs that fit. At 128 x 128, 2 to 4 stages are 32 to 64 KB. Two warps have no registers for 64-bit offsets."""
    return [config for config in CONFIGS if config.num_warps > 2 or not problem.wide]


def staging(config):
    """How operands in quads, as `launches` packs them, are copied to shared memory."""
    load_a = loads(config, config.kwargs["BLOCK_M"], along_k=False, width=4)
    load_b = loads(config, config.kwargs["BLOCK_N"], along_k=False, width=4)
    return Staging(*map(gl.constexpr, (config.num_stages, accumulators(config), load_a, load_b, PLAIN, PLAIN)))


def launches(problem, config, a, b, c, out):
    if config.num_stages == 1:
        yield _launch(one_stage.one_stage_kernel, problem, config, one_stage.staging(problem, config, a, b), a, b, c, out)
        return
    if a.stride(0) != 1 or not reads_quads(a):
        copies, a = packed(a)
        yield from copies
    if b.stride(1) != 1 or not reads_quads(b):
        copies, b_t = packed(b.t())
        b = b_t.t()
        yield from copies
    yield _launch(_async_copy_kernel, problem, config, staging(config), a, b, c, out)


def _launch(kernel, problem, config, how, a, b, c, out):
    operands = Operand(a, a.stride(1), a.stride(0), a.shape[0]), Operand(b, b.stride(0), b.stride(1), b.shape[1])
    sizes = problem.m, problem.n, problem.k, problem.alpha, problem.beta
    arguments = *operands, *sizes, Matrix.of(c), Matrix.of(out), how
    wide = problem.wide or needs_wide_offsets(a, b)  # a packed operand may be the larger one
    return TritonLaunch(kernel, (count_tiles(problem, config.kwargs),), config, *arguments, WIDE=wide)


ROW_BY_ROW = {"fragments": 0.35, "freed": False}  # how a thread reads a slice
_AS_IT_LIES, _PACKED = of_tiles(block_tile), of_packed_tiles(lambda config: block_tile(config) | ROW_BY_ROW)


def work(problem, config, target):
    return (_AS_IT_LIES if config.num_stages == 1 else _PACKED)(problem, config, target)


DESIGN = Design(refuses=refuses, configs=configs, launches=launches, work=work, tile=block_tile)
