"""Tiles of doubles, multiplied by mma of 16 x 8 x 16 that this library writes itself, in PTX.

Triton's own product of doubles is mma of 8 x 8 x 4 from Triton 3.8 on, by which an H200 computes 0.6 as much, and its layout of
the sums has changed with it (triton-lang/triton, pull requests 10060 and 10313).

A thread has sums of rows g and g + 8 of 16 and of two neighbouring columns, so a tile's sums are four tensors, one for each of
its 2 x 2 places. Their dimensions are (block of 16 rows, g, block of 8 columns, pair of columns): an operand's registers do not
vary along those dimensions that it has not, and what one mma multiplies is an element of each tensor.
"""

from triton import constexpr_function
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

K = gl.constexpr(16)  # of a slice
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
