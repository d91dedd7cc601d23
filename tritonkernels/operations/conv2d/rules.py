"""conv2d and its gradients as operators of torch: the gradient of each is a call of the others.

The three products are the derivatives of one sum, T(input, weight, grad_output) = sum of conv2d(input, weight) * grad_output:
conv2d is that with respect to grad_output, conv2d_input and conv2d_weight are those with respect to the other two. T is linear
in each of the three. So the gradient of a product with respect to one of its operands is T's derivative with respect to that
operand, with the incoming gradient in the place of the product's own result.
"""

import functools
import math

from ... import switches, validate
from ...torch_ops.rules import GROUPS, Rules, front
from ..matmul.rules import outer

GEOMETRY = "int[2] stride=1, int[2] padding=0, int[2] dilation=1, int groups=1"
OPTIONS = "bool same=False, str? precision=None, MemoryFormat? memory_format=None"


def gradients(ops, grad, forms, input=None, weight=None, grad_output=None, memory_format=None, **options):
    """T's derivatives; the product's own result, which is no operand, is `grad`."""
    x, w, g = (
        grad if name not in forms else tensor
        for name, tensor in (("input", input), ("weight", weight), ("grad_output", grad_output))
    )
    others = "bias", "residual", "activation"  # the last is None here
    options = {name: value for name, value in options.items() if not name.endswith("_size") and name not in others}
    like = {name: form and form.memory_format for name, form in forms.items()}
    sizes = {name: form and tuple(form.shape) for name, form in forms.items()}  # native code repeats calls of plain tuples
    return {
        "input": lambda: ops.conv2d_input(w, g, sizes["input"], **options, memory_format=like["input"]),
        "weight": lambda: ops.conv2d_weight(x, g, sizes["weight"], **options, memory_format=like["weight"]),
        "grad_output": lambda: ops.conv2d(x, w, None, **options, memory_format=like["grad_output"]),
        "bias": lambda: ops.conv2d_bias(grad),
        "residual": lambda: grad,
    }


def labels(result, input=None, grad_output=None, groups=1, **_):
    """`result` is the one of T's three, or the bias, that the product computes. Filters and pixels are whole on every rank."""
    channels, within, filters = (GROUPS, None, GROUPS) if groups > 1 else ("c", "c", "k")
    alone = (grad_output if input is None else input).ndim == 3
    found = {
        "input": ("n", channels, None, None)[alone:],
        "weight": (filters, within, None, None),
        "grad_output": ("n", filters, None, None)[alone:],
        "bias": (channels if result == "input" else filters,),
    }
    return found | {"residual": found["grad_output"], "result": found[result]}


def settled(padding=0, **arguments):
    """Pairs for numbers, and a switch for "same"."""
    same = isinstance(padding, str) and padding == "same"
    if same or padding == "valid":
        padding = 0
    stride, dilation = (validate.pair(name, arguments[name], 1) for name in ("stride", "dilation"))
    padding = validate.pair("padding", padding, 0)
    return arguments | {"stride": stride, "padding": padding, "dilation": dilation, "same": same}


def asked(same, padding, **arguments):
    return arguments | {"padding": "same" if same else padding}


# Batches: images of one convolution where filters are shared, else groups of one.
def as_groups(t, dim, size, at):
    """A batch of tensors side by side along their dimension `at`, counted without the batch."""
    t = front(t, dim) if dim is not None else t.expand(size, *t.shape)
    return t.movedim(0, at).flatten(at, at + 1)


def images(t, dim):
    """Images (N, C, H, W), one of them where they come without N; the batch first."""
    t = front(t, dim)
    return t if t.ndim == (4 if dim is None else 5) else t.unsqueeze(0 if dim is None else 1)


def batched_conv2d(ops, size, dims, input, weight, bias, groups, residual, **options):
    alone = input.ndim - (dims["input"] is not None) == 3
    x = images(input, dims["input"])
    at = None if dims["input"] is None else 0
    added, added_at = residual, None
    if residual is not None:
        added, added_at = images(residual, dims["residual"]), None if dims["residual"] is None else 0
    if dims["weight"] is None and dims["bias"] is None:
        x = as_groups(x, at, size, 0)
        added = added if added is None else as_groups(added, added_at, size, 0)
        result = ops.conv2d(x, weight, bias, groups=groups, residual=added, **options).unflatten(0, (size, -1))
    else:
        bias = bias if bias is None else as_groups(bias, dims["bias"], size, 0)
        added = added if added is None else as_groups(added, added_at, size, 1)
        filters, x = as_groups(weight, dims["weight"], size, 0), as_groups(x, at, size, 1)
        result = ops.conv2d(x, filters, bias, groups=size * groups, residual=added, **options)
        result = result.unflatten(1, (size, -1)).movedim(1, 0)
    return result[:, 0] if alone else result


def batched_input(ops, size, dims, input_size, weight, grad_output, bias, groups, **options):
    g = images(grad_output, dims["grad_output"])
    n, (c, h, w) = g.shape[-4], input_size[-3:]
    if dims["weight"] is None and dims["bias"] is None:
        result = ops.conv2d_input(weight, g.flatten(0, 1), (size * n, c, h, w), bias, groups=groups, **options)
        result = result.unflatten(0, (size, -1))
    else:
        at = None if dims["grad_output"] is None else 0
        bias = bias if bias is None else as_groups(bias, dims["bias"], size, 0)
        operands = as_groups(weight, dims["weight"], size, 0), as_groups(g, at, size, 1)
        result = ops.conv2d_input(*operands, (n, size * c, h, w), bias, groups=size * groups, **options)
        result = result.unflatten(1, (size, -1)).movedim(1, 0)
    return result[:, 0] if len(input_size) == 3 else result


def batched_weight(ops, size, dims, input, weight_size, grad_output, groups, **options):
    x, g = (
        as_groups(images(t, dims[name]), None if dims[name] is None else 0, size, 1)
        for name, t in (("input", input), ("grad_output", grad_output))
    )
    k, *filters = weight_size
    return ops.conv2d_weight(x, g, (size * k, *filters), groups=size * groups, **options).unflatten(0, (size, -1))


def batched_bias(ops, size, dims, grad_output):
    g = images(grad_output, dims["grad_output"])
    return ops.conv2d_bias(as_groups(g, 0, size, 1)).unflatten(0, (size, -1))


def _rules(arguments, batched, flops, result, addends, more=("", ""), outer=None):
    of_result = functools.partial(labels, result)
    switch = switches.of_convolutions
    positional, keywords = more
    arguments = f"{arguments}, {GEOMETRY}{positional}, *, {OPTIONS}{keywords}"
    return Rules(arguments, gradients, batched, flops, of_result, addends, settled, asked, outer, switch=switch)


OF_BIAS = {"bias": lambda tangent, forms, **_: tangent[:, None, None]}
CONV2D_RULES = _rules(
    "Tensor input, Tensor weight, Tensor? bias=None",
    batched_conv2d,
    lambda result, input, weight, **_: 2 * result.numel() * math.prod(weight.shape[1:]),
    "grad_output",
    OF_BIAS | {"residual": lambda tangent, forms, **_: tangent},
    (", Tensor? residual=None", ", str? activation=None"),
    outer,
)
INPUT_RULES = _rules(
    "Tensor weight, Tensor grad_output, SymInt[] input_size, Tensor? bias=None",
    batched_input,
    lambda result, grad_output, weight, **_: 2 * grad_output.numel() * math.prod(weight.shape[1:]),
    "input",
    OF_BIAS,
)
WEIGHT_RULES = _rules(
    "Tensor input, Tensor grad_output, SymInt[] weight_size",
    batched_weight,
    lambda result, grad_output, weight_size, **_: 2 * grad_output.numel() * math.prod(weight_size[1:]),
    "weight",
    {},
)
BIAS_RULES = Rules(
    "Tensor grad_output",
    lambda ops, grad, forms, grad_output: {"grad_output": lambda: grad[:, None, None].expand(forms["grad_output"].shape)},
    batched_bias,
    flops=lambda result, **_: 0,  # torch counts products only
    labels=functools.partial(labels, "bias"),
    addends={},
)
