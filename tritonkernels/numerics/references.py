"""The exact result of each operation, in float64 by torch, and the sums of absolute values that its error is relative to."""

import torch

from ..problem import GATED, PACKED
from ..validate import beta_of
from .modes import ACTIVATIONS, activated


def reference(op, *args, **kwargs):
    """The result of the user's call `op(*args, **kwargs)` in float64."""
    return _evaluate(op, args, kwargs, lambda t: t)


def magnitude(op, *args, **kwargs):
    """S of the bound: the same call over absolute values and without its activation, in float64; of a gated linear unit the
    product of both columns' S, each with what underflow may add."""
    size = _sizes(op, args, kwargs)
    if kwargs.get("activation") not in GATED:
        return size
    lost = max(1.0, abs(kwargs.get("alpha", 1.0))) * (2.0**-13 if kwargs.get("accumulate") == "fp16" else 2.0**-125)
    return (size[..., 0::2] + lost) * (size[..., 1::2] + lost)


def _sizes(op, args, kwargs):
    """The call over absolute values and without its activation: one for each column of a product."""
    return _evaluate(op, args, {k: v for k, v in kwargs.items() if k != "activation"}, torch.abs)


def magnitude_of_products(op, args, kwargs, *replaced):
    """sum |a_i| |b_i| over each sum's products: without addends; pairs (position, tensor) replace factors."""
    args, added = list(args), _tensors_among(args)[2:]
    for i, value in (*((i, None) for i in added), *replaced):
        args[i] = value
    return _sizes(op, args, {k: v for k, v in kwargs.items() if k not in ("bias", "beta", "c", "residual", "y")})


def magnitude_of_inputs(op, args, kwargs, units=None):
    """sum |a_i| e(b_i) + e(a_i) |b_i| over each element's products: the effect of an input's error, in `units` e (default:
    1)."""
    left, right, *_ = _tensors_among(args)
    e_left, e_right = units or (torch.ones_like(args[i], dtype=torch.float64) for i in (left, right))
    effect = magnitude_of_products(op, args, kwargs, (right, e_right)) + magnitude_of_products(op, args, kwargs, (left, e_left))
    if kwargs.get("activation") not in GATED:
        return effect
    size = _sizes(op, args, kwargs)
    return effect[..., 0::2] * size[..., 1::2] + size[..., 0::2] * effect[..., 1::2]


def _tensors_among(args):
    """The positions of tensors among the arguments: the two factors, then the addends."""
    return [i for i, value in enumerate(args) if isinstance(value, torch.Tensor)]


def _evaluate(op, args, kwargs, change):
    """The call in float64, with `change` applied to its tensors and to alpha and beta (rounded to fp32, as in kernels).

    For float64 operands, alpha and beta are float64 too.
    """
    scalars = torch.float64 if any(getattr(value, "dtype", None) == torch.float64 for value in args) else torch.float32
    if kwargs.get("precision") in PACKED:
        a, b = args
        args = _unpacked(a, kwargs["precision"], -1), _unpacked(b, kwargs["precision"], -min(2, b.ndim))

    def convert(name, value):
        if isinstance(value, torch.Tensor):
            return change(value.detach().double())
        scalar = name in ("alpha", "beta") and value is not None
        return change(torch.tensor(value, dtype=scalars).double()).item() if scalar else value

    ignored = ["out_dtype", "accumulate", "out", "design", "config", "b_planes", "b_ranges"]
    ignored += [] if op == "matmul" else ["precision"]
    kwargs = {k: convert(k, v) for k, v in kwargs.items() if k not in ignored}
    return _EXACT[op](*(convert("", value) for value in args), **kwargs)


def _unpacked(t, precision, dim):
    """The elements, as float64, packed into the bytes of t along `dim` (negative); PACKED has how many per byte."""
    bits = 8 // PACKED[precision]
    shifts = torch.arange(0, 8, bits, device=t.device).reshape(-1, *[1] * (-dim - 1))
    values = (t.long().unsqueeze(dim) >> shifts) % 2**bits
    if precision == "int4":
        values = (values ^ 8) - 8  # two's complement
    return values.flatten(dim - 1, dim).double()


def _gemm(a, b, c=None, *, alpha=1.0, beta=None):
    beta = beta_of(beta, c)
    product = alpha * torch.matmul(a, b) if alpha else a.new_zeros(a.shape[0], b.shape[1])
    return product + beta * c if beta else product


def _gemv(a, x, y=None, *, alpha=1.0, beta=None, scale=None):
    beta = beta_of(beta, y)
    product = torch.matmul(a if scale is None else a * scale[:, None], x.unsqueeze(-1)).squeeze(-1)
    product = alpha * product if alpha else torch.zeros_like(product)
    return product + beta * y if beta else product


def _conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, *, activation=None, residual=None):
    """Padded explicitly, so that infinity times padding is NaN on every device; cuDNN may skip padding."""
    pads = []  # from the last dimension to the first, as torch.nn.functional.pad expects
    for dim in (-1, -2):
        if padding == "same":
            total = (dilation if isinstance(dilation, int) else dilation[dim % len(dilation)]) * (weight.shape[dim] - 1)
            pads += [total // 2, total - total // 2]
        else:
            before = 0 if padding == "valid" else padding if isinstance(padding, int) else padding[dim % len(padding)]
            pads += [before, before]
    more = 0 in (input.shape[-3], weight.shape[0])  # torch refuses 0 channels: add channels of zeros to both
    input = torch.nn.functional.pad(input, (*pads, 0, more * groups))
    filters = torch.nn.functional.pad(weight, (0, 0, 0, 0, 0, more, 0, more * groups))
    out = torch.nn.functional.conv2d(input, filters, None, stride, 0, dilation, groups).narrow(-3, 0, weight.shape[0])
    out = out if bias is None else out + bias[:, None, None]
    out = out if residual is None else out + residual
    return ACTIVATIONS[activation][0](out) if activation else out


def _matmul(a, b, *, precision=None, alpha=1.0, beta=None, c=None, bias=None, activation=None, scale_a=None, scale_b=None):
    beta = beta_of(beta, c)
    product = torch.matmul(a, b)
    if precision == "b1_xor":  # x xor y = x + y - 2 x y
        product = torch.matmul(a, torch.ones_like(b)) + torch.matmul(torch.ones_like(a), b) - 2 * product
    out = _scaled(product, a, b, scale_a, scale_b) * alpha if alpha else torch.zeros_like(product)
    out = out + beta * c if beta else out
    out = out if bias is None else out + bias
    return activated(out, activation)


def _scaled(product, a, b, scale_a, scale_b):
    """The product times scales (..., M, 1) and (..., 1, N); a vector counts as a matrix."""
    if scale_a is None and scale_b is None:
        return product
    vectors = [dim for dim, t in ((-2, a), (-1, b)) if t.ndim == 1]
    for dim in reversed(vectors):
        product = product.unsqueeze(dim)
    for scale in (scale_a, scale_b):
        product = product if scale is None else product * scale
    return product.squeeze(vectors)


def _gradient(grad_output, variable, forward):
    """The gradient of forward(variable), which is linear in `variable`, so its values do not matter."""
    with torch.enable_grad():
        return torch.autograd.grad(forward(variable.requires_grad_()), variable, grad_output)[0]


def _conv2d_input(input_size, weight, grad_output, *args, bias=None, **kwargs):
    out = _gradient(grad_output, weight.new_zeros(input_size), lambda input: _conv2d(input, weight, None, *args, **kwargs))
    return out if bias is None else out + bias[:, None, None]


def _conv2d_weight(input, weight_size, grad_output, *args, **kwargs):
    return _gradient(grad_output, input.new_zeros(weight_size), lambda weight: _conv2d(input, weight, None, *args, **kwargs))


def _conv2d_bias(grad_output):
    return grad_output.movedim(-3, 0).flatten(1).sum(1)


_EXACT = {
    "gemm": _gemm,
    "gemv": _gemv,
    "conv2d": _conv2d,
    "conv2d_input": _conv2d_input,
    "conv2d_weight": _conv2d_weight,
    "conv2d_bias": _conv2d_bias,
    "matmul": _matmul,
}
