"""Checks gemm's arguments and makes its Call."""

import torch

from ... import validate
from ...operation import Call
from ...problem import FLOAT_PRECISION, GemmProblem, holds, layout_of, needs_wide_offsets

DTYPES = (torch.float32, torch.float64)
ELSEWHERE = dict.fromkeys(
    (torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.float8_e4m3fn, torch.float8_e5m2), "matmul"
) | dict.fromkeys((1, *range(3, 65)), "matmul")


def prepare(a, b, c=None, *, alpha=1.0, beta=None, out=None):
    """Validate gemm's arguments into a Call whose one part is (a, b, c or None, out)."""
    a = validate.tensor("a", a, dtypes=DTYPES, ranks=(2,), elsewhere=ELSEWHERE)
    b = validate.tensor("b", b, dtypes=DTYPES, ranks=(2,), like=("a", a), elsewhere=ELSEWHERE)
    (m, k), (k_of_b, n) = a.shape, b.shape
    validate.inner("a", k, "b", k_of_b)
    alpha, beta = validate.number("alpha", alpha), validate.number("beta", validate.beta_of(beta, c))
    c = validate.addend("c", c, beta, (m, n), like=("a", a))
    if holds(alpha == 0):  # as in BLAS, A and B are then not read, and the product is 0
        a, b, k = a[:, :0], b[:0], 0
    out = validate.result(out, (m, n), a.dtype, a.device, addend="c", a=a, b=b, c=c)
    problem = GemmProblem(
        dtype=a.dtype,
        out_dtype=a.dtype,
        precision=FLOAT_PRECISION[a.dtype],
        wide=needs_wide_offsets(a, b, c, out),
        m=m,
        n=n,
        k=k,
        alpha=alpha,
        beta=beta,
        a_layout=layout_of(a),
        b_layout=layout_of(b),
    )
    return Call(problem, ((a, b, c, out),), out)
