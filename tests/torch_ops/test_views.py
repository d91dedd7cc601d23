"""conv1d, conv3d and transposed convolutions are differentiated, compiled and batched as torch's."""

import pickle

import pytest
import torch
from torch.nn import functional

import cuda_reference
import tritonkernels
from tests.harness import DEVICES, available_on, random
from tests.torch_ops.samples import both_packages, emulated
from tritonkernels.errors import ShapeError

on_devices = pytest.mark.parametrize("device", DEVICES)
# name: (shapes of input, weight and bias; the call of a module's function)
CALLS = {
    "conv1d": (((5, 4, 9), (6, 2, 3), (6,)), lambda m, *t: m.conv1d(*t, stride=2, padding=1, groups=2)),
    "conv1d, same": (((4, 9), (3, 4, 5), (3,)), lambda m, *t: m.conv1d(*t, padding="same")),
    "conv_transpose1d": (
        ((2, 4, 5), (4, 3, 3), (6,)),
        lambda m, *t: m.conv_transpose1d(*t, stride=2, padding=1, groups=2, output_padding=1),
    ),
    "conv_transpose2d": (
        ((7, 4, 5, 4), (4, 3, 3, 2), (6,)),
        lambda m, *t: m.conv_transpose2d(*t, stride=(3, 2), padding=(1, 0), groups=2, output_padding=(2, 1)),
    ),
    "conv3d, patches": (((3, 2, 2, 4, 4), (5, 2, 2, 4, 4), (5,)), lambda m, *t: m.conv3d(*t, stride=(2, 4, 4))),
    "conv3d, slices": (((1, 2, 3, 4, 4), (5, 2, 1, 3, 3), (5,)), lambda m, *t: m.conv3d(*t, padding=(0, 1, 1))),
    "conv3d, in time": (((2, 2, 3, 4, 4), (5, 2, 3, 1, 1), (5,)), lambda m, *t: m.conv3d(*t, padding=(1, 0, 0))),
    "conv3d, rows": (((2, 2, 3, 4, 4), (5, 2, 3, 1, 3), (5,)), lambda m, *t: m.conv3d(*t, padding=(1, 0, 1))),
}
every_call = pytest.mark.parametrize("name", CALLS)


def operands(name, device="cpu"):
    return [random(*shape, dtype=torch.float64, device=device) for shape in CALLS[name][0]]


def derivatives(function, tensors, grad):
    """The result, its gradients for a `grad` that is expanded, and those of their squares."""
    tensors = [t.clone().requires_grad_() for t in tensors]
    result = function(*tensors)
    first = torch.autograd.grad(result, tensors, grad.expand(result.shape), create_graph=True)
    return result, first, torch.autograd.grad(sum(g.pow(2).sum() for g in first), tensors[:2])


@both_packages
@every_call
@on_devices
@emulated
def test_gradients_of_first_and_second_order(package, name, device):
    available_on(package.launch.LIBRARY, device)
    tensors, call = operands(name, device), CALLS[name][1]
    grad = random(1, dtype=torch.float64, device=device)
    ours, torchs = (derivatives(lambda *t, m=m: call(m, *t), tensors, grad) for m in (package, functional))
    torch.testing.assert_close(ours, torchs)


@both_packages
@every_call
@emulated
def test_tangents_and_batches(package, name):
    """Every set of operands may have the batch."""
    available_on(package.launch.LIBRARY, "cpu")
    tensors, call = operands(name), CALLS[name][1]

    functions = [lambda *t, m=m: call(m, *t) for m in (package, functional)]
    tangents = tuple(map(torch.sin, tensors))
    torch.testing.assert_close(*(torch.func.jvp(function, tuple(tensors), tangents)[1] for function in functions))
    for batched in range(1, 8):
        dims = tuple(1 if batched >> i & 1 else None for i in range(3))
        given = [t if dim is None else torch.stack((t, t.cos()), 1) for t, dim in zip(tensors, dims)]
        torch.testing.assert_close(*(torch.vmap(function, dims)(*given) for function in functions))


@pytest.mark.parametrize("name", ("conv_transpose2d", "conv3d, patches"))
def test_compiled_for_any_size_with_gradients(name):
    """In one graph, in which the operation is one operator."""
    torch._dynamo.reset()
    tensors, call = operands(name), CALLS[name][1]
    seen = []

    def backend(graph, _):
        seen.append([str(node.target) for node in graph.graph.nodes if "cuda_reference" in str(node.target)])
        return graph

    def function(*tensors):
        return call(cuda_reference, *tensors)

    compiled = torch.compile(function, fullgraph=True, backend=backend, dynamic=True)
    for more in ((), (torch.cat((tensors[0], tensors[0])),)):
        given, grad = [*more, *tensors][:1] + tensors[1:], random(1, dtype=torch.float64)
        torch.testing.assert_close(derivatives(compiled, given, grad), derivatives(function, given, grad))
    operation = "conv2d_input" if "transpose" in name else "conv2d"
    assert seen == [[f"cuda_reference.{operation}.default"]]


@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
def test_compiled_for_sizes_that_only_data_decides():
    torch._dynamo.reset()
    x, w = random(2, 4, 9), random(4, 4, 3)

    def function(x, w):
        signals = x[:, :, x[0, 0] > -9]
        volumes = x[x[:, 0, 0] > -9][..., None, None]
        transposed = cuda_reference.conv_transpose1d(signals, w, stride=2, output_padding=1)
        return cuda_reference.conv1d(signals, w), transposed, cuda_reference.conv3d(volumes, w[..., None, None])

    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, w), function(x, w))


@pytest.mark.parametrize("package", (tritonkernels, cuda_reference), ids=lambda p: p.__name__)
@every_call
def test_fake_tensors_have_the_result_s_form(package, name):
    tensors, call = operands(name), CALLS[name][1]
    wanted = call(cuda_reference, *tensors)
    meta = call(package, *(t.to("meta") for t in tensors))
    assert (meta.shape, meta.stride(), meta.dtype) == (wanted.shape, wanted.stride(), wanted.dtype)


@both_packages
@pytest.mark.parametrize("name", ("conv1d", "conv_transpose2d", "conv3d, patches"))
def test_torch_fx_sees_one_function(package, name):
    call = CALLS[name][1]
    traced = torch.fx.symbolic_trace(lambda x, w, b: call(package, x, w, b))
    (node,) = (node for node in traced.graph.nodes if node.op == "call_function")
    assert node.target is getattr(package, name.partition(",")[0])
    available_on(package.launch.LIBRARY, "cpu")
    tensors = operands(name)
    torch.testing.assert_close(pickle.loads(pickle.dumps(traced))(*tensors), call(package, *tensors))


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore")  # torch.jit is deprecated, and says which sizes are constants of its trace
def test_traced_by_torch_jit(name):
    tensors, call = operands(name), CALLS[name][1]
    traced = torch.jit.trace(lambda *t: call(cuda_reference, *t), tuple(tensors))
    tensors[0] = tensors[0].cos()
    torch.testing.assert_close(traced(*tensors), call(cuda_reference, *tensors))
    if "transpose" not in name and "rows" not in name:  # whose sizes are constants
        more = [torch.cat((tensors[0], tensors[0]), -1), *tensors[1:]]
        torch.testing.assert_close(traced(*more), call(cuda_reference, *more))


@pytest.mark.filterwarnings("ignore")
def test_torch_jit_checks_sizes_as_a_call_does():
    """A trace that fails leaves torch.jit as it was."""
    with pytest.raises(ShapeError, match=r"^weight: .*with C = 4"):
        torch.jit.trace(cuda_reference.conv_transpose1d, (random(2, 4, 5), random(3, 4, 3)))
    assert torch._C._get_tracing_state() is None


def test_autocast_lowers_operands():
    with torch.autocast("cpu", torch.bfloat16):
        for name in ("conv1d", "conv_transpose1d"):
            tensors = [t.float() for t in operands(name)]
            assert CALLS[name][1](cuda_reference, *tensors).dtype == torch.bfloat16
