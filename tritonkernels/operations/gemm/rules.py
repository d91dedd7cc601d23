"""gemm as an operator of torch: its gradients, and its batches, which are matmul's."""

from ... import validate
from ...problem import holds
from ...torch_ops.rules import Rules, aligned, front, padded


def gradients(ops, grad, forms, a, b, c, alpha, beta):
    return {
        "a": lambda: forms["a"].product(ops.gemm, grad, b.mT, alpha=alpha),
        "b": lambda: forms["b"].product(ops.gemm, a.mT, grad, alpha=alpha),
        "c": lambda: scaled(grad, beta),
    }


def scaled(addend, beta):
    """beta * addend, as in torch.addmm without a pass over it where beta is 1."""
    return addend if beta is None or holds(beta == 1) else beta * addend


def batched(ops, size, dims, a, b, c, alpha, beta):
    a, b = front(a, dims["a"]), front(b, dims["b"])
    if dims["c"] is not None:
        c = padded(front(c, dims["c"]), 2)
        a = a.expand(size, *a.shape[-2:])  # the batch is that of the operands
    return ops.matmul(a, b, c, alpha=alpha, beta=beta)


def labels(a, b, c, bias=None, scale_a=None, scale_b=None, **_):
    """(*batch, m, k) times (*batch, k, n), as torch.matmul has it: matmul's too."""
    batch = range(max(a.ndim, b.ndim) - 2)
    rows, columns = ("m",) if a.ndim > 1 else (), ("n",) if b.ndim > 1 else ()
    result = (*batch, *rows, *columns)
    return {
        "a": aligned(a, (*batch, *rows, "k")),
        "b": aligned(b, (*batch, "k", *columns)),
        "c": aligned(c, result),
        "bias": aligned(bias, columns),
        "scale_a": aligned(scale_a, (*batch, "m", None)),
        "scale_b": aligned(scale_b, (*batch, None, "n")),
        "result": result,
    }


def settled(a, b, c, alpha, beta):
    beta = validate.number("beta", validate.beta_of(beta, c))
    return {"a": a, "b": b, "c": c, "alpha": validate.number("alpha", alpha), "beta": beta}


RULES = Rules(
    "Tensor a, Tensor b, Tensor? c=None, *, Scalar alpha=1.0, Scalar? beta=None",
    gradients,
    batched,
    flops=lambda result, a, **_: 2 * result.numel() * a.shape[-1],
    labels=labels,
    addends={"c": lambda tangent, forms, beta, **_: scaled(tangent, beta)},
    settled=settled,
    lowered=False,
)
