"""Where the GPU's time goes in a step of a model: kernel time by operation and by layer, from torch.profiler.

A kernel belongs to the operators and to the layer in which the host launched it. Layers are marked by hooks: around their
forward, and around the nodes that it recorded for backward.
"""

import contextlib
import re
from collections import Counter, defaultdict
from typing import NamedTuple

import torch
from torch.autograd.profiler import record_function
from torch.profiler import ProfilerActivity, profile

STEPS = 2
LAYER = "layer:"  # before the name of one, as an annotation
ANNOTATIONS = (LAYER, "autograd::", "aten::", "ProfilerStep")  # also shown on the GPU's line of time, but no kernels

MATMUL, CONV, INPUT, WEIGHT, BIAS = "matmul", "conv forward", "conv input gradient", "conv weight gradient", "bias"
ATTENTION, POINTWISE, OTHER = "attention", "normalisation, elementwise", "other"
PRODUCTS = (MATMUL, CONV, INPUT, WEIGHT)
OPERATIONS = (*PRODUCTS, BIAS, ATTENTION, POINTWISE, OTHER)

BY_OPERATOR = {
    **dict.fromkeys(("mm", "addmm", "bmm", "baddbmm", "addmv", "mv", "_addmm_activation", "matmul", "gemm", "gemv"), MATMUL),
    **dict.fromkeys(("conv1d", "conv2d", "convolution", "_convolution", "cudnn_convolution", "_conv_depthwise2d"), CONV),
    **{"conv2d_input": INPUT, "conv2d_weight": WEIGHT, "conv2d_bias": BIAS},
}
OF_BIAS = ("sum", "add", "add_")  # within a layer, outside its product
GRADIENTS = "aten::convolution_backward"  # one operator; the kernel's name says which of its results
OF_WEIGHT = re.compile("wgrad|grad_weight|bprop_filter", re.IGNORECASE)
HELPER = re.compile(
    "copy|flip|transpose|nhwcTo|nchwTo|convertTensor|pack|memset|memcpy|fill|reduce|reduction|epilogue::|elementwise|vectorized"
    "|add_splits|add_parts|_filters_kernel|_inputs_kernel|_outputs_kernel|scaleTensor|extremes",
    re.IGNORECASE,
)
IS_POINTWISE = re.compile(
    "elementwise|vectorized|reduce|norm|bn_|batch|softmax|pool|moments|gamma|gradinput|cat|triton_(poi|red|per)", re.IGNORECASE
)


class Kernel(NamedTuple):
    """One launch."""

    name: str
    us: float
    operators: tuple[str, ...]  # and annotations in which it was launched, the innermost first

    @property
    def short(self):
        """The name without types of arguments; of a template that is given another kernel's name, that one."""
        plain = self.name.removeprefix("void ")
        if match := re.match(r"cutlass\w*::Kernel\w*<([\w:]+)", plain):
            return match[1]
        return re.split(r"[<(]", plain)[0] or plain

    @property
    def layer(self):
        return next((name.removeprefix(LAYER) for name in self.operators if name.startswith(LAYER)), "")

    @property
    def operation(self):
        """One of OPERATIONS."""
        if any(name.startswith("aten::") and re.search("attention|dot_product", name) for name in self.operators):
            return ATTENTION
        for operator in self.operators:
            base = operator.rpartition("::")[2]
            if base in OF_BIAS and self._is_of_product:
                return BIAS
            if operator == GRADIENTS:
                return WEIGHT if OF_WEIGHT.search(self.name) else INPUT
            if base in BY_OPERATOR and "::" in operator:
                return BY_OPERATOR[base]
        return POINTWISE if IS_POINTWISE.search(self.name) else OTHER

    @property
    def _is_of_product(self):
        """Whether it was launched in a layer, or in torch's own convolution."""
        return bool(self.layer) or any("convolution" in name for name in self.operators)

    @property
    def is_extra(self):
        """Whether it is one that only serves a product: it copies, flips, packs or adds up partial results."""
        return (
            (bool(self.layer) or self.operation in OPERATIONS[:4]) and self.operation != BIAS and bool(HELPER.search(self.name))
        )


def of_step(step, module, kinds):
    """{"operations": {operation: us}, "layers": {layer: {operation: us}}, "extra": [[kernel, operation, launches, us]],
    "alone": True} of a call of step(), which runs the module; `kinds` are the classes whose modules are layers. Records before
    "alone" have also the time that kernels waited for those before them."""
    step()
    torch.cuda.synchronize()
    with marked(module, kinds), profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        for _ in range(STEPS):
            step()
        torch.cuda.synchronize()
    return summary(kernels(profiler.events()), STEPS)


def summary(launched, steps):
    operations, layers, extra = Counter(), defaultdict(Counter), defaultdict(lambda: [0, 0.0])
    for kernel in launched:
        operations[kernel.operation] += kernel.us
        if kernel.layer:
            layers[kernel.layer][kernel.operation] += kernel.us
        if kernel.is_extra:
            extra[kernel.short, kernel.operation][0] += 1
            extra[kernel.short, kernel.operation][1] += kernel.us
    named = [[*key, count / steps, round(us / steps, 2)] for key, (count, us) in extra.items()]
    return {
        "operations": _mean({name: operations[name] for name in OPERATIONS if operations[name]}, steps),
        "layers": {layer: _mean(own, steps) for layer, own in layers.items()},
        "extra": sorted(named, key=lambda row: -row[-1]),
        "alone": True,
    }


def _mean(us, steps):
    return {name: round(value / steps, 2) for name, value in us.items()}


def kernels(events):
    """A Kernel of each launch among the events of a profile."""
    alone = _alone([event for event in events if event.device_type == torch.autograd.DeviceType.CUDA])
    for event in events:
        if event.device_type == torch.autograd.DeviceType.CPU:
            for launched in event.kernels:
                if not launched.name.startswith(ANNOTATIONS):
                    same = alone[launched.name, launched.duration]
                    yield Kernel(launched.name, same.pop() if same else launched.duration, _around(event))
    for (name, _), rest in alone.items():  # what the profiler has linked to no operator
        yield from (Kernel(name, us, ()) for us in rest)


def _alone(events):
    """{(name, us): [us of each such kernel in which none that began before it ran]} of events on a GPU.

    A kernel may be launched while the one before it runs, and wait for it: that time is the other's.
    """
    found, end = defaultdict(list), float("-inf")
    for event in sorted(events, key=lambda event: event.time_range.start):
        if not event.name.startswith(ANNOTATIONS):
            began, ended = event.time_range.start, event.time_range.end
            found[event.name, event.time_range.elapsed_us()].append(max(0.0, ended - max(began, end)))
            end = max(end, ended)
    return found


def _around(event):
    names = []
    while event is not None:
        names.append(event.name)
        event = event.cpu_parent
    return tuple(names)


@contextlib.contextmanager
def marked(module, kinds):
    """A context in which the profiler sees the name of each layer around its forward and around its part of backward."""
    handles = []
    for name, layer in module.named_modules():
        if isinstance(layer, kinds):
            before, after = _markers(LAYER + name)
            handles += [layer.register_forward_pre_hook(before), layer.register_forward_hook(after, with_kwargs=True)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _markers(label):
    """Hooks before and after a module's forward."""
    entered = []

    def enter(*_):
        entered.append(record_function(label))
        entered[-1].__enter__()

    def leave(*_):
        entered.pop().__exit__(None, None, None)

    def after(_, inputs, named, result):
        leave()
        (input,) = (*inputs, *named.values())
        for node in _nodes(result.grad_fn, input.grad_fn):
            node.register_prehook(enter)
            node.register_hook(leave)

    return enter, after


def _nodes(last, before):
    """The nodes from the last one back to those before the module, which are left out, as are those of its parameters."""
    seen, todo = {before, None}, [last]
    while todo:
        node = todo.pop()
        if node not in seen and not node.name().endswith("AccumulateGrad"):
            seen.add(node)
            yield node
            todo += [following for following, _ in node.next_functions]
