"""What holds for every call with one mistake in it: a typed error names the argument, and nothing is launched or written."""

import contextlib
import importlib
from unittest import mock

import pytest
import torch

from cuda_reference.launch import CudaLaunch
from tests.covering import alone
from tests.harness import LIBRARIES, OPS, bits, random
from tests.properties.mistakes import wrong_calls
from tests.properties.wrong import MISTAKES
from tritonkernels import backend
from tritonkernels.errors import TritonKernelsError
from tritonkernels.launch import TritonLaunch

# Of an operation and a mistake; --depth and `make fuzz` take more. Both packages check arguments by the same `prepare`.
EXAMPLES = {"cuda_reference": 4, "tritonkernels": 12}

pytestmark = [
    pytest.mark.skipif(backend.device_type() != "cpu", reason="the calls are on CPU tensors"),
    pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package),
    pytest.mark.timeout(900),
]


@contextlib.contextmanager
def launches_watched():
    """A stand-in for every launch, since a call that should have been refused must not run."""
    watch = mock.Mock()
    with mock.patch.object(TritonLaunch, "run", watch), mock.patch.object(CudaLaunch, "run", watch):
        yield watch


def memory(t):
    """All the bytes that a tensor may write to, gaps included."""
    return bits(t.detach().as_strided((t.untyped_storage().nbytes() // t.element_size(),), (1,), 0))


@pytest.mark.parametrize("op, mistake", [pytest.param(op, m, id=f"{op}-{m.__name__}") for op in OPS for m in MISTAKES[op]])
@alone("library")
def test_a_mistake_is_a_typed_error_before_any_launch(library, op, mistake, for_all):
    function = getattr(importlib.import_module(library.package), op)

    def check(wrong):
        tensors = [t for t in wrong.arguments.values() if isinstance(t, torch.Tensor)]
        held = [t for t in tensors if t.layout == torch.strided and not t.is_meta]
        before = [memory(t) for t in held]
        with launches_watched() as launched:
            try:
                function(**wrong.arguments)
            except TritonKernelsError as error:
                assert isinstance(error, wrong.error), f"{type(error).__name__}: {error}"
                assert str(error).startswith(f"{wrong.names}:"), f"the message does not begin with {wrong.names}: {error}"
                assert error.remedy and str(error).endswith(error.remedy), f"the message does not end with what to do: {error}"
            else:
                raise AssertionError("the call was not refused")
        assert not launched.called, "a kernel was launched"
        assert all(torch.equal(b, memory(t)) for b, t in zip(before, held)), "a tensor was written to"
        return True

    for_all(wrong_calls(op, mistake), EXAMPLES[library.package], check)


def test_the_watch_sees_a_launch(library):
    with launches_watched() as launched:
        importlib.import_module(library.package).gemm(random(2, 3), random(3, 4))
    assert launched.called
