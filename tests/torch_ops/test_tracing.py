"""Whatever runs calls without data, or writes them down: fake and meta tensors, torch.compile, torch.export, torch.jit.trace,
modes."""

import io

import pytest
import torch
from torch._dynamo.testing import CompileCounter
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from perf.measure import baselines
from tests.harness import random
from tests.torch_ops.samples import SAMPLES, both_packages, emulated, every_sample, loss, on_devices, pair_of


def form(tensor):
    return tensor.shape, tensor.stride(), tensor.dtype


def channels_last(tensors):
    return [t.contiguous(memory_format=torch.channels_last) if t.ndim == 4 else t for t in tensors]


@both_packages
@every_sample
@pytest.mark.parametrize("layout", (list, channels_last))
@on_devices
def test_fake_and_meta_tensors(package, name, layout, device):
    """Shape, strides and dtype are those of the result."""
    pair = pair_of(package, name, device)
    tensors = layout(pair.make())
    wanted = form(pair.ours(*tensors))
    assert form(pair.ours(*(t.to("meta") for t in tensors))) == wanted
    with FakeTensorMode() as mode:
        assert form(pair.ours(*map(mode.from_tensor, tensors))) == wanted


@both_packages
@every_sample
@on_devices
@emulated
def test_compiled_with_gradients(package, name, device):
    """In one graph, which serves other sizes of the first dimension too."""
    torch._dynamo.reset()
    pair, counter = pair_of(package, name, device), CompileCounter()

    def function(*tensors):
        return pair.ours(*(2 * t for t in tensors)) + 1

    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    counted = torch.compile(function, fullgraph=True, backend=counter, dynamic=True)
    for _ in range(2):
        inputs = [t.requires_grad_() for t in pair.make()]
        again = [t.detach().clone().requires_grad_() for t in inputs]
        torch.testing.assert_close(compiled(*inputs), function(*again))
        got, wanted = (torch.autograd.grad(loss(f)(*i), i) for f, i in ((compiled, inputs), (function, again)))
        torch.testing.assert_close(got, wanted)
        counted(*inputs)
    assert counter.frame_count == 1 and counter.op_count > 1


@both_packages
@pytest.mark.parametrize("name", ("gemm", "gemv, one matrix", "conv2d"))
@on_devices
@emulated
def test_another_batch_is_no_other_graph(package, name, device):
    torch._dynamo.reset()
    counter = CompileCounter()
    pair = pair_of(package, name, device)
    at = {"gemm": 0, "gemv, one matrix": 1, "conv2d": 0}[name]
    compiled = torch.compile(pair.ours, fullgraph=True, dynamic=True, backend=counter)
    for batch in (7, 12, 9):  # no other size of the sample: torch would take equal sizes for one
        tensors = pair.make()
        tensors[at] = random(batch, *tensors[at].shape[1:], dtype=tensors[at].dtype, device=device)
        if name.startswith("gemv"):
            tensors[2] = tensors[2][:1]
        torch.testing.assert_close(compiled(*tensors), pair.torchs(*tensors))
    assert counter.frame_count == 1


@both_packages
@on_devices
def test_compiled_into_an_out(package, device):
    torch._dynamo.reset()
    pair = pair_of(package, "gemm", device)

    def function(a, b, c):
        out = torch.empty(4, 6, dtype=a.dtype, device=a.device)
        package.gemm(a, b, c, alpha=0.5, beta=2.0, out=out)
        return 2 * out

    tensors = pair.make()
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*tensors), 2 * pair.torchs(*tensors))


@both_packages
@on_devices
def test_compiled_with_a_design_and_a_config(package, device):
    torch._dynamo.reset()
    a, b = (random(32, 32, dtype=torch.float16, device=device) for _ in range(2))
    config = package.configs("matmul", a, b, design="tiled")[-1]

    def function(a, b):
        return package.matmul(a, b, design="tiled", config=config)

    torch.testing.assert_close(torch.compile(function, fullgraph=True, backend="aot_eager")(a, b), function(a, b))


@both_packages
@on_devices
def test_a_mistake_is_told_while_it_is_traced(package, device):
    torch._dynamo.reset()
    pair = pair_of(package, "gemm", device)
    a, b, _ = pair.make()
    with pytest.raises(Exception, match="inner size 6"):
        torch.compile(package.gemm, fullgraph=True, backend="aot_eager")(a, b.mT)


@both_packages
@every_sample
@on_devices
@emulated
def test_export_round_trip(package, name, device):
    pair = pair_of(package, name, device)

    class Module(torch.nn.Module):
        def forward(self, *tensors):
            return pair.ours(*tensors)

    tensors = pair.make()
    exported, file = torch.export.export(Module(), tuple(tensors)), io.BytesIO()
    assert any(getattr(node.target, "namespace", "") == package.__name__ for node in exported.graph.nodes)
    torch.export.save(exported, file)
    file.seek(0)
    others = pair.make()
    torch.testing.assert_close(torch.export.load(file).module()(*others), pair.torchs(*others))


@both_packages
@on_devices
def test_torch_jit_trace(package, device):
    pair = pair_of(package, "gemm", device)
    traced = torch.jit.trace(pair.ours, tuple(pair.make()))
    tensors = pair.make()
    torch.testing.assert_close(traced(*tensors), pair.torchs(*tensors))


@both_packages
@on_devices
def test_fx_symbolic_trace(package, device):
    graph = torch.fx.symbolic_trace(lambda a, b: package.gemm(a, b) + 1)
    a, b, _ = pair_of(package, "gemm", device).make()
    torch.testing.assert_close(graph(a, b), a @ b + 1)


@both_packages
@every_sample
@on_devices
@emulated
def test_modes_see_one_operator(package, name, device):
    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.names.append(str(func))
            return func(*args, **(kwargs or {}))

    pair, mode = pair_of(package, name, device), Seen()
    mode.names, tensors = [], pair.make()
    with mode:
        pair.ours(*tensors)
    assert mode.names == [f"{package.__name__}.{SAMPLES[name].op}.default"]


@both_packages
@every_sample
@on_devices
@emulated
def test_flops_are_counted(package, name, device):
    """As torch counts the product of the same matrices (which it leaves out of products with a vector)."""
    pair, tensors = pair_of(package, name, device), pair_of(package, name, device).make()
    with FlopCounterMode(display=False) as ours:
        pair.ours(*tensors)
    with FlopCounterMode(display=False) as torchs:
        pair.torchs(*tensors)
    vectors = {"gemv": 40, "matmul, vectors": 10, "matmul, a column": 60, "gemv, a batch": 2 * 2 * 3 * 4 * 5}
    assert ours.get_total_flops() == vectors.get(name, torchs.get_total_flops())


@both_packages
@on_devices
def test_a_tensor_of_another_class_is_computed_and_stays_one(package, device):
    class Named(torch.Tensor):
        pass

    a, b, _ = pair_of(package, "gemm", device).make()
    result = package.gemm(a.as_subclass(Named), b)
    assert type(result) is Named
    torch.testing.assert_close(result.as_subclass(torch.Tensor), a @ b)


@both_packages
@pytest.mark.parametrize("name", ("matmul", "conv2d"))
def test_the_precision_torch_is_traced(package, name):
    """Whichever of torch's switches was set: after the newer ones torch refuses to read the older."""
    torch._dynamo.reset()
    shapes = {"matmul": ((8, 8), (8, 8)), "conv2d": ((1, 2, 8, 8), (2, 2, 3, 3))}[name]
    tensors, function = [random(*shape) for shape in shapes], getattr(package, name)
    with baselines.precision("tf32"):
        result = torch.compile(function, fullgraph=True, backend="aot_eager")(*tensors, precision="torch")
        torch.testing.assert_close(result, function(*tensors, precision="torch"), rtol=0, atol=0)
    torch.testing.assert_close(result, function(*tensors, precision="tf32"), rtol=0, atol=0)
