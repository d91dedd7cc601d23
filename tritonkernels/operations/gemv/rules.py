"""gemv as an operator of torch: its gradients and its batches."""

import math

from ... import validate
from ...torch_ops.rules import Rules, aligned, front, padded
from ..gemm.rules import scaled


def gradients(ops, grad, forms, a, x, y, scale, alpha, beta):
    def of_rows():
        """The gradient of A x."""
        return grad if scale is None else (grad * scale).to(grad.dtype)

    def of_a():
        rows, vectors = of_rows(), x.expand(*grad.shape[:-1], x.shape[-1])
        if len(forms["a"].shape) == 2:  # one matrix for all vectors: one product
            count = math.prod(grad.shape[:-1])
            left, right = rows.reshape(count, rows.shape[-1]).mT, vectors.reshape(count, x.shape[-1])
        else:
            left, right = rows[..., None], vectors[..., None, :]
        return forms["a"].product(ops.matmul, left, right, alpha=alpha)

    def ones(size):
        return None if forms["scale"] is None else grad.new_ones(size, dtype=forms["scale"].dtype)

    return {
        "a": of_a,
        "x": lambda: ops.gemv(a.mT, of_rows(), None, ones(a.shape[-1]), alpha=alpha),
        "y": lambda: scaled(grad, beta),
        "scale": lambda: grad * ops.gemv(a, x, None, ones(a.shape[-2]), alpha=alpha),
    }


def batched(ops, size, dims, a, x, y, scale, alpha, beta):
    if dims["scale"] is not None:
        return None
    rank = max(a.ndim - (dims["a"] is not None) - 1, x.ndim - (dims["x"] is not None))  # of the result
    if dims["a"] is not None:
        a = padded(front(a, dims["a"]), rank + 1)
    if dims["x"] is not None:
        x = padded(front(x, dims["x"]), rank)
    if dims["y"] is not None:
        y = padded(front(y, dims["y"]), rank)
        a = a if dims["a"] is not None else a.expand(size, *[1] * (rank + 1 - a.ndim), *a.shape)
    return ops.gemv(a, x, y, scale, alpha=alpha, beta=beta)


def labels(a, x, y, scale, **_):
    result = (*range(max(a.ndim - 2, x.ndim - 1)), "m")
    vectors = (*result[:-1], "k")
    operands = {
        "a": aligned(a, (*result, "k")),
        "x": aligned(x, vectors),
        "y": aligned(y, result),
        "scale": aligned(scale, ("m",)),
    }
    return operands | {"result": result}


def settled(a, x, y, alpha, beta, scale):
    beta = validate.number("beta", validate.beta_of(beta, y))
    return {"a": a, "x": x, "y": y, "scale": scale, "alpha": validate.number("alpha", alpha), "beta": beta}


RULES = Rules(
    "Tensor a, Tensor x, Tensor? y=None, Tensor? scale=None, *, Scalar alpha=1.0, Scalar? beta=None",
    gradients,
    batched,
    flops=lambda result, a, **_: 2 * result.numel() * a.shape[-1],
    labels=labels,
    addends={"y": lambda tangent, forms, beta, **_: scaled(tangent, beta)},
    settled=settled,
)
