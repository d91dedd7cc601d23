"""What else users of torch do with an operator: checkpoints, hooks, profiles, threads, traces, copies, sizes that change."""

import copy
import functools
import io
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
import torch
from torch._dynamo.testing import CompileCounter
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.checkpoint import checkpoint

import cuda_reference
from tests.harness import available_on, only, random, thorough
from tests.torch_ops.samples import LIBRARIES, both_packages, emulated, every_sample, on_devices, pair_of
from tritonkernels import OPS

every_operation = pytest.mark.parametrize("name", OPS)


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
@every_operation
@pytest.mark.parametrize("wrapper", WRAPPERS)
@on_devices
@emulated
def test_gradients_within(package, name, wrapper, device):
    pair = pair_of(package, name, device)
    tensors = pair.make()
    torch.testing.assert_close(gradients(WRAPPERS[wrapper](pair.ours), tensors), gradients(pair.torchs, tensors))


@both_packages
@every_operation
@on_devices
@emulated
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
@every_operation
@pytest.mark.parametrize("transform", ("vjp", "jvp", "linearize"))
@on_devices
@emulated
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
@every_operation
@pytest.mark.parametrize("strategy", ("reverse-mode", "forward-mode"))
@on_devices
@emulated
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
@emulated
def test_without_gradients(package, name, device):
    """Leaves in no_grad and inference_mode, and inference's tensors outside of it, on repeated calls too."""
    pair = pair_of(package, name, device)
    leaves = [t.requires_grad_() for t in pair.make()]
    for _ in range(3):
        with torch.no_grad():
            plain, wanted = pair.ours(*leaves), pair.torchs(*leaves)
        with torch.inference_mode():
            result, copies = pair.ours(*leaves), [t.clone() for t in leaves]
        assert result.is_inference() and not plain.requires_grad
        torch.testing.assert_close((plain, result, pair.ours(*copies)), (wanted, wanted, wanted))


@both_packages
@every_sample
@on_devices
@emulated
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
@every_operation
@on_devices
@emulated
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
@emulated
def test_make_fx(package, name, mode, device):
    pair = pair_of(package, name, device)
    graph = make_fx(lambda *tensors: pair.ours(*tensors), tracing_mode=mode)(*pair.make())
    tensors = pair.make()
    torch.testing.assert_close(graph(*tensors), pair.torchs(*tensors))


@both_packages
@every_operation
@on_devices
@emulated
def test_traced_modules_are_copied_and_saved(package, name, device):
    pair = pair_of(package, name, device)
    tensors, file = pair.make(), io.BytesIO()
    traced = torch.jit.trace(Module(pair.ours), tuple(tensors))
    torch.jit.save(traced, file)
    file.seek(0)
    for function in (copy.deepcopy(traced), torch.jit.load(file)):
        torch.testing.assert_close(function(*tensors), pair.torchs(*tensors))


def image_of(package, weight, grad_output):
    n, _, h, w = grad_output.shape
    return package.conv2d_input((n, 3, h + 2, w + 2), weight, grad_output)


CHANGING = {  # a function of tensors, and their sizes: n, k and m may change
    "gemm": ("gemm", ("nk", "km")),
    "gemv": ("gemv", ("nk", "k")),
    "matmul": ("matmul", ("nmk", "k6")),
    "conv2d": ("conv2d", ("n3km", "4333")),
    "conv2d_input": (image_of, ("4333", "n4km")),
    "conv2d_weight": (lambda package, x, g: package.conv2d_weight(x, (4, 3, 1, 1), g), ("n3km", "n4km")),
    "conv2d_bias": ("conv2d_bias", ("n4km",)),
}


@both_packages
@every_operation
@on_devices
@emulated
def test_all_sizes_may_change(package, name, device):
    """One graph and one exported program for all sizes, aligned and not; when torch finds out by itself, two graphs."""
    torch._dynamo.reset()
    pair_of(package, name, device)
    function, shapes = CHANGING[name]
    function = getattr(package, function) if isinstance(function, str) else functools.partial(function, package)

    def tensors(**sizes):
        return [random(*(sizes.get(size) or int(size) for size in shape), device=device) for shape in shapes]

    dynamic, found_out = CompileCounter(), CompileCounter()
    compiled = torch.compile(lambda *args: function(*args), fullgraph=True, dynamic=True, backend=dynamic)
    again = torch.compile(lambda *args: function(*args), fullgraph=True, backend=found_out)
    dims = {size: torch.export.Dim(size, min=4) for size in "nkm"}
    changing = tuple({at: dims[size] for at, size in enumerate(shape) if size in dims} for shape in shapes)
    exported = torch.export.export(Module(function), tuple(tensors(n=7, k=9, m=10)), dynamic_shapes=(changing,)).module()
    for n, k, m in ((7, 9, 10), (11, 12, 13), (16, 32, 48), (5, 17, 8)):
        args = tensors(n=n, k=k, m=m)
        for other in (compiled, again, exported):
            torch.testing.assert_close(other(*args), function(*args))
    assert (dynamic.frame_count, found_out.frame_count) == (1, 2)


@both_packages
@every_sample
@on_devices
@only(lambda package, device: device == "cuda" or package is cuda_reference)  # the interpreter has no plans
def test_repeated_gradients_run_plans(package, name, device, monkeypatch):
    """Forward and backward: a call that does not takes some hundred microseconds of the host."""
    pair, whole = pair_of(package, name, device, torch.float32), []
    tensors = pair.make()
    for _ in range(3):
        gradients(pair.ours, tensors)
    monkeypatch.setattr(LIBRARIES[package], "run", lambda call, *_: whole.append(call.problem.op))
    gradients(pair.ours, tensors)
    assert whole == []


@both_packages
@every_operation
@on_devices
@thorough
def test_compiled_by_inductor(package, name, device):
    """The default of torch.compile, with gradients; it wants a C++ compiler, as cuda_reference does."""
    torch._dynamo.reset()
    pair = pair_of(package, name, device)
    tensors = pair.make()
    compiled = torch.compile(lambda *args: pair.ours(*(2 * t for t in args)) + 1, fullgraph=True)
    wanted = gradients(lambda *args: pair.torchs(*(2 * t for t in args)) + 1, tensors)
    torch.testing.assert_close(gradients(compiled, tensors), wanted)


@both_packages
@every_operation
@on_devices
@thorough
def test_packaged_by_aotinductor(package, name, device, tmp_path):
    """In a process of its own: where torch's own operators do not survive it, nothing can be said of ours."""
    available_on(LIBRARIES[package], device)
    if failed := packaging_fails(device):
        pytest.skip(f"AOTInductor fails with torch's own operators here: {failed}")
    assert packaged(package.__name__, name, device, tmp_path) == ""


def packaged(package, name, device, folder):
    """What went wrong, if anything did."""
    command = [sys.executable, "-m", "tests.torch_ops.packaged", package, name, device, str(folder / "model.pt2")]
    run = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300)
    good = run.returncode == 0 and run.stdout.endswith("the same\n")
    return "" if good else f"status {run.returncode}: {run.stderr[-2000:]}"


@functools.cache
def packaging_fails(device):
    with tempfile.TemporaryDirectory() as folder:
        return packaged("torch", "gemm", device, Path(folder))
