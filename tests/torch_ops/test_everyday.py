"""What else users of torch do with an operator: checkpoints, hooks, profiles, threads, traces, copies, sizes that change."""

import copy
import io
import threading

import pytest
import torch
from torch._dynamo.testing import CompileCounter
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.checkpoint import checkpoint

from tests.harness import random, short
from tests.torch_ops.samples import both_packages, every_sample, on_devices, pair_of

in_one_package = short(lambda package: package.__name__ == "cuda_reference")
some_samples = pytest.mark.parametrize("name", ("gemm", "gemv", "matmul", "conv2d"))


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *tensors):
        return self.function(*tensors)


def gradients(function, tensors):
    leaves = [t.detach().clone().requires_grad_() for t in tensors]
    return torch.autograd.grad(function(*leaves).pow(2).sum(), leaves)


def on_hosts_memory(function):
    def saved_there(*tensors):
        with torch.autograd.graph.save_on_cpu():
            return function(*tensors)

    return saved_there


WRAPPERS = {
    "checkpoint": lambda function: lambda *tensors: checkpoint(function, *tensors, use_reentrant=False),
    "save_on_cpu": on_hosts_memory,
}


@both_packages
@some_samples
@pytest.mark.parametrize("wrapper", WRAPPERS)
@on_devices
@in_one_package
def test_gradients_within(package, name, wrapper, device):
    pair = pair_of(package, name, device)
    tensors = pair.make()
    torch.testing.assert_close(gradients(WRAPPERS[wrapper](pair.ours), tensors), gradients(pair.torchs, tensors))


@both_packages
@some_samples
@on_devices
@in_one_package
def test_gradients_in_several_threads(package, name, device):
    pair = pair_of(package, name, device)
    tensors, found = pair.make(), []
    threads = [threading.Thread(target=lambda: found.append(gradients(pair.ours, tensors))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.testing.assert_close(found, 4 * [gradients(pair.torchs, tensors)])


@both_packages
@some_samples
@pytest.mark.parametrize("transform", ("vjp", "jvp", "linearize"))
@on_devices
@in_one_package
def test_products_with_jacobians(package, name, transform, device):
    pair = pair_of(package, name, device)
    tensors, directions = pair.make(), tuple(pair.make())

    def product(function):
        if transform == "jvp":
            return torch.func.jvp(function, tuple(tensors), directions)
        result, along = getattr(torch.func, transform)(function, *tensors)
        return result, along(result) if transform == "vjp" else along(*directions)

    torch.testing.assert_close(product(pair.ours), product(pair.torchs))


@both_packages
@some_samples
@pytest.mark.parametrize("strategy", ("reverse-mode", "forward-mode"))
@on_devices
@in_one_package
def test_vectorized_jacobians_of_autograd_functional(package, name, strategy, device):
    pair = pair_of(package, name, device)
    tensors = tuple(pair.make())
    got, wanted = (
        torch.autograd.functional.jacobian(f, tensors, vectorize=True, strategy=strategy) for f in (pair.ours, pair.torchs)
    )
    torch.testing.assert_close(got, wanted)


@both_packages
@every_sample
@on_devices
@in_one_package
def test_without_gradients(package, name, device):
    """Of leaves in no_grad and inference_mode, and of inference's tensors outside of it, on repeated calls too."""
    pair = pair_of(package, name, device)
    leaves = [t.requires_grad_() for t in pair.make()]
    for _ in range(3):
        with torch.no_grad():
            wanted = pair.ours(*leaves)
        with torch.inference_mode():
            result, copies = pair.ours(*leaves), [t.clone() for t in leaves]
        assert result.is_inference() and not wanted.requires_grad
        torch.testing.assert_close((result, pair.ours(*copies)), (wanted, wanted))


@both_packages
@every_sample
@on_devices
@in_one_package
def test_a_profile_names_the_operator(package, name, device):
    """With and without gradients, on repeated calls too."""
    pair = pair_of(package, name, device)
    operator = f"{package.__name__}::{name.split(',')[0]}"
    for requires_grad in (False, True):
        tensors = [t.requires_grad_(requires_grad) for t in pair.make()]
        for _ in range(3):
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
                pair.ours(*tensors)
            assert operator in [event.key for event in profile.key_averages()]


@both_packages
@some_samples
@on_devices
@in_one_package
def test_a_default_device_is_not_the_operands(package, name, device):
    """Whatever a call allocates is on the operands' device."""
    pair = pair_of(package, name, device)
    tensors = pair.make()
    with torch.device("meta"):
        result = pair.ours(*tensors)
    torch.testing.assert_close(result, pair.torchs(*tensors))


@both_packages
@every_sample
@pytest.mark.parametrize("mode", ("real", "fake", "symbolic"))
@on_devices
@in_one_package
def test_make_fx(package, name, mode, device):
    pair = pair_of(package, name, device)
    graph = make_fx(lambda *tensors: pair.ours(*tensors), tracing_mode=mode)(*pair.make())
    tensors = pair.make()
    torch.testing.assert_close(graph(*tensors), pair.torchs(*tensors))


@both_packages
@some_samples
@on_devices
@in_one_package
def test_traced_modules_are_copied_and_saved(package, name, device):
    pair = pair_of(package, name, device)
    tensors, file = pair.make(), io.BytesIO()
    traced = torch.jit.trace(Module(pair.ours), tuple(tensors))
    torch.jit.save(traced, file)
    file.seek(0)
    for function in (copy.deepcopy(traced), torch.jit.load(file)):
        torch.testing.assert_close(function(*tensors), pair.torchs(*tensors))


SIZES = {  # shapes for n of each dimension that may change
    "gemm": lambda n, k, m: ((n, k), (k, m)),
    "gemv": lambda n, k, m: ((n, k), (k,)),
    "matmul": lambda n, k, m: ((n, m, k), (k, 6)),
    "conv2d": lambda n, k, m: ((n, 3, k, m), (4, 3, 3, 3)),
}
CHANGING = {
    "gemm": ({0: "n", 1: "k"}, {0: "k", 1: "m"}),
    "gemv": ({0: "n", 1: "k"}, {0: "k"}),
    "matmul": ({0: "n", 1: "m", 2: "k"}, {0: "k"}),
    "conv2d": ({0: "n", 2: "k", 3: "m"}, {}),
}


@both_packages
@pytest.mark.parametrize("name", SIZES)
@on_devices
@in_one_package
def test_all_sizes_may_change(package, name, device):
    """One graph and one exported program for all sizes, aligned and not; when torch finds out by itself, two graphs."""
    torch._dynamo.reset()
    pair_of(package, name, device)
    function = getattr(package, name)
    dynamic, found_out = CompileCounter(), CompileCounter()
    compiled = torch.compile(function, fullgraph=True, dynamic=True, backend=dynamic)
    again = torch.compile(lambda *tensors: function(*tensors), fullgraph=True, backend=found_out)
    first = [random(*shape, device=device) for shape in SIZES[name](7, 9, 10)]
    dims = {dim: torch.export.Dim(dim, min=4) for dim in "nkm"}
    shapes = tuple({at: dims[dim] for at, dim in sizes.items()} for sizes in CHANGING[name])
    exported = torch.export.export(Module(function), tuple(first), dynamic_shapes=(shapes,)).module()
    for sizes in ((7, 9, 10), (11, 12, 13), (16, 32, 48), (5, 17, 8)):
        tensors = [random(*shape, device=device) for shape in SIZES[name](*sizes)]
        wanted = function(*tensors)
        for other in (compiled, again, exported):
            torch.testing.assert_close(other(*tensors), wanted)
    assert (dynamic.frame_count, found_out.frame_count) == (1, 2)


@both_packages
@some_samples
@on_devices
@short(lambda name, package: name == "gemm" and package.__name__ == "cuda_reference")
def test_compiled_by_inductor(package, name, device):
    """The default of torch.compile, with gradients; it wants a C++ compiler, as cuda_reference does."""
    torch._dynamo.reset()
    pair = pair_of(package, name, device)
    tensors = pair.make()
    compiled = torch.compile(lambda *args: pair.ours(*(2 * t for t in args)) + 1, fullgraph=True)
    wanted = gradients(lambda *args: pair.torchs(*(2 * t for t in args)) + 1, tensors)
    torch.testing.assert_close(gradients(compiled, tensors), wanted)
