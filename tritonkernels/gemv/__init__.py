"""Matrix-vector product: bound by the one read of the matrix, so everything is about reading it well."""

import math

import torch

from .. import validate
from ..batches import uniform_batches
from ..errors import DtypeError, ShapeError
from ..launch import LIBRARY
from ..library import Call
from ..problem import GemvProblem, layout_of, needs_wide_offsets
from .parts.regime import expected as expected
from .parts.regime import prefer as prefer

DESIGNS = (
    "naive",
    "staged_x",
    "warp_per_row",
    "vectorized",
    "rows_per_warp",
    "block_per_row",
    "split_n",
    "transposed",
)

VECTORS = (torch.float32, torch.float16, torch.bfloat16)  # what x may be, and A; A may be int8 as well


def gemv(a, x, y=None, *, alpha=1.0, beta=None, scale=None, out=None, design=None, config=None):
    """alpha * A x + beta * y with sums in IEEE fp32, as torch.addmv(y, a, x, alpha=alpha, beta=beta), or a batch of them.

    a       (..., M, N) float32, float16, bfloat16, or int8 weights, any strides; a.t() of a row-major matrix is not copied
    x       (..., N) float32, float16 or bfloat16: of a's dtype, unless a is int8. Batch dimensions broadcast with a's
    y       what broadcasts to the result (..., M), of x's dtype; needed if beta != 0, never read if beta == 0
    alpha, beta  real numbers, rounded to fp32; with alpha == 0, A and x are not read. beta: default 1 if y is given, else 0
    scale   (M,) float32, a factor of each row; needed if a is int8, refused otherwise
    out     (..., M) of x's dtype to write into; must not overlap an input. Default: a new tensor
    design  a name from designs("gemv"); default: chosen for the problem (`regime.prefer`)
    config  one of the design's configs, or a dict of some of its numbers; default: chosen for the problem

    Any size may be 0. Error, elementwise: gamma(N + 4) * (|alpha| |scale| |A||x| + |beta| |y|) plus the rounding of the result,
    u = 2^-24 (`numerics.error_bound`). Raises as `gemm` does, before anything is launched.

    Source: "gemv optimisation summary", work split by regime of N.
    """
    return LIBRARY.call(prepare, **locals())


def prepare(a, x, y=None, *, alpha=1.0, beta=None, scale=None, out=None):
    """Validate gemv's arguments into a Call of parts (a, x, y or None, scale or None, out).

    In a part a is (batch, M, N), x (batch, N), y and out (batch, M), scale (M,).
    """
    a = validate.tensor("a", a, dtypes=(*VECTORS, torch.int8), ranks=range(2, 65))
    x = validate.tensor("x", x, dtypes=VECTORS, ranks=range(1, 65), like=("a", a) if a.dtype in VECTORS else None)
    validate.beside("x", x, "a", a)
    m, n = a.shape[-2:]
    validate.inner("a", n, "x", x.shape[-1])
    batch = validate.broadcast_shape("a", a.shape[:-2], "x", x.shape[:-1])
    alpha, beta = validate.number("alpha", alpha), validate.number("beta", validate.beta_of(beta, y))
    y = validate.addend("y", y, beta, (*batch, m), like=("x", x))
    scale = _scale(scale, a, m)
    if alpha == 0:  # as in BLAS, A and x are not read then: whatever they hold, the product is 0
        a, x, n = a[..., :0], x[..., :0], 0
    validate.no_gradient("gemv", a=a, x=x, y=y, scale=scale)
    rows = math.prod(batch) * m
    if rows > validate.LARGEST_SIZE:
        raise ShapeError("the batch", f"{rows} rows in all", f"up to {validate.LARGEST_SIZE}", "Split the call.")
    out = validate.result(out, (*batch, m), x.dtype, a.device, a=a, x=x, y=y, scale=scale)
    matrices, vectors = a.expand(*batch, m, n), x.expand(*batch, n)
    problem = GemvProblem(
        dtype=x.dtype,
        out_dtype=x.dtype,
        precision="ieee",
        wide=needs_wide_offsets(matrices, vectors, y, scale, out),
        batch=math.prod(batch),
        m=m,
        n=n,
        alpha=alpha,
        beta=beta,
        a_dtype=a.dtype,
        a_layout=layout_of(a),
        a_shared=not any(matrices.stride()[:-2]),
        x_shared=not any(vectors.stride()[:-1]),
        scaled=scale is not None,
    )
    columns = [t.unsqueeze(-1) for t in (vectors, *(() if y is None else (y,)), out)]
    parts = []
    for matrix, vector, *addend, result in uniform_batches(matrices, *columns):
        addend = addend[0].squeeze(-1) if addend else None
        parts.append((matrix, vector.squeeze(-1), addend, scale, result.squeeze(-1)))
    return Call(problem, tuple(parts), out)


def _scale(scale, a, m):
    if (scale is None) == (a.dtype == torch.int8):
        got, allowed = (None, "a tensor (M,), as a is int8") if scale is None else ("a tensor", f"None, as a is {a.dtype}")
        raise DtypeError("scale", got, allowed)
    if scale is not None:
        scale = validate.tensor("scale", scale, dtypes=(torch.float32,), ranks=(1,))
        validate.beside("scale", scale, "a", a)
        validate.length("scale", scale, m, "M, the rows of a")
    return scale
