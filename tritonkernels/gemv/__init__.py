"""Matrix-vector product: bound by the one read of the matrix, so everything is about reading it well."""

import torch

from .. import validate
from ..launch import LIBRARY
from ..library import Call
from ..problem import FLOAT_PRECISION, GemvProblem, layout_of, needs_wide_offsets

DESIGNS = ("warp_per_row",)


def gemv(a, x, y=None, *, alpha=1.0, beta=0.0, out=None, design=None, config=None):
    """out = alpha * A x + beta * y in IEEE fp32, as torch.addmv(y, a, x, alpha=alpha, beta=beta).

    a       (M, N) float32, any strides
    x       (N,) float32, any stride
    y       what broadcasts to (M,), float32; needed if beta != 0, never read if beta == 0
    alpha, beta  real numbers, rounded to fp32; with alpha == 0, A and x are not read
    out     (M,) float32 to write into; must not overlap an input. Default: a new tensor
    design  a name from designs("gemv"); default: chosen for the problem
    config  one of the design's configs, or a dict of some of its numbers; default: chosen for the problem

    M and N may be 0. Error, elementwise: gamma(N + 4) * (|alpha| |A||x| + |beta| |y|) plus the rounding of the result,
    u = 2^-24 (`numerics.error_bound`). Raises as `gemm` does, before anything is launched.

    Source: "gemv optimisation summary", work split by regime of N.
    """
    return LIBRARY.run(prepare(a, x, y, alpha=alpha, beta=beta, out=out), design, config)


def prepare(a, x, y=None, *, alpha=1.0, beta=0.0, out=None):
    """Validate gemv's arguments into a Call whose one part is (a, x, y or None, out)."""
    a = validate.tensor("a", a, dtypes=(torch.float32,), ranks=(2,))
    x = validate.tensor("x", x, dtypes=(torch.float32,), ranks=(1,), like=("a", a))
    m, n = a.shape
    validate.inner("a", n, "x", x.shape[0])
    alpha, beta = validate.number("alpha", alpha), validate.number("beta", beta)
    y = validate.addend("y", y, beta, (m,), like=("a", a))
    if alpha == 0:  # as in BLAS, A and x are not read then: whatever they hold, the product is 0
        a, x, n = a[:, :0], x[:0], 0
    validate.no_gradient("gemv", a=a, x=x, y=y)
    out = validate.result(out, (m,), a.dtype, a.device, a=a, x=x, y=y)
    problem = GemvProblem(
        dtype=a.dtype,
        out_dtype=a.dtype,
        precision=FLOAT_PRECISION[a.dtype],
        wide=needs_wide_offsets(a, x, y, out),
        m=m,
        n=n,
        alpha=alpha,
        beta=beta,
        a_layout=layout_of(a),
    )
    return Call(problem, ((a, x, y, out),), out)
