"""Checks gemv's arguments and makes its Call."""

import math

import torch

from ... import validate
from ...batches import uniform_batches
from ...errors import DtypeError, ShapeError
from ...operation import Call
from ...problem import GemvProblem, holds, layout_of, needs_wide_offsets

WITH_INT8 = (torch.float32, torch.float16, torch.bfloat16)  # what x may be where A is int8
VECTORS = (*WITH_INT8, torch.float64)  # what x may be, and A
ELSEWHERE = dict.fromkeys((torch.uint8, torch.float8_e4m3fn, torch.float8_e5m2), "matmul") | {1: "matmul"}


def prepare(a, x, y=None, *, alpha=1.0, beta=None, scale=None, out=None):
    """Validate gemv's arguments into a Call of parts (a, x, y or None, scale or None, out).

    In a part a is (batch, M, N), x (batch, N), y and out (batch, M), scale (M,).
    """
    a = validate.tensor("a", a, dtypes=(*VECTORS, torch.int8), ranks=range(2, 65), elsewhere=ELSEWHERE)
    of_x, like = (WITH_INT8, None) if a.dtype == torch.int8 else (VECTORS, ("a", a))
    x = validate.tensor("x", x, dtypes=of_x, ranks=range(1, 65), like=like)
    validate.same_device("x", x, "a", a)
    m, n = a.shape[-2:]
    validate.inner("a", n, "x", x.shape[-1])
    batch = validate.broadcast_shape("a", a.shape[:-2], "x", x.shape[:-1])
    alpha, beta = validate.number("alpha", alpha), validate.number("beta", validate.beta_of(beta, y))
    y = validate.addend("y", y, beta, (*batch, m), like=("x", x))
    scale = _scale(scale, a, m)
    if holds(alpha == 0):  # as in BLAS, A and x are then not read, and the product is 0
        a, x, n = a[..., :0], x[..., :0], 0
    rows = math.prod(batch) * m
    if validate.is_too_large(rows):
        raise ShapeError("the batch", f"{rows} rows in all", f"up to {validate.LARGEST_SIZE}", "Split the call.")
    out = validate.result(out, (*batch, m), x.dtype, a.device, addend="y", a=a, x=x, y=y, scale=scale)
    matrices, vectors = a.expand(*batch, m, n), x.expand(*batch, n)
    problem = GemvProblem(
        dtype=x.dtype,
        out_dtype=x.dtype,
        precision="fp64" if x.dtype == torch.float64 else "ieee",
        wide=needs_wide_offsets(matrices, vectors, y, scale, out),
        batch=math.prod(batch),
        m=m,
        n=n,
        alpha=alpha,
        beta=beta,
        a_dtype=a.dtype,
        a_layout=layout_of(a),
        a_shared=not any(holds(stride != 0) for stride in matrices.stride()[:-2]),
        x_shared=not any(holds(stride != 0) for stride in vectors.stride()[:-1]),
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
        if scale is None:
            raise DtypeError("scale", None, "a tensor (M,), as a is int8", "Without a scale, pass torch.ones(M).")
        raise DtypeError("scale", "a tensor", f"None, as a is {a.dtype}", "Leave it out, or pass a as int8.")
    if scale is not None:
        scale = validate.tensor("scale", scale, dtypes=(torch.float32,), ranks=(1,))
        validate.same_device("scale", scale, "a", a)
        validate.length("scale", scale, m, "M, the rows of a")
    return scale
