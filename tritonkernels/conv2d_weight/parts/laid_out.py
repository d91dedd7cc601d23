"""One source of a kernel for two compilers: Gluon's on a GPU, where layouts are given, and the interpreter, which has none.

Triton's own compiler chooses the layout of each load, and goes through all of the kernel for it: half a minute where there are
hundreds of loads, which Gluon compiles in 2 s. A kernel says `@jit` and `constexpr`, gives the functions below its layouts, and
calls `gl` for all else: those functions have the same names in Gluon and in the `tl` of the interpreter.
"""

from triton.experimental.gluon import constexpr_function
from triton.experimental.gluon.language import SliceLayout
from triton.language.core import TRITON_BUILTIN, builtin

from ... import backend

if backend.name() == "interpreter":
    from ...language.triton import tl as gl
    from ...language.triton import triton

    jit, constexpr = triton.jit, gl.constexpr

    @jit
    def arange(first, end, LAYOUT: constexpr):
        return gl.arange(first, end)

    @jit
    def zeros(SHAPE: constexpr, DTYPE: constexpr, LAYOUT: constexpr):
        return gl.zeros(SHAPE, DTYPE)

    @jit
    def laid_out(tile, LAYOUT: constexpr):
        return tile

    def threads():
        return 32, 1

    setattr(threads, TRITON_BUILTIN, True)
else:
    from triton.experimental import gluon
    from triton.experimental.gluon import language as gl

    jit, constexpr, arange, zeros = gluon.jit, gl.constexpr, gl.arange, gl.zeros

    @jit
    def laid_out(tile, LAYOUT: constexpr):
        """The tile in a layout in which each thread holds the same elements."""
        return gl.convert_layout(tile, LAYOUT, assert_trivial=True)

    @builtin
    def threads(_semantic=None):
        """(lanes of a warp, warps of a program)."""
        options = _semantic.builder.options
        return constexpr((options.warp_size, options.num_warps))


@constexpr_function
def along(tile, dim):
    """The layout of one dimension of a tile of two."""
    return SliceLayout(1 - dim, tile)


@jit
def span(start, LENGTH: constexpr, LAYOUT: constexpr, WIDE: constexpr):
    """start, start + 1, ..., LENGTH of them; 64-bit where WIDE, so that index times stride cannot overflow."""
    index = start + arange(0, LENGTH, LAYOUT)
    if WIDE:
        index = index.to(gl.int64)
    return index


__all__ = ["along", "arange", "constexpr", "constexpr_function", "gl", "jit", "laid_out", "span", "threads", "zeros"]
