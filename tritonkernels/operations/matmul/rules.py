"""matmul as an operator of torch: its gradients, its batches, and its activation, which torch applies where it is recorded."""

import functools
import math

from torch.nn import functional

from ... import switches, validate
from ...problem import GATED
from ...torch_ops.rules import Rules, front, padded
from ..gemm import rules as of_gemm
from ..gemm.rules import scaled
from .prepare import check_gated

ACTIVATIONS = {"relu": functional.relu, "gelu": functional.gelu, "silu": functional.silu}


def gradients(ops, grad, forms, a, b, c, bias, alpha, beta, precision, **_):
    """The gradients of products without scales: with scales, in fp8, there are none."""
    a_shape, b_shape, options = forms["a"].shape, forms["b"].shape, {"alpha": alpha, "precision": precision}
    rows = grad if len(b_shape) > 1 else grad[..., None]
    rows = (rows if len(a_shape) > 1 else rows[..., None, :]).to(forms["a"].dtype)  # of the product of matrices

    def of_a():
        found = forms["a"].product(ops.matmul, rows, b.mT if b.ndim > 1 else b[None, :], **options)
        return found if len(a_shape) > 1 else found[..., 0, :]

    def of_b():
        left, right = a if a.ndim > 1 else a[None, :], rows
        if len(b_shape) <= 2 and rows.ndim > 2:  # one matrix for all of the batch: one product
            count = math.prod(rows.shape[:-1])
            left = left.expand(*rows.shape[:-1], a_shape[-1]).reshape(count, a_shape[-1])
            right = rows.reshape(count, rows.shape[-1])
        found = forms["b"].product(ops.matmul, left.mT, right, **options)
        return found if len(b_shape) > 1 else found[..., 0]

    of_bias = grad if len(b_shape) > 1 else grad[..., None]
    return {"a": of_a, "b": of_b, "c": lambda: scaled(grad, beta), "bias": lambda: of_bias}


def batched(ops, size, dims, a, b, c, bias, scale_a, scale_b, alpha, beta, activation, **options):
    rank = {name: t.ndim - (dims[name] is not None) for name, t in (("a", a), ("b", b))}
    takes_no_c = c is not None or activation in GATED
    if (dims["bias"] is not None and takes_no_c) or dims["scale_a"] is not None or dims["scale_b"] is not None:
        return None
    a, b = front(a, dims["a"]), front(b, dims["b"])
    a, b = a if rank["a"] > 1 else a[..., None, :], b if rank["b"] > 1 else b[..., None]
    most = max(2, *rank.values())
    if dims["a"] is not None:
        a = padded(a, most)
    if dims["b"] is not None:
        b = padded(b, most)
    if dims["a"] is None and dims["b"] is None:  # the batch is that of the operands
        a = a.expand(size, *[1] * (most - a.ndim), *a.shape)
    if dims["bias"] is not None:
        c, bias, beta, dims = front(bias, dims["bias"]), None, 1.0, dims | {"c": 0}
        c = c if rank["b"] > 1 else c[..., 0]
    if c is not None:
        c = front(c, dims["c"])
        c = padded(c, most - (rank["a"] == 1) - (rank["b"] == 1)) if dims["c"] is not None else c
        if rank["b"] == 1:
            c = c[..., None]
        if rank["a"] == 1 and c.ndim > 1:
            c = c[..., None, :]
    result = ops.matmul(a, b, c, bias, scale_a, scale_b, alpha=alpha, beta=beta, activation=activation, **options)
    result = result if rank["b"] > 1 else result[..., 0]
    return result if rank["a"] > 1 else result[..., 0] if rank["b"] == 1 else result[..., 0, :]


def settled(alpha, beta, c, **others):
    scalars = {"alpha": validate.number("alpha", alpha), "beta": validate.number("beta", validate.beta_of(beta, c))}
    return {"c": c, **scalars, **others}


def outer(activation, **arguments):
    return (ACTIVATIONS[activation], arguments) if activation in (*ACTIVATIONS,) else None  # `prepare` refuses others


def outer_of_matmul(activation, b, c, **arguments):
    """The same, and gated linear units."""
    if activation not in (*GATED,):
        return outer(activation, b=b, c=c, **arguments)
    check_gated(activation, b, c)
    return functools.partial(_gated, ACTIVATIONS[GATED[activation]]), {"b": b, "c": c, **arguments}


def _gated(activation, pairs):
    return activation(pairs[..., 0::2]) * pairs[..., 1::2]


def labels(*tensors, activation=None, **others):
    """gemm's; ranks do not share out the columns of a gated linear unit, whose pairs they might part."""
    found = of_gemm.labels(*tensors, **others)
    if activation not in GATED:
        return found
    return {name: tuple(None if label == "n" else label for label in of_tensor) for name, of_tensor in found.items()}


RULES = Rules(
    "Tensor a, Tensor b, Tensor? c=None, Tensor? bias=None, Tensor? scale_a=None, Tensor? scale_b=None, "
    "Tensor? b_planes=None, Tensor? b_ranges=None, *, "
    "str? precision=None, ScalarType? out_dtype=None, str? accumulate=None, Scalar alpha=1.0, Scalar? beta=None, "
    "str? activation=None",
    gradients,
    batched,
    flops=lambda result, a, activation=None, **_: 2 * (1 + (activation in GATED)) * result.numel() * a.shape[-1],
    labels=labels,
    addends={
        "c": lambda tangent, forms, beta, **_: scaled(tangent, beta),
        "bias": lambda tangent, forms, **_: tangent if len(forms["b"].shape) > 1 else tangent[0],
    },
    settled=settled,
    outer=outer_of_matmul,
    switch=switches.of_products,
    constants=("scale_a", "scale_b", "b_planes", "b_ranges"),
)
