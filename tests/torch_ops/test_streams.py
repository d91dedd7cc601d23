"""On a GPU: calls with gradients run on the current stream, without a synchronisation of their own, and can be captured."""

import functools

import pytest
import torch

from tests.harness import random
from tests.torch_ops.samples import LIBRARIES, both_packages, every_sample, loss, pair_of
from tritonkernels import native

pytestmark = pytest.mark.gpu
SPIN = 400_000_000  # cycles: a fifth of a second, longer than the host takes for the calls
WARM = 5  # calls until there are plans, which native code has learnt


@pytest.fixture(params=("python", "native"), autouse=True)
def way(request, monkeypatch):
    """What repeats calls."""
    for library in LIBRARIES.values():
        monkeypatch.setattr(library, "native", native.load().Repeats() if request.param == "native" else None)
        monkeypatch.setattr(library.plans, "_plans", {})
        for operator in library.operators.values() if library.native else ():
            monkeypatch.setattr(operator.overloads.default, "_op", None)  # as it is now comes back
            operator.shorten()


def gradients(function, tensors):
    result = function(*tensors)
    return result.detach(), *torch.autograd.grad(result.pow(2).sum(), tensors)


def leaves(pair):
    return [t.requires_grad_() for t in pair.make()]


@both_packages
@every_sample
def test_on_a_side_stream_behind_a_spinning_kernel(package, name):
    """The operands get their values late on that stream: a kernel on another stream would read others."""
    pair = pair_of(package, name, "cuda", torch.float32)
    tensors, values = leaves(pair), pair.make()
    for _ in range(WARM):
        gradients(pair.ours, tensors)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(SPIN)
        with torch.no_grad():
            for tensor, value in zip(tensors, values):
                tensor.copy_(value)
        results = gradients(pair.ours, tensors)
        assert not side.query(), "a call waited for the stream"
    side.synchronize()
    for got, wanted in zip(results, gradients(pair.torchs, [t.double().requires_grad_() for t in values])):
        torch.testing.assert_close(got.double(), wanted, rtol=1e-4, atol=1e-4)


@both_packages
@every_sample
@pytest.mark.parametrize("warm", (1, WARM))
def test_captured_with_its_gradients(package, name, warm):
    """Replayed on other values; one call before, which builds, or enough of them for plans."""
    pair = pair_of(package, name, "cuda", torch.float32)
    tensors, side, graph = leaves(pair), torch.cuda.Stream(), torch.cuda.CUDAGraph()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(warm):
            gradients(pair.ours, tensors)
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph, stream=side):
        results = gradients(pair.ours, tensors)
    for _ in range(2):
        values = pair.make()
        with torch.no_grad():
            for tensor, value in zip(tensors, values):
                tensor.copy_(value)
        graph.replay()
        torch.cuda.synchronize()
        for got, wanted in zip(results, gradients(pair.torchs, [t.double().requires_grad_() for t in values])):
            torch.testing.assert_close(got.double(), wanted, rtol=1e-4, atol=1e-4)


@both_packages
@pytest.mark.parametrize("name", ("gemm", "gemv", "matmul, a column", "conv2d"))
def test_compiled_by_inductor(package, name):
    torch._dynamo.reset()
    pair = pair_of(package, name, "cuda", torch.float32)

    def function(*tensors):
        return pair.ours(*(2 * t for t in tensors)) + 1

    compiled, tensors = torch.compile(function, fullgraph=True), leaves(pair)
    for got, wanted in zip(gradients(compiled, tensors), gradients(function, tensors)):
        torch.testing.assert_close(got, wanted)


@both_packages
@pytest.mark.parametrize("mode", ("default", "reduce-overhead"))
def test_trained_by_a_compiled_model(package, mode):
    """A few steps of a small network, against the same ones without torch.compile."""
    torch._dynamo.reset()

    def step(first, second, x):
        hidden = package.matmul(x, first, precision="tf32", activation="gelu")
        return loss(functools.partial(package.matmul, precision="tf32"))(hidden, second)

    x, results = random(32, 64, device="cuda"), []
    weights = [random(64, 64, device="cuda") / 8, random(64, 16, device="cuda") / 8]
    for function in (step, torch.compile(step, fullgraph=True, mode=None if mode == "default" else mode)):
        own = [w.clone().requires_grad_() for w in weights]
        for _ in range(5):
            torch.compiler.cudagraph_mark_step_begin()
            grads = torch.autograd.grad(function(*own, x), own)
            with torch.no_grad():
                for w, g in zip(own, grads):
                    w -= 1e-3 * g
        results.append([w.detach().clone() for w in own])
    for got, wanted in zip(results[1], results[0]):
        torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)
