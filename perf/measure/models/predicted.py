"""python -m perf models --predict: what each Linear and Conv2d of a model would take, by the model of time; no GPU is needed.

The design that a call would get is asked for every layer's product, forward and both gradients, and its predicted time stands
next to the roofline's. Layers far above it are named: a design refuses there, a config was never timed, or a kernel is missing.
So are those that took longest beyond what is predicted in a record of training steps: the choice is wrong about them.
"""

import collections
import functools
from dataclasses import dataclass

import torch

from tritonkernels.analysis import roofline
from tritonkernels.conv2d import prepare as conv2d
from tritonkernels.conv2d_input import prepare as conv2d_input
from tritonkernels.conv2d_weight import prepare as conv2d_weight
from tritonkernels.matmul import prepare as matmul

from ...show import table
from .. import contenders
from ..trial import library
from . import zoo

NAMED = 5  # layers, of each model: those that lose most
TYPES = {"bf16": (torch.bfloat16, None), "fp32": (torch.float32, "ieee"), "tf32": (torch.float32, "tf32")}
PASSES = ("forward", "gradient of input", "gradient of weight")
OF_CONV2D = ("conv forward", "conv input gradient", "conv weight gradient")  # a record's names of these; Linear has one, matmul


@dataclass(frozen=True)
class Layer:
    """A Conv2d, with its options, or a Linear of so many rows. `is_first`: its input has no gradient."""

    input: tuple[int, ...]
    weight: tuple[int, ...]
    options: tuple[tuple[str, object], ...] = ()
    is_first: bool = False

    def __str__(self):
        of = "x".join(map(str, self.input)) + " by " + "x".join(map(str, self.weight))
        return " ".join([of, *(f"{name} {value}" for name, value in self.options if value not in (1, (1, 1), (0, 0)))])


def layers(model):
    """{name: Layer} in the order of a forward pass, of tensors without memory."""
    found = {}
    with torch.device("meta"):
        module = model.build(False)
    inputs = zoo.on(model.inputs(False), "meta")
    given = inputs.values() if isinstance(inputs, dict) else inputs

    def seen(name, layer, arguments, _):
        x, is_first = arguments[0], any(arguments[0] is t for t in given)
        if isinstance(layer, torch.nn.Conv2d):
            options = tuple((name, getattr(layer, name)) for name in ("stride", "padding", "dilation", "groups"))
            found[name] = Layer(tuple(x.shape), tuple(layer.weight.shape), options, is_first)
        else:
            found[name] = Layer((x.numel() // x.shape[-1], x.shape[-1]), tuple(layer.weight.shape), (), is_first)

    for name, layer in module.named_modules():
        if isinstance(layer, (torch.nn.Linear, torch.nn.Conv2d)):
            layer.register_forward_hook(functools.partial(seen, name))
    with torch.no_grad():
        zoo.call(module, inputs)
    return found


def calls(layer, dtype, precision, channels_last):
    """{of PASSES: the Call}"""
    options = {} if precision is None else {"precision": precision}
    if not layer.options:
        x, weight = (torch.empty(size, dtype=dtype, device="meta") for size in (layer.input, layer.weight))
        gradient = x.new_empty(len(x), len(weight))
        found = matmul(x, weight.t(), **options), matmul(gradient, weight, **options), matmul(gradient.t(), x, **options)
    else:
        format, options = torch.channels_last if channels_last else torch.contiguous_format, options | dict(layer.options)
        x, weight = (torch.empty(s, dtype=dtype, device="meta", memory_format=format) for s in (layer.input, layer.weight))
        forward = conv2d(x, weight, **options)
        gradient = forward.result
        found = forward, conv2d_input(x.shape, weight, gradient, **options), conv2d_weight(x, weight.shape, gradient, **options)
    return {name: call for name, call in zip(PASSES, found) if not (layer.is_first and name == PASSES[1])}


def rows(model, dtype, packages, target):
    """[(layer, how many there are, of PASSES, seconds of the roofline, {package: its Choices})]"""
    found = []
    for layer, count in collections.Counter(layers(model).values()).items():
        for name, call in calls(layer, *TYPES[dtype], model.channels_last).items():
            limits = roofline.limits(call.problem, target)
            limit = max(limits["memory_s"], limits["compute_s"] or 0.0)
            ranked = {package: library(package).ranking(call.problem, target) for package in packages}
            found.append((layer, count, name, limit, ranked))
    return found


def beyond(model, dtype, package, target, step):
    """[(layer's name, the record's name of the product, seconds measured, predicted)], the largest difference first, of a
    record of a training step, which says where the time of each layer went."""
    found, own = [], step["kernels"][package]["layers"]
    for layer, shape in layers(model).items():
        predicted = collections.Counter()
        for name, call in calls(shape, *TYPES[dtype], model.channels_last).items():
            product = OF_CONV2D[PASSES.index(name)] if shape.options else "matmul"
            predicted[product] += library(contenders.PACKAGES[package]).ranking(call.problem, target)[0].cost
        took = own.get(layer, {})
        found += [(layer, product, 1e-6 * took[product], cost) for product, cost in predicted.items() if product in took]
    return sorted(found, key=lambda row: row[3] - row[2])


def report(subjects, implementations, target, records=()):
    """Print the tables of (model's name, dtype) each, the last of what `records` have of training steps."""
    packages, sums, worst, wrong = [contenders.PACKAGES[name] for name in implementations], [], [], []
    for key, dtype in subjects:
        model = zoo.MODELS[key]
        if why := zoo.missing(model, dtype, on_gpu=True):
            print(f"{model.title}, {dtype}: not predicted: {why}")
            continue
        found = rows(model, dtype, packages, target)
        for name in PASSES:
            own = [row for row in found if row[2] == name]
            costs = [sum(count * ranked[package][0].cost for _, count, _, _, ranked in own) for package in packages]
            limit = sum(count * limit for _, count, _, limit, _ in own)
            sums.append([model.title, dtype, model.size, name, *(f"{1e6 * seconds:.0f}" for seconds in (limit, *costs))])
        for package in packages:
            lost = sorted(found, key=lambda row: row[1] * (row[3] - row[4][package][0].cost))
            worst += [[model.title, dtype, package, *_described(*row[:4], row[4][package])] for row in lost[:NAMED]]
        for step in records:
            for name in {*implementations} & step["kernels"].keys() if _is_step_of(step, key, dtype) else ():
                most = beyond(model, dtype, name, target, step)[:NAMED]
                wrong += [
                    [model.title, dtype, name, *row[:2], *(f"{1e6 * seconds:.0f}" for seconds in row[2:])] for row in most
                ]
    print(f"\nPredicted for {target.name}, us of all layers:")
    table.print_table(["model", "type", "inputs", "pass", "limit", *packages], sums)
    print("\nThe layers that lose most, us of each, and the fastest that no call gets, as it was never timed:")
    table.print_table(["model", "type", "package", "pass", "layer", "limit", "a call gets", "never timed"], worst)
    if wrong:
        print("\nThe layers that took longest beyond what is predicted today, in recorded training steps, us:")
        table.print_table(["model", "type", "modules", "layer", "product", "measured", "predicted"], wrong)


def _is_step_of(row, key, dtype):
    return (row["model"], row["dtype"]) == (key, dtype) and row["what"] != "forward" and row["kernels"]


def _described(layer, count, name, limit, ranked):
    new = min((choice for choice in ranked if not choice.timed), key=lambda choice: choice.cost, default=None)
    of_both = (f"{choice.design.name} {1e6 * choice.cost:.1f}" if choice else "-" for choice in (ranked[0], new))
    return [name, f"{count} of {layer}", f"{1e6 * limit:.1f}", *of_both]
