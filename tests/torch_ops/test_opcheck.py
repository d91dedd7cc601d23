"""torch.library.opcheck of every operator: schema, autograd, fake tensors, and what torch.compile makes of it."""

import functools

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

import cuda_reference
from tests.harness import available_on, short, thorough, transposed
from tests.torch_ops.op_db import FLOATS, every_type, run, samples
from tests.torch_ops.samples import LIBRARIES, both_packages, every_sample, on_devices, pair_of
from tritonkernels import OPS

PARTS = 6  # of a type's samples, so that several processes share them: a sample takes seconds


def transposed_or_channels_last(t):
    return t.contiguous(memory_format=torch.channels_last) if t.ndim == 4 else transposed(t) if t.ndim > 1 else t


class Calls(TorchDispatchMode):
    """Records the calls of our operators, with their arguments."""

    def __init__(self, package):
        super().__init__()
        self.namespace, self.seen = package.__name__, []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == self.namespace:
            self.seen.append((func, args, kwargs))
        return func(*args, **(kwargs or {}))


def check_operator(package, function, gradients=True):
    """opcheck of the operator that function() calls, with and without gradients, and of its overload with an out."""
    with Calls(package) as calls:
        result = function()
    ((operator, args, kwargs),) = calls.seen
    torch.library.opcheck(operator, args, kwargs)
    torch.library.opcheck(operator._overloadpacket.out, args, {**kwargs, "out": torch.empty_like(result)})
    if gradients:
        args, kwargs = tree_map_only(torch.Tensor, lambda t: t.detach().clone().requires_grad_(), (args, kwargs))
        torch.library.opcheck(operator, args, kwargs)


@both_packages
@every_type
@pytest.mark.parametrize("part", range(PARTS))
@on_devices
@thorough
def test_opcheck_of_torchs_samples(package, name, dtype, part, device):
    available_on(LIBRARIES[package], device)
    found = list(samples(name, device, dtype))[part::PARTS]
    if not found:
        pytest.skip("it has fewer samples")
    for _, args, kwargs in found:
        check_operator(package, functools.partial(run, package, name, args, kwargs), dtype in FLOATS)


@both_packages
@every_sample
@pytest.mark.parametrize("layout", (torch.Tensor.contiguous, transposed_or_channels_last))
@on_devices
@short(lambda package, name, layout: package is cuda_reference and name in OPS and layout is torch.Tensor.contiguous)
def test_opcheck(package, name, layout, device):
    pair = pair_of(package, name, device)
    tensors = map(layout, pair.make())
    check_operator(package, lambda: pair.ours(*tensors))
