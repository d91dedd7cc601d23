"""The end of every product: activation(alpha * scale_a * scale_b * sum + beta * C + bias), rounded to the result's type.

A gated linear unit's result has a column for each pair of the sums', which a thread has side by side.
"""

from ...language.activation import activated
from ...language.dot import widened
from ...language.epilogue import rounded
from ...language.scalars import factor
from ...language.tiles import multiple
from ...language.triton import tl, triton


@triton.jit
def finished(acc, scale_a, scale_b, c, bias, batch, rows, cols, sizes, epilogue, c_tile=None, bias_row=None):
    """activation(alpha * scale_a * scale_b * acc + beta * C + bias) of a tile, in the type of acc. C is None where beta is 0:
    never read; so are scales that are 1. c_tile and bias_row: what is there of C and bias, where these are not read here.
    If GATED, activation(the first) * the second of each pair of columns: half a tile."""
    result = factor(epilogue.alpha, acc.dtype)
    if scale_a is not None:
        result *= tl.load(scale_a.ptr + batch * scale_a.batch + rows * scale_a.row, mask=rows < sizes.M, other=0)[:, None]
    if scale_b is not None:
        result *= tl.load(scale_b.ptr + batch * scale_b.batch + cols * scale_b.col, mask=cols < sizes.N, other=0)[None, :]
    result *= acc
    if c is not None:
        c_rows = c.ptr + batch * multiple(c.batch, sizes.OF_C[0]) + rows[:, None] * multiple(c.row, sizes.OF_C[1])
        c_tile = tl.load(c_rows + cols[None, :] * multiple(c.col, sizes.OF_C[2]), mask=inside(rows, cols, sizes), other=0)
    if c_tile is not None:
        result += factor(epilogue.beta, acc.dtype) * widened(c_tile, acc.dtype)
    if bias is not None:
        bias_row = tl.load(bias.ptr + cols * bias.step, mask=cols < sizes.N, other=0)
    if bias_row is not None:
        result += widened(bias_row, acc.dtype)[None, :]
    if epilogue.GATED:
        gate, value = result.reshape((result.shape[0], result.shape[1] // 2, 2)).split()
        return activated(gate, epilogue.ACTIVATION, epilogue.QUICK) * value
    else:
        return activated(result, epilogue.ACTIVATION, epilogue.QUICK)


@triton.jit
def store_tile(acc, scale_a, scale_b, c, bias, out, batch, rows, cols, sizes, epilogue, pairs=None):
    """Finish a tile and write the part of it that lies inside. pairs: the result's columns if it is GATED."""
    result = finished(acc, scale_a, scale_b, c, bias, batch, rows, cols, sizes, epilogue)
    store_finished(result, out, batch, rows, pairs if epilogue.GATED else cols, sizes, epilogue)


@triton.jit
def store_finished(result, out, batch, rows, cols, sizes, epilogue):
    """Write the part of a finished tile that lies inside."""
    if epilogue.GATED:
        mask = (rows < sizes.M)[:, None] & (cols < multiple(sizes.N, sizes.OF_SIZES[1]) // 2)[None, :]
    else:
        mask = inside(rows, cols, sizes)
    tl.store(places(out, batch, rows, cols, sizes), rounded(result, out.ptr.dtype.element_ty), mask=mask)


@triton.jit
def places(out, batch, rows, cols, sizes):
    """Pointers to a tile's results."""
    out_rows = out.ptr + batch * multiple(out.batch, sizes.OF_OUT[0]) + rows[:, None] * multiple(out.row, sizes.OF_OUT[1])
    return out_rows + cols[None, :] * multiple(out.col, sizes.OF_OUT[2])


@triton.jit
def inside(rows, cols, sizes):
    return (rows < multiple(sizes.M, sizes.OF_SIZES[0]))[:, None] & (cols < multiple(sizes.N, sizes.OF_SIZES[1]))[None, :]
