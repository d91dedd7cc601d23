"""Shared by the blocked designs: the tile of a program, its sum of products over a range of K, and its store."""

from ...language.structs import Matrix
from ...language.tiles import span
from ...language.triton import tl, triton
from ...launch import TritonLaunch
from .space import count_tiles


def blas(problem, a, b, c, out):
    """The first arguments of every kernel of this operation."""
    operands = (Matrix.of(t) for t in (a, b, c, out))
    return (*operands, problem.m, problem.n, problem.k, problem.alpha, problem.beta)


def one_program_a_tile(kernel):
    """`launches` of a design whose kernel computes a tile of C a program."""

    def launches(problem, config, *tensors):
        yield TritonLaunch(kernel, (count_tiles(problem, config.kwargs),), config, *blas(problem, *tensors), WIDE=problem.wide)

    return launches


@triton.jit
def rows_and_cols(tile, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, WIDE: tl.constexpr):
    """The indices into M and N of a tile, of those that are counted along N first."""
    tiles_n = tl.cdiv(N, BLOCK_N)
    return span(tile // tiles_n * BLOCK_M, BLOCK_M, WIDE), span(tile % tiles_n * BLOCK_N, BLOCK_N, WIDE)


@triton.jit
def tile_product(a, b, rows, cols, first_k, end_k, M, N, BLOCK_K: tl.constexpr, WIDE: tl.constexpr):
    """The (BLOCK_M, BLOCK_N) sum over k in [first_k, end_k), in slices of BLOCK_K that Triton stages in shared memory."""
    acc = tl.zeros((rows.shape[0], cols.shape[0]), tl.float32)
    for k in range(first_k, end_k, BLOCK_K):
        ks = span(k, BLOCK_K, WIDE)
        a_inside = (rows < M)[:, None] & (ks < end_k)[None, :]
        b_inside = (ks < end_k)[:, None] & (cols < N)[None, :]
        a_slice = tl.load(a.ptr + rows[:, None] * a.row + ks[None, :] * a.col, mask=a_inside, other=0)
        b_slice = tl.load(b.ptr + ks[:, None] * b.row + cols[None, :] * b.col, mask=b_inside, other=0)
        acc = tl.dot(a_slice, b_slice, acc, input_precision="ieee")
    return acc


@triton.jit
def store_tile(acc, c, out, rows, cols, M, N, alpha, beta):
    """out = alpha * acc + beta * C on the part of the tile that lies inside. C is None where beta is 0: never read."""
    inside = (rows < M)[:, None] & (cols < N)[None, :]
    acc = alpha * acc
    if c is not None:
        c_tile = tl.load(c.ptr + rows[:, None] * c.row + cols[None, :] * c.col, mask=inside, other=0)
        acc += beta * c_tile
    tl.store(out.ptr + rows[:, None] * out.row + cols[None, :] * out.col, acc, mask=inside)
