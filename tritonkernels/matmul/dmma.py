"""Matrix product of fp64, dmma (Gluon): tensor cores that multiply doubles, of slices that cp.async copies.

tl.dot of fp64 multiplies on tensor cores, too. But Triton lets B lie in shared memory so that its reads have bank conflicts,
and for a warp's 32 x 32 sums shared memory is then as busy as the tensor cores: with 128 bytes a cycle, they with 128 products.
From 3.8 on it takes mma of 8 x 8 x 4, by which an H200 computes 0.6 as much, and its layout of the sums has changed with it
(triton-lang/triton, pull requests 10060 and 10313). So this design writes its mma itself, in PTX.

An mma of 16 x 8 x 16 is 8 registers of A and 4 of B, each of which a warp reads with 8 rows or columns (lane / 4) of 4
neighbouring k (lane % 4), 16 lanes at a time: 4 k of 4 rows, 32 bytes each. Whichever way an operand is contiguous, these are 4
parts of 32 bytes that begin at the same bank, so the part p of a line lies at p ^ (line % 4). Nothing is packed: doubles are
copied one at a time, if pairs are not aligned.

A thread has sums of rows g and g + 8 of 16 and of two neighbouring columns, so a tile's sums are four tensors, one for each of
its 2 x 2 places. Their dimensions are (block of 16 rows, g, block of 8 columns, pair of columns): an operand's registers do not
vary along those dimensions that it has not, and what one mma multiplies is an element of each tensor.

Mirrors the loop over fp64 of cuda_reference/matmul/pipelined.cuh and split_k.cuh.
"""

from triton import constexpr_function
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy

from ..language.gluon_tile import Operand, Staging, distance, loads, needs_a_gpu
from ..language.overlap import wait_for_earlier_kernels
from ..language.renamed import barrier
from ..language.structs import Matrices, Vector
from .parts.arguments import Arithmetic, Epilogue, Sizes
from .parts.gluon_product import Words, copy_slices, first_slices, in_words, part_of, product_design, store_part
from .parts.ranges_of_k import Splits

SUMS = gl.constexpr(gl.BlockedLayout([1, 1, 1, 1], [1, 8, 1, 4], [2, 1, 2, 1], [3, 2, 1, 0]))  # 2 x 2 warps
PTX = gl.constexpr(
    "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 "
    "{$0, $1, $2, $3}, {$4, $5, $6, $7, $8, $9, $10, $11}, {$12, $13, $14, $15}, {$16, $17, $18, $19};"
)
CONSTRAINTS = gl.constexpr(",".join(["=d"] * 4 + ["d"] * 16))
FOUR = gl.constexpr((gl.float64,) * 4)


@constexpr_function
def _powers(first, end):
    return [1 << bit for bit in range(first.bit_length() - 1, end.bit_length() - 1)]


@constexpr_function
def rows_of_k(rows):
    """The layout of A's slice (rows, K): lane / 4 is the row, lane % 4 is k, and a warp has every other 16 rows."""
    registers = [[0, 4], [0, 8], [8, 0]] + [[row, 0] for row in _powers(32, rows)]
    return gl.DistributedLinearLayout(registers, [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], [[0, 0], [16, 0]], [], [rows, 16])


@constexpr_function
def columns_of_k(columns):
    """The layout of B's slice (K, columns): lane / 4 is the column, lane % 4 is k, and a warp has every other 8 columns."""
    registers = [[4, 0], [8, 0]] + [[0, column] for column in _powers(16, columns)]
    return gl.DistributedLinearLayout(registers, [[1, 0], [2, 0], [0, 1], [0, 2], [0, 4]], [[0, 8], [0, 0]], [], [16, columns])


@gluon.jit
def _quarters(x, without: gl.constexpr, DIM: gl.constexpr):
    """The four tensors along the last dimension, spread out along dimension DIM of the sums."""
    even, odd = x.reshape(without + (2, 2)).split()  # noqa: RUF005  a kernel has no *
    x0, x2 = even.split()
    x1, x3 = odd.split()
    return _spread(x0, DIM), _spread(x1, DIM), _spread(x2, DIM), _spread(x3, DIM)


@gluon.jit
def _spread(x, DIM: gl.constexpr):
    return gl.expand_dims(gl.convert_layout(x, gl.SliceLayout(DIM, SUMS), assert_trivial=True), DIM)


@gluon.jit
def fragments(a_shared, b_shared, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr):
    """What a thread multiplies of slices (K, BLOCK_M) and (K, BLOCK_N): of A k = lane % 4, + 4, + 8, + 12 of rows g, then of
    rows g + 8, and of B the same k."""
    a = a_shared.permute((1, 0)).load(rows_of_k(BLOCK_M))
    upper, lower = a.reshape((BLOCK_M // 16, 2, 8, 4, 4)).permute((0, 2, 4, 3, 1)).split()
    b = b_shared.load(columns_of_k(BLOCK_N)).reshape((4, 4, BLOCK_N // 8, 8)).permute((3, 2, 1, 0))
    of_a: gl.constexpr = (BLOCK_M // 16, 8, 4)
    of_b: gl.constexpr = (8, BLOCK_N // 8, 4)
    return _quarters(upper, of_a, 2), _quarters(lower, of_a, 2), _quarters(b, of_b, 0)


@gluon.jit
def zero_sums(BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr):
    zeros = gl.zeros([BLOCK_M // 16, 8, BLOCK_N // 8, 4], gl.float64, SUMS)
    return zeros, zeros, zeros, zeros


@gluon.jit
def multiply_add(sums, upper, lower, b):
    """The sums plus the product of a slice's fragments."""
    u0, u1, u2, u3 = upper
    l0, l1, l2, l3 = lower
    b0, b1, b2, b3 = b
    s0, s1, s2, s3 = sums
    operands = [u0, l0, u1, l1, u2, l2, u3, l3, b0, b1, b2, b3, s0, s1, s2, s3]
    return gl.inline_asm_elementwise(PTX, CONSTRAINTS, operands, FOUR, is_pure=True, pack=1)


@gluon.jit
def joined(sums, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr):
    """The sums as one tensor (BLOCK_M, BLOCK_N); nothing moves."""
    s0, s1, s2, s3 = sums
    upper = gl.join(s0, s1).reshape((BLOCK_M // 16, 8, BLOCK_N))
    lower = gl.join(s2, s3).reshape((BLOCK_M // 16, 8, BLOCK_N))
    return gl.join(upper, lower).permute((0, 3, 1, 2)).reshape((BLOCK_M, BLOCK_N))


@gluon.jit
def _tile_product(
    a: Operand, b: Operand, row, col, length, how: Staging, words: Words,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr, WIDE: gl.constexpr,
):  # fmt: skip
    """The sum over the first `length` of K of the tile at (row, col).

    Doubles that come in words across K are read before the next slice is asked for. Others would take more registers than three
    blocks of an SM have, or than the sums of larger tiles leave.
    """
    STAGES: gl.constexpr = how.STAGES
    EARLY: gl.constexpr = words.A > 1 and words.B > 1 and BLOCK_M * BLOCK_N <= 64 * 64
    slices, a_ptr, b_ptr, of_a, of_b = first_slices(a, b, row, col, length, how, words, BLOCK_M, BLOCK_N, BLOCK_K, WIDE)
    acc = zero_sums(BLOCK_M, BLOCK_N)
    stage = 0  # holds the slice that is multiplied
    free = STAGES - 1  # held the one before
    for left in range(slices, 0, -1):
        async_copy.wait_group(STAGES - 2)  # this thread's part of the slice is there
        barrier()  # everybody's is, and nobody reads the one before any more
        if EARLY:
            upper, lower, b_k = fragments(of_a.places.index(stage), of_b.places.index(stage), BLOCK_M, BLOCK_N)
        copy_slices(of_a, of_b, a_ptr, b_ptr, free, left >= STAGES)
        a_ptr += distance(BLOCK_K, a.k, WIDE)
        b_ptr += distance(BLOCK_K, b.k, WIDE)
        if not EARLY:
            upper, lower, b_k = fragments(of_a.places.index(stage), of_b.places.index(stage), BLOCK_M, BLOCK_N)
        acc = multiply_add(acc, upper, lower, b_k)
        free = stage
        stage = stage + 1 if stage < STAGES - 1 else 0
    return joined(acc, BLOCK_M, BLOCK_N)


@gluon.jit
def _dmma_kernel(
    a: Matrices, b: Matrices, scale_a: Matrices, scale_b: Matrices, c: Matrices, bias: Vector, out: Matrices,
    sizes: Sizes, epilogue: Epilogue, how: Arithmetic, splits: Splits, counters, staging: Staging, words: Words,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr, GROUP_M: gl.constexpr,
):  # fmt: skip
    """A program has a tile, and all of K or a split of it."""
    wait_for_earlier_kernels()
    at = part_of(a, b, sizes, splits, BLOCK_M, BLOCK_N, GROUP_M, how.WIDE)
    acc = _tile_product(at.a, at.b, at.row, at.col, at.length, staging, words, BLOCK_M, BLOCK_N, BLOCK_K, how.WIDE)
    store_part(acc, at, scale_a, scale_b, c, bias, out, sizes, epilogue, splits, counters, BLOCK_M, BLOCK_N, how.WIDE)


# (BLOCK_M, BLOCK_N, BLOCK_K: doubles that fill all banks, num_warps, num_stages): 64 x 32 sums a warp, then fewer
TILES = (
    (128, 64, 16, 4, 4),
    (64, 64, 16, 4, 4),
    (64, 32, 16, 4, 4),
    (32, 64, 16, 4, 4),
    (32, 32, 16, 4, 4),
)


def refuses(problem, target):
    lacking = needs_a_gpu(target) or target.lacks("fp64 on tensor cores", 80)
    if lacking or problem.precision == "fp64":
        return lacking
    return f"it multiplies float64 on tensor cores, and has no {problem.precision}"


def _sums(config):
    return SUMS


def _stored(config, t, length):
    along_k = t.stride(2) <= t.stride(1)
    pairs = in_words(t, along=2 if along_k else 1)
    order = [0, 1] if along_k else [1, 0]
    load = loads(config, length, along_k, width=2 if pairs else 1)
    return load, gl.SwizzledSharedLayout(4, 1, 4, order), 2 if pairs and not along_k else 1


DESIGN = product_design(_dmma_kernel, TILES, refuses, _sums, _stored, lambda problem: problem)
