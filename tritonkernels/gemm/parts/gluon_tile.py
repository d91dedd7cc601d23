"""The kernel of all Gluon designs, whose register and shared-memory layouts the designs define.

Triton picks a layout for every tile of a `tl` program; a Gluon program defines which thread holds which element. The kernel
takes five layouts, all constants, and the designs differ only in these:

    ACC     (BLOCK_M, BLOCK_N)  accumulators: thread tiles, lanes, warps
    LOAD_A  (BLOCK_K, BLOCK_M)  who brings which element of A, transposed, from global to shared memory; LOAD_B of B
    SHARED_A, SHARED_B          where a slice lies in shared memory: row by row of k, swizzled or not

No result depends on them. An access is as wide as a thread's elements are provably contiguous and aligned (stride 1; pointer,
pitch and length multiples of 16), else 4 bytes, so any strides work. But copies by cp.async (STAGES > 1) have no masks along M
and N, so they need operands in aligned quads along these (reads_quads).
"""

import functools
from typing import Any, NamedTuple

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy

from ...config import config_of
from ...design import Design
from ...language.overlap import wait_for_earlier_kernels
from ...language.renamed import barrier, copy_async
from ...language.structs import Matrix
from ...launch import TritonLaunch
from ...problem import needs_wide_offsets
from .float32_only import float32_only
from .space import block_tile, count_tiles
from .work import of_tiles


class Operand(NamedTuple):
    """A or B as (K, length): M rows or N columns, or more with zeros."""

    ptr: Any
    k: Any  # strides
    across: Any
    length: Any


class Staging(NamedTuple):
    """All constants. STAGES: slices in shared memory; from 2 on they come by cp.async."""

    STAGES: Any
    ACC: Any
    LOAD_A: Any
    LOAD_B: Any
    SHARED_A: Any
    SHARED_B: Any


@gluon.jit
def span(start, LENGTH: gl.constexpr, LAYOUT: gl.constexpr, WIDE: gl.constexpr):
    """start, start + 1, ..., LENGTH of them; 64-bit where WIDE, so that index times stride cannot overflow."""
    index = start + gl.arange(0, LENGTH, LAYOUT)
    if WIDE:
        index = index.to(gl.int64)
    return index


@gluon.jit
def distance(count, stride, WIDE: gl.constexpr):
    """The span of `count` rows or columns, in elements."""
    if WIDE:
        return gl.cast(count, gl.int64) * stride
    else:
        return count * stride


@gluon.jit
def words_inside(index, length, WORD: gl.constexpr):
    """Indices in words that begin at multiples of WORD, as length is; those beyond it are replaced by the last word."""
    return gl.max_contiguous(gl.multiple_of(gl.minimum(index, length - WORD + index % WORD), WORD), WORD)


@gluon.jit
def multiply_add(acc, a_shared, b_shared):
    """acc + a^T b of one slice, (BLOCK_K, BLOCK_M) and (BLOCK_K, BLOCK_N) in shared memory, as outer products in registers."""
    ACC: gl.constexpr = acc.type.layout
    a = a_shared.permute((1, 0)).load(gl.DotOperandLayout(0, ACC, 0))
    b = b_shared.load(gl.DotOperandLayout(1, ACC, 0))
    return gl.dot_fma(a, b, acc)


@gluon.jit
def _fragments(a_shared, b_shared, k: gl.constexpr, ACC: gl.constexpr):
    """What a thread needs of row k of the slices, as (BLOCK_M, 1) and (1, BLOCK_N): its rows of A and columns of B."""
    return a_shared.slice(k, 1).permute((1, 0)).load(ACC), b_shared.slice(k, 1).load(ACC)


@gluon.jit
def _store(acc, c, out, row, col, M, N, alpha, beta, WIDE):
    """out = alpha * acc + beta * C on the part of the tile at (row, col) that lies inside. C is None where beta is 0."""
    LAYOUT: gl.constexpr = acc.type.layout
    rows = span(row, acc.shape[0], gl.SliceLayout(1, LAYOUT), WIDE)[:, None]
    cols = span(col, acc.shape[1], gl.SliceLayout(0, LAYOUT), WIDE)[None, :]
    inside = (rows < M) & (cols < N)
    acc = alpha * acc
    if c is not None:
        acc += beta * gl.load(c.ptr + rows * c.row + cols * c.col, mask=inside, other=0)
    gl.store(out.ptr + rows * out.row + cols * out.col, acc, mask=inside)


# c and out come last: before the sizes they cost `vectorized` 12 registers on sm_90, and one block fits on an SM instead of
# two.
@gluon.jit
def _gluon_kernel(
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
    if STAGES > 1:  # a copy without a mask costs one instruction
        a_m = words_inside(a_m, a.length, 4)
        b_n = words_inside(b_n, b.length, 4)
    a_m = a_m[None, :]
    b_n = b_n[None, :]
    a_ptrs = a.ptr + a_k * a.k + a_m * a.across
    b_ptrs = b.ptr + b_k * b.k + b_n * b.across
    a_step = distance(BLOCK_K, a.k, WIDE)
    b_step = distance(BLOCK_K, b.k, WIDE)

    a_shared = gl.allocate_shared_memory(gl.float32, [STAGES, BLOCK_K, BLOCK_M], how.SHARED_A)
    b_shared = gl.allocate_shared_memory(gl.float32, [STAGES, BLOCK_K, BLOCK_N], how.SHARED_B)
    acc = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, ACC)

    if STAGES == 1:
        for k in range(0, K, BLOCK_K):
            a_slice = gl.load(a_ptrs, mask=(a_k < K - k) & (a_m < a.length), other=0)
            b_slice = gl.load(b_ptrs, mask=(b_k < K - k) & (b_n < b.length), other=0)
            barrier()  # nobody reads the last slice any more
            a_shared.index(0).store(a_slice)
            b_shared.index(0).store(b_slice)
            barrier()  # the slice is complete
            acc = multiply_add(acc, a_shared.index(0), b_shared.index(0))
            a_ptrs += a_step
            b_ptrs += b_step
    else:
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
        _store(left, c, out, row, col, M, N, alpha, beta, WIDE)
        col += BLOCK_N // 2
        _store(right, c, out, row, col, M, N, alpha, beta, WIDE)
    else:
        _store(acc, c, out, row, col, M, N, alpha, beta, WIDE)


# (BLOCK_M, BLOCK_N, BLOCK_K, num_warps): 8 x 8 accumulators a thread
TILES = ((128, 128, 16, 8), (64, 128, 16, 4), (64, 64, 16, 2))

PLAIN = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])


def gluon_configs(problem, target, tiles=TILES, num_stages=(1,)):
    """A config per tile and number of stages. Two warps have no registers for 64-bit offsets."""
    return _of_tiles(tiles if not problem.wide else tuple(tile for tile in tiles if tile[3] > 2), num_stages)


@functools.cache
def _of_tiles(tiles, num_stages):
    return [
        config_of({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}, num_warps=num_warps, num_stages=stages)
        for m, n, k, num_warps in tiles
        for stages in num_stages
    ]


def gluon_refuses(problem, target):
    """`refuses` of the Gluon designs."""
    return needs_a_gpu(target) or float32_only(problem, target)


def needs_a_gpu(target):
    if not target.is_gpu:
        return "a Gluon program needs a GPU, and the interpreter cannot run it"
    return f"its layouts are for NVIDIA's warps, and {target.name} is {target.isa}" if target.vendor != "nvidia" else None


def accumulators(config, thread_tile, order):
    """4 x 8 thread tiles a warp, more down or across where the block tile has no more the other way; 64 columns a warp, or
    fewer where warps have no rows. What this does not cover of the block tile it covers by repetition."""
    (rows, columns), block_m, block_n = thread_tile, config.kwargs["BLOCK_M"], config.kwargs["BLOCK_N"]
    down = min(block_m // rows, max(4, 32 * columns // block_n))
    across = max(1, block_n // 64, 4 * down * config.num_warps // block_m)
    return gl.BlockedLayout(thread_tile, [down, 32 // down], [config.num_warps // across, across], order)


def loads(config, length, along_k, width, lanes=None):
    """A (BLOCK_K, length) slice, `width` neighbours a thread along k or across it; `lanes` of a warp in that direction."""
    if along_k:
        lanes = lanes or config.kwargs["BLOCK_K"] // width
        return gl.BlockedLayout([width, 1], [lanes, 32 // lanes], [1, config.num_warps], [0, 1])
    lanes = min(32, length // width)
    return gl.BlockedLayout([1, width], [32 // lanes, lanes], [config.num_warps, 1], [1, 0])


def k_inside(problem):
    """Whether k is the dimension of A and of B along which neighbours in memory lie."""
    return problem.a_layout == "row", problem.b_layout == "col"


def reads_quads(tensor):
    """Whether Triton can prove that 4 neighbours of a matrix are 16 bytes it may read at once, inside or outside together."""
    neighbours = [size for size, stride in zip(tensor.shape, tensor.stride()) if stride == 1]
    return all(x % 16 == 0 for x in (tensor.data_ptr(), max(tensor.stride()), *neighbours[-1:])) and bool(neighbours)


def gluon_launch(problem, config, layouts, a, b, c, out):
    """The launch of the kernel with these layouts: a dict of ACC, LOAD_A, LOAD_B, SHARED_A and SHARED_B."""
    operands = (
        Operand(a, a.stride(1), a.stride(0), a.shape[0]),
        Operand(b, b.stride(0), b.stride(1), b.shape[1]),
    )  # maybe packed
    sizes = problem.m, problem.n, problem.k, problem.alpha, problem.beta
    how = Staging(**{name: gl.constexpr(value) for name, value in {**layouts, "STAGES": config.num_stages}.items()})
    arguments = *operands, *sizes, Matrix.of(c), Matrix.of(out), how
    wide = problem.wide or needs_wide_offsets(a, b)
    return TritonLaunch(_gluon_kernel, (count_tiles(problem, config.kwargs),), config, *arguments, WIDE=wide)


def gluon_design(layouts):
    """The Design whose kernel has `layouts(problem, config, a, b)`, and nothing else of its own."""

    def launches(problem, config, a, b, c, out):
        yield gluon_launch(problem, config, layouts(problem, config, a, b), a, b, c, out)

    return Design(refuses=gluon_refuses, configs=gluon_configs, launches=launches, work=of_tiles(block_tile), tile=block_tile)
