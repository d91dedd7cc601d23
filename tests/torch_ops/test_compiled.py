"""What torch.compile leaves as it is: tangents, torch's switches, and sizes and scalars that only data decides."""

import functools

import pytest
import torch
from torch.autograd import forward_ad
from torch.func import grad, jacfwd, jvp

import cuda_reference
from perf.measure import baselines
from tests.harness import random, short
from tests.torch_ops.samples import LIBRARIES, both_packages, emulated, loss, on_devices, pair_of
from tritonkernels.plans import Plans

OPERATIONS = ("gemm", "gemv", "matmul", "conv2d", "conv2d_input", "conv2d_weight", "conv2d_bias")


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


def dual(function, tensors, tangents):
    """The tangent of the function's result, by dual numbers."""
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(function(*map(forward_ad.make_dual, tensors, tangents))).tangent


MODES = {
    "jvp": lambda function, tensors, tangents: jvp(function, tensors, tangents)[1],
    "jvp of grad": lambda function, tensors, tangents: jvp(grad(function), tensors, tangents)[1],
    "jacfwd": lambda function, tensors, tangents: jacfwd(function)(*tensors),
    "dual numbers": dual,
}


@both_packages
@pytest.mark.parametrize("name, mode", [*((name, "jvp") for name in OPERATIONS), *(("gemm", mode) for mode in [*MODES][1:])])
@on_devices
@emulated
def test_tangents_of_compiled_code(package, name, mode, device):
    """Compiled code opens levels of forward mode without Python's knowledge."""
    pair = pair_of(package, name, device)
    tensors, tangents = (tuple(pair.make()) for _ in range(2))
    ours, torchs = (functools.partial(MODES[mode], loss(function)) for function in (pair.ours, pair.torchs))
    compiled = torch.compile(ours, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(tensors, tangents), torchs(tensors, tangents))


@both_packages
def test_torch_s_switches_are_followed(package, monkeypatch):
    """Each time that compiled code runs, by products and by convolutions."""
    library, seen = LIBRARIES[package], []
    monkeypatch.setattr(library, "plans", Plans())
    run = type(library).run

    def watched(library, call, *args):
        seen.append((call.problem.op, call.problem.precision))
        return run(library, call, *args)

    monkeypatch.setattr(type(library), "run", watched)
    x, weight, g, a, b = (random(*shape) for shape in ((1, 2, 8, 8), (2, 2, 3, 3), (1, 2, 6, 6), (8, 8), (8, 8)))

    def call():
        package.matmul(a, b, precision="torch")
        package.conv2d(x, weight, precision="torch")
        package.conv2d_input(x.shape, weight, g, precision="torch")
        package.conv2d_weight(x, weight.shape, g, precision="torch")

    compiled = torch.compile(call, fullgraph=True, backend="eager")
    for precision in ("tf32", "ieee", "tf32"):
        seen.clear()
        with baselines.precision(precision):
            compiled()
        assert seen == [(op, precision) for op in ("matmul", "conv2d", "conv2d_input", "conv2d_weight")]


def of(t, dim=0):
    """The mask of what data keeps along a dimension: about half."""
    return t.movedim(dim, 0).flatten(1)[:, 0] > 0


# operation: (shapes, results of operands whose sizes depend on their data)
BY_DATA = {
    "gemm": (
        ((5, 7), (7, 6)),
        lambda p, a, b: [p.gemm(a[of(a)], b, b[:1]), p.gemm(a[:, of(b)], b[of(b)]), p.gemm(a, b[:, of(b, 1)])],
    ),
    "gemv": (
        ((3, 5, 7), (3, 7)),
        lambda p, a, x: [p.gemv(a[of(a)], x[of(a)]), p.gemv(a[0], x[of(x)]), p.gemv(a[:, :, of(a, 2)], x[:, of(a, 2)])],
    ),
    "matmul": (
        ((4, 5, 7), (7, 6)),
        lambda p, a, b: [p.matmul(a[of(a)], b), p.matmul(a[:, of(a, 1)], b, bias=b[0]), p.matmul(a, b[:, of(b, 1)])],
    ),
    "conv2d": (
        ((2, 4, 9, 8), (6, 4, 3, 3)),
        lambda p, x, w: [p.conv2d(x[of(x)], w), p.conv2d(x.to(memory_format=torch.channels_last)[of(x)], w[of(w)], padding=1)],
    ),
    "conv2d_input": (
        ((6, 4, 3, 3), (2, 6, 7, 6)),
        lambda p, w, g: [p.conv2d_input((g[of(g)].shape[0], 4, 9, 8), w, g[of(g)])],
    ),
    "conv2d_weight": (
        ((2, 4, 9, 8), (2, 6, 7, 6)),
        lambda p, x, g: [p.conv2d_weight(x[of(x)], (6, 4, 3, 3), g[of(x)])],
    ),
    "conv2d_bias": (((2, 6, 7, 6),), lambda p, g: [p.conv2d_bias(g[of(g)]), p.conv2d_bias(g[:, of(g, 1)])]),
}


@both_packages
@pytest.mark.parametrize("name", BY_DATA)
@short(lambda package, name: package is cuda_reference and name in ("gemm", "matmul", "conv2d"))
@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
def test_sizes_that_only_data_decides(package, name):
    """In one graph, with gradients, for other data too: also where nothing is kept."""
    shapes, results = BY_DATA[name]

    def gradients(function, tensors):
        leaves = [t.clone().requires_grad_() for t in tensors]
        found = function(*leaves)
        return *found, *torch.autograd.grad(sum(y.pow(2).sum() for y in found), leaves)

    function = functools.partial(results, package)
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    for scale in (1, 1, 0):
        tensors = [scale * random(*shape, dtype=torch.float64) for shape in shapes]
        torch.testing.assert_close(gradients(compiled, tensors), gradients(function, tensors))


@both_packages
@torch._dynamo.config.patch(capture_scalar_outputs=True)
def test_scalars_that_only_data_decides(package):
    a, b, s = random(5, 7), random(7, 6), torch.tensor([0.5, -3.0])

    def results(a, s):
        alpha, beta = s[0].item(), s[1].item()
        scaled = {"alpha": alpha, "beta": beta}
        products = package.gemm(a, b, b[0], **scaled), package.matmul(a, b, c=b[0], **scaled)
        return *products, package.gemv(a, b[:, 0], a[:, 0], **scaled), package.gemm(a, b, alpha=s.long()[1].item())

    def gradients(function, s):
        leaf = a.clone().requires_grad_()
        found = function(leaf, s)
        return *found, *torch.autograd.grad(sum(y.pow(2).sum() for y in found), leaf)

    compiled = torch.compile(results, fullgraph=True, backend="aot_eager")
    for values in (s, s - 1, 0 * s):
        torch.testing.assert_close(gradients(compiled, values), gradients(results, values))
