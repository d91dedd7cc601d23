"""What the lessons of gemm in Gluon share, which holds no idea: indices and the store of a tile."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from ...language.gluon_tile import needs_a_gpu
from ...lesson import lesson
from .lessons import FLOAT32


def gluon_lesson(config, launches):
    """The lesson of a Gluon kernel, with a single config."""
    return lesson(lambda problem, target: [config], launches, FLOAT32, lambda problem, target: needs_a_gpu(target))


@gluon.jit
def span(start, LENGTH: gl.constexpr, LAYOUT: gl.constexpr, DIM: gl.constexpr):
    """start, start + 1, ..., LENGTH of them, along dimension DIM of a tile with this layout."""
    index = start + gl.arange(0, LENGTH, gl.SliceLayout(1 - DIM, LAYOUT))
    return index[:, None] if DIM == 0 else index[None, :]


@gluon.jit
def store_tile(acc, c, out, row, col, M, N, alpha, beta):
    """out = alpha * acc + beta * C on the part of the tile at (row, col) that lies inside. C is None where beta is 0."""
    LAYOUT: gl.constexpr = acc.type.layout
    rows = span(row, acc.shape[0], LAYOUT, 0)
    cols = span(col, acc.shape[1], LAYOUT, 1)
    inside = (rows < M) & (cols < N)
    acc = alpha * acc
    if c is not None:
        acc += beta * gl.load(c.ptr + rows * c.row + cols * c.col, mask=inside, other=0)
    gl.store(out.ptr + rows * out.row + cols * out.col, acc, mask=inside)
