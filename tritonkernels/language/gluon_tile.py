"""What Gluon kernels share whose slices come by cp.async: their operands, indices, layouts, and what they need.

Triton picks a layout for every tile of a `tl` program; a Gluon program defines which thread holds which element. No result
depends on that. A copy has no mask along M and N, so words of several elements must be aligned, and inside or outside together.
"""

from typing import Any, NamedTuple

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy, mma_v2

from .dot import round_to_tf32
from .renamed import barrier

CHUNK = 4  # floats of 16 bytes


class Operand(NamedTuple):
    """A or B as (K, length): M rows or N columns, or more with zeros."""

    ptr: Any
    k: Any  # strides
    across: Any
    length: Any


class Staging(NamedTuple):
    """All constants: how many slices are in shared memory, and layouts.

    ACC     (BLOCK_M, BLOCK_N)  accumulators: thread tiles, lanes, warps
    LOAD_A  (BLOCK_K, BLOCK_M)  who copies which element of A, transposed, from global to shared memory; LOAD_B of B
    SHARED_A, SHARED_B          where a slice lies in shared memory: row by row of k, swizzled or not
    """

    STAGES: Any
    ACC: Any
    LOAD_A: Any
    LOAD_B: Any
    SHARED_A: Any
    SHARED_B: Any


class Stages(NamedTuple):
    """All constants: Staging of which both operands' slices have the same, in chunks (channels_last.py) of CHUNK floats. TF32:
    products are by tensor cores, in that precision."""

    STAGES: Any
    ACC: Any
    LOAD: Any
    SHARED: Any
    CHUNK: Any
    TF32: Any = gl.constexpr(False)


@gluon.jit
def wide(index, WIDE: gl.constexpr):
    """64-bit where WIDE, so that index times stride cannot overflow."""
    return gl.cast(index, gl.int64) if WIDE else index


@gluon.jit
def is_below(index, size):
    """Whether it is 0 to size - 1."""
    return index.to(gl.uint32) < gl.cast(size, gl.uint32)


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
def multiply_add_tf32(acc, a_shared, b_shared):
    """The same by mma.sync, of operands rounded to tf32 in registers."""
    ACC: gl.constexpr = acc.type.layout
    a = round_to_tf32(a_shared.permute((1, 0)).load(gl.DotOperandLayout(0, ACC, 1)))
    b = round_to_tf32(b_shared.load(gl.DotOperandLayout(1, ACC, 1)))
    return mma_v2(a, b, acc, input_precision="tf32")


@gluon.jit
def sum_of_slices(a, b, count, at, copy_slice, next_slice, tile, stages: Stages):
    """The sum of the products of `count` slices of a tile. a and b: the operands' places in shared memory.

    at                                           where the first slice is: a tuple
    copy_slice(a's place, b's, at, tile, CHUNK)  asks for a slice
    next_slice(at, tile)                         where the next one is
    """
    STAGES: gl.constexpr = stages.STAGES
    BLOCK_M: gl.constexpr = a.shape[2]
    BLOCK_N: gl.constexpr = b.shape[2]
    for stage in gl.static_range(STAGES - 1):
        if stage < count:
            copy_slice(a.index(stage), b.index(stage), at, tile, stages.CHUNK)
        async_copy.commit_group()  # of nothing where there is no slice, so that waits can count groups
        at = next_slice(at, tile)
    acc = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, stages.ACC)
    stage = 0  # holds the slice that is multiplied
    free = STAGES - 1  # held the one before
    for left in range(count, 0, -1):
        async_copy.wait_group(STAGES - 2)  # this thread's part of the slice is there
        barrier()  # everybody's is, and nobody reads the one before any more
        if left >= STAGES:
            copy_slice(a.index(free), b.index(free), at, tile, stages.CHUNK)
        async_copy.commit_group()
        at = next_slice(at, tile)
        if stages.TF32:
            acc = multiply_add_tf32(acc, a.index(stage), b.index(stage))
        else:
            acc = multiply_add(acc, a.index(stage), b.index(stage))
        free = stage
        stage = gl.where(stage < STAGES - 1, stage + 1, 0)
    return acc


@gluon.jit
def store_tile(acc, c, out, row, col, M, N, alpha, beta, WIDE: gl.constexpr):
    """out = alpha * acc + beta * C on the part of the tile at (row, col) that lies inside. C is None where beta is 0."""
    LAYOUT: gl.constexpr = acc.type.layout
    rows = span(row, acc.shape[0], gl.SliceLayout(1, LAYOUT), WIDE)[:, None]
    cols = span(col, acc.shape[1], gl.SliceLayout(0, LAYOUT), WIDE)[None, :]
    inside = (rows < M) & (cols < N)
    acc = alpha * acc
    if c is not None:
        acc += beta * gl.load(c.ptr + rows * c.row + cols * c.col, mask=inside, other=0)
    gl.store(out.ptr + rows * out.row + cols * out.col, acc, mask=inside)


PLAIN = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])  # row after row


def needs_a_gpu(target):
    if not target.is_gpu:
        return "a Gluon program needs a GPU, and the interpreter cannot run it"
    return f"its layouts are for NVIDIA's warps, and {target.name} is {target.isa}" if target.vendor != "nvidia" else None


def accumulators(config):
    """4 x 8 thread tiles of 4 x 4 a warp, more down or across where the block tile has no more the other way; 64 columns a
    warp, or fewer where warps have no rows. It is repeated to cover the rest of the block tile (gemm/z_order.py)."""
    block_m, block_n = config.kwargs["BLOCK_M"], config.kwargs["BLOCK_N"]
    down = min(block_m // 4, max(4, 128 // block_n))
    across = max(1, block_n // 64, 4 * down * config.num_warps // block_m)
    return gl.BlockedLayout([4, 4], [down, 32 // down], [config.num_warps // across, across], [1, 0])


def loads(config, length, along_k, width, lanes=None):
    """A (BLOCK_K, length) slice, `width` neighbours a thread along k or across it; `lanes` of a warp in that direction."""
    if along_k:
        lanes = lanes or config.kwargs["BLOCK_K"] // width
        return gl.BlockedLayout([width, 1], [lanes, 32 // lanes], [1, config.num_warps], [0, 1])
    lanes = min(32, length // width)
    return gl.BlockedLayout([1, width], [32 // lanes, lanes], [config.num_warps, 1], [1, 0])


def reads_quads(tensor):
    """Whether Triton can prove that 4 neighbours of a matrix are 16 bytes it may read at once, inside or outside together."""
    neighbours = [size for size, stride in zip(tensor.shape, tensor.stride()) if stride == 1]
    return all(x % 16 == 0 for x in (tensor.data_ptr(), max(tensor.stride()), *neighbours[-1:])) and bool(neighbours)
