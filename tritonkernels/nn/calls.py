"""What the modules of a model are called with, learnt from one run of a copy that has the model's parameters."""

import copy
from typing import NamedTuple

import torch

from ..plans import ALIGNMENT, is_plain


class Form(NamedTuple):
    """All of a tensor but its values."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    wanted: bool  # it requires a gradient
    offset: int  # in elements, of its address from an aligned one

    @classmethod
    def of(cls, t):
        return cls(tuple(t.shape), t.stride(), t.dtype, t.requires_grad, t.data_ptr() % ALIGNMENT // t.element_size())

    @property
    def bytes(self):
        return torch.Size(self.shape).numel() * self.dtype.itemsize

    def filled(self, device, fill):
        """A tensor of this form whose memory, of one dimension, fill() has written; strides may be 0."""
        length = 1 + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides)) if 0 not in self.shape else 0
        values = torch.empty(self.offset + length, dtype=self.dtype, device=device)
        fill(values[self.offset :])
        return values.as_strided(self.shape, self.strides, self.offset).requires_grad_(self.wanted)

    def random(self, device):
        return self.filled(device, torch.Tensor.normal_)


def has_form(t):
    return is_plain(t) and t.layout is torch.strided


def private(t):
    """A tensor of the same form and values, with memory of its own."""
    if not has_form(t):
        return t.detach().clone()
    own = t.detach()
    return Form.of(t).filled(t.device, lambda values: values.copy_(own.as_strided(values.shape, (1,), own.storage_offset())))


class Call(NamedTuple):
    """What the time of a module's call depends on: calls that are equal are measured once."""

    kind: type
    options: str  # the module's, as its repr has them
    parameters: tuple[Form | None, ...]
    input: Form
    backward: bool  # gradients are computed, too
    lowered: torch.dtype | None  # by autocast

    def __str__(self):
        return f"{self.kind.__name__} {'x'.join(map(str, self.input.shape))}"

    def autocast(self, device):
        """A context as the call's. Each call casts the weights, as the one of a step does."""
        return torch.autocast(device.type, self.lowered, self.lowered is not None, cache_enabled=False)


def call_of(kind, module, input):
    """The Call of a module with an input; a sentence if such a call cannot be repeated."""
    if not has_form(input):
        return f"called with a {type(input).__name__}"
    tensors = [input, *module.parameters(recurse=False)]
    backward = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
    device = input.device.type
    lowered = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
    forms = tuple(p if p is None else Form.of(p) for p in module._parameters.values())
    return Call(kind, module.extra_repr(), forms, Form.of(input), backward, lowered)


def aliased(model):
    """A copy of the model on the same parameters' memory. Buffers, gradients and all else are its own: the model's stay."""
    return copy.deepcopy(model, {id(p): torch.nn.Parameter(p.detach(), p.requires_grad) for p in model.parameters()})


def calls_of(model, kinds, args, kwargs):
    """{module: its Calls, or why one cannot be measured} in model(*args, **kwargs), of the modules in {module: kind}."""
    copied = aliased(model)
    calls = {module: [] for module in kinds}

    def noting(own, kind):
        def note(module, args, kwargs):
            input, *others = (*args, *kwargs.values())
            own.append("called with more than an input" if others else call_of(kind, module, input))

        return note

    for module, twin in zip(model.modules(), copied.modules()):
        if module in kinds:
            twin.register_forward_pre_hook(noting(calls[module], kinds[module]), with_kwargs=True)
    copied(*args, **kwargs)
    return calls
