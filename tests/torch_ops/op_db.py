"""torch's own samples (op_db) of its operators that ours stand for, as calls of ours."""

import functools
import sys
import types
import unittest

import pytest
import torch

from tritonkernels.operations.views import VIEWS

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
BYTES = (torch.int8, torch.uint8)


# torch's operators as ours: (operation, args, kwargs) for torch's arguments.
def product(a, b, c=None, **scalars):
    if a.dtype in (torch.float32, torch.float64) and a.ndim == 2:
        return "gemm", (a, b, c), scalars
    return "matmul", (a, b), {"c": _addend(c), **scalars}


def _addend(t):
    """The products of bytes are int32 here, and so is what is added to them."""
    return t.int() if t is not None and t.dtype in BYTES else t


CALLS = {
    "mm": product,
    "bmm": product,
    "addmm": lambda c, a, b, **scalars: product(a, b, c, **scalars),
    "mv": lambda a, x: ("gemv", (a, x), {}),
    "addmv": lambda y, a, x, **scalars: ("gemv", (a, x, y), scalars),
    "nn.functional.linear": lambda x, w, bias=None: ("matmul", (x, w.mT), {"bias": _addend(bias)}),
    "nn.functional.conv2d": lambda *args, **kwargs: ("conv2d", args, kwargs),
}
TAKEN = {name: (*FLOATS, *BYTES) for name in CALLS} | dict.fromkeys(("mv", "addmv", "nn.functional.conv2d"), FLOATS)
VARIANTS = ("", "decomposed")  # without those that have more of the same sizes, for torch.compile's templates
VIEWED = tuple(f"nn.functional.{op}" for op in VIEWS)  # tests/operations/test_views.py
every_name = pytest.mark.parametrize("name", CALLS)


def _each(of):
    cases = [pytest.param(name, dtype, id=f"{name}-{dtype}") for name in CALLS for dtype in TAKEN[name] if dtype in of]
    return pytest.mark.parametrize("name, dtype", cases)


every_type = _each((*FLOATS, *BYTES))
every_float = _each(FLOATS)


@functools.cache
def op_db():
    """{name: the OpInfos}. Their module is for torch's own tests: it wants a package of these and freezes torch.backends."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "expecttest", types.SimpleNamespace(TestCase=unittest.TestCase))
        patch.setattr(torch.backends, "disable_global_flags", lambda: None)
        from torch.testing._internal.common_methods_invocations import op_db
    return {
        name: [info for info in op_db if info.name == name and info.variant_test_name in VARIANTS] for name in (*CALLS, *VIEWED)
    }


def samples(name, device, dtype, requires_grad=False):
    """(torch's function, its args, its kwargs) of each sample."""
    for info in op_db()[name]:
        if dtype in info.supported_dtypes(device):
            for sample in info.sample_inputs(device, dtype, requires_grad):
                yield info.op, (sample.input, *sample.args), sample.kwargs


def run(package, name, args, kwargs):
    op, args, kwargs = CALLS[name](*args, **kwargs)
    return getattr(package, op)(*args, **kwargs)
