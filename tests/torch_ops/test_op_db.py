"""torch's own samples (op_db) of the operators that ours stand for: results, gradients, errors."""

import pytest
import torch

import cuda_reference
from tests.harness import available_on, prepare, short
from tests.torch_ops.op_db import BYTES, CALLS, TAKEN, VIEWED, every_float, every_name, every_type, op_db, run, samples
from tests.torch_ops.samples import LIBRARIES, both_packages, on_devices
from tritonkernels import numerics
from tritonkernels.errors import DtypeError, TritonKernelsError, UnsupportedError

GRADIENT_TOLERANCES = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 1e-5, torch.float64: 1e-12}
QUICK = (torch.float16, torch.float32, torch.int8)
some = short(lambda package, name, dtype: dtype in QUICK and (package is cuda_reference or name in ("mm", "addmv")))


def in_float64(value):
    return value.detach().double().requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else value


def leaves(args):
    return [arg for arg in args if isinstance(arg, torch.Tensor) and arg.requires_grad]


@both_packages
@every_type
@on_devices
@some
def test_results(package, name, dtype, device):
    """Within the bound of what torch computes; of bytes, whose products are int32 here, modulo 256."""
    available_on(LIBRARIES[package], device)
    for function, args, kwargs in samples(name, device, dtype):
        result = run(package, name, args, kwargs)
        if dtype in BYTES:
            assert result.dtype == torch.int32
            assert torch.equal(result.to(dtype), function(*args, **kwargs))
            continue
        op, our_args, our_kwargs = CALLS[name](*args, **kwargs)
        assert numerics.judge(prepare(op, *our_args, **our_kwargs).problem, result, *our_args, **our_kwargs).ok
        exact = function(*map(in_float64, args), **kwargs)
        torch.testing.assert_close(numerics.reference(op, *our_args, **our_kwargs), exact)
        assert (result.dtype, result.shape) == (dtype, exact.shape)


@both_packages
@every_float
@on_devices
@some
def test_gradients(package, name, dtype, device):
    available_on(LIBRARIES[package], device)
    for function, args, kwargs in samples(name, device, dtype, requires_grad=True):
        result = run(package, name, args, kwargs)
        grad = torch.randn_like(result)
        exact = [in_float64(arg) for arg in args]
        wanted = torch.autograd.grad(function(*exact, **kwargs), leaves(exact), grad.double())
        tolerance = GRADIENT_TOLERANCES[dtype]
        for got, exactly in zip(torch.autograd.grad(result, leaves(args), grad), wanted, strict=True):
            torch.testing.assert_close(got, exactly.to(dtype), rtol=tolerance, atol=tolerance)


@both_packages
@every_name
@on_devices
def test_other_types_are_typed_errors(package, name, device, everything):
    available_on(LIBRARIES[package], device)
    others = {dtype for info in op_db()[name] for dtype in info.supported_dtypes(device)} - set(TAKEN[name])
    assert torch.complex64 in others
    for dtype in others if everything else others & {torch.bool, torch.int32, torch.complex64}:
        for _, args, kwargs in samples(name, device, dtype):
            with pytest.raises(DtypeError):
                run(package, name, args, kwargs)


@both_packages
@on_devices
def test_error_inputs_are_typed_errors(package, device):
    """Among torch's operators here, conv2d has some (all its own: wrong types, ranks, groups, negative numbers)."""
    available_on(LIBRARIES[package], device)
    with_errors = [(name, info) for name in CALLS for info in op_db()[name] if info.error_inputs_func]
    errors = [(name, error.sample_input) for name, info in with_errors for error in info.error_inputs(device)]
    assert len(errors) >= 10
    for name, sample in errors:
        with pytest.raises(TritonKernelsError):
            run(package, name, (sample.input, *sample.args), sample.kwargs)


@pytest.mark.parametrize("name", VIEWED)
@pytest.mark.parametrize("dtype, tolerance", [(torch.float16, 1e-3), (torch.float32, 1e-5)], ids=str)
def test_calls_on_views(name, dtype, tolerance):
    """What is no call on views is refused, never computed wrong."""
    computed = []
    for function, args, kwargs in samples(name, "cpu", dtype):
        try:
            result = getattr(cuda_reference, name.split(".")[-1])(*args, **kwargs)
        except UnsupportedError:
            assert not name.endswith("conv1d")
            continue
        exact = function(*map(in_float64, args), **kwargs)
        torch.testing.assert_close(result, exact.to(dtype), rtol=tolerance, atol=tolerance)
        computed.append(exact)
    assert len(computed) >= (1 if name.endswith("conv3d") else 5)


@both_packages
def test_error_inputs_of_calls_on_views_are_typed_errors(package):
    infos = [(name.split(".")[-1], info) for name in VIEWED for info in op_db()[name] if info.error_inputs_func]
    errors = [(op, error.sample_input) for op, info in infos for error in info.error_inputs("cpu")]
    assert len(errors) >= 10
    for op, sample in errors:
        with pytest.raises(TritonKernelsError):
            getattr(package, op)(sample.input, *sample.args, **sample.kwargs)
