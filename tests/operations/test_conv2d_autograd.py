"""Gradients of any order through conv2d and its gradients, in the forward's precision: against torch's own autograd."""

import functools

import pytest
import torch

import cuda_reference
import tritonkernels
from tests.harness import DEVICES, available_on, designs, prepare, random, rounded_to_tf32, run_where_taken, without_ties
from tests.operations.test_conv2d_gradients import channels_last, operands
from tritonkernels import numerics
from tritonkernels.launch import LIBRARY as TRITON

LIBRARIES = {tritonkernels: TRITON, cuda_reference: cuda_reference.launch.LIBRARY}
both_packages = pytest.mark.parametrize("package", LIBRARIES, ids=lambda p: p.__name__)
on_devices = pytest.mark.parametrize("device", DEVICES)


def leaves(*shapes, device="cpu", layout=lambda t: t):
    return [layout(random(*shape, dtype=torch.float64, device=device)).requires_grad_() for shape in shapes]


# op: (shapes of its operands, the call)
SAME, STEPS = {"padding": "same"}, {"stride": (2, 1), "padding": 1, "dilation": (1, 2), "groups": 2}
DIFFERENTIABLE = {
    "conv2d": (((2, 4, 3), (2, 2, 2, 2), (2,)), lambda package, x, w, b: package.conv2d(x, w, b, **SAME)),
    "conv2d_input": (
        ((4, 1, 2, 2), (1, 4, 2, 3)),
        lambda package, w, g: package.conv2d_input((1, 2, 3, 3), w, g, **STEPS),
    ),
    "conv2d_weight": (
        ((2, 4, 3), (3, 4, 3)),
        lambda package, x, g: package.conv2d_weight(x, (3, 2, 2, 2), g, **SAME),
    ),
    "conv2d_bias": (((2, 2, 1, 3),), lambda package, g: package.conv2d_bias(g)),
}


@both_packages
@pytest.mark.parametrize("op", DIFFERENTIABLE)
@on_devices
def test_gradgradcheck(package, op, device):
    available_on(LIBRARIES[package], device)
    shapes, call = DIFFERENTIABLE[op]
    function, tensors = functools.partial(call, package), leaves(*shapes, device=device)
    for check in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
        assert check(function, tensors, fast_mode=True, check_undefined_grad=False)


def penalty(conv, x, w, b):
    """A loss of the gradients: one gradient is expanded, another comes from torch.cat."""
    y = conv(x, w, b)
    of_sum = torch.autograd.grad(y.sum(), x, create_graph=True)
    of_parts = torch.autograd.grad(torch.cat((y, y[..., :1], y), -1).pow(2).sum(), (x, w, b), create_graph=True)
    return conv(x.detach(), w, b).mean() + sum(g.pow(2).sum() for g in (*of_sum, *of_parts))


SECOND_ORDER = {
    "same, even filter": (((2, 3, 5, 6), (4, 3, 2, 4)), SAME, lambda t: t),
    "unbatched": (((3, 5, 6), (4, 3, 2, 3)), {"padding": 1}, lambda t: t),
    "groups, steps, channels_last images": (((2, 4, 6, 5), (4, 2, 3, 2)), STEPS, channels_last),
}


@both_packages
@pytest.mark.parametrize("case", SECOND_ORDER)
@on_devices
def test_second_order_is_torchs(package, case, device):
    """In the tensor's own memory format, whatever the others have."""
    available_on(LIBRARIES[package], device)
    (image, weight), options, layout = SECOND_ORDER[case]
    tensors = leaves(image, device=device, layout=layout) + leaves(weight, weight[:1], device=device)
    wanted, got = (
        torch.autograd.grad(penalty(functools.partial(conv, **options), *tensors), tensors)
        for conv in (torch.nn.functional.conv2d, package.conv2d)
    )
    for ours, torchs, tensor in zip(got, wanted, tensors):
        torch.testing.assert_close(ours, torchs)
        assert ours.stride() == tensor.stride()


def test_a_dropped_second_order_gradient_of_the_weight():
    """This once gave 0.75 instead of torch's 410: the gradient of x was a constant to autograd."""

    def norm(conv, x, w):
        (g,) = torch.autograd.grad(conv(x, w).sum(), x, create_graph=True)
        return torch.autograd.grad(conv(x.detach(), w).mean() + g.pow(2).sum(), w)[0].norm()

    tensors = leaves((2, 3, 8, 8), (4, 3, 3, 3))
    wanted = norm(torch.nn.functional.conv2d, *tensors)
    assert wanted > 100
    torch.testing.assert_close(norm(cuda_reference.conv2d, *tensors), wanted)


def test_third_order_is_torchs():
    x, w = leaves((1, 2, 4, 4), (2, 2, 2, 2))

    def third(conv):
        gradient = conv(x, w).pow(4).sum()
        for _ in range(2):
            gradient = torch.autograd.grad(gradient, x, create_graph=True)[0].sum()
        return torch.autograd.grad(gradient, (x, w))

    for ours, torchs in zip(third(cuda_reference.conv2d), third(torch.nn.functional.conv2d)):
        torch.testing.assert_close(ours, torchs)


@pytest.fixture
def problems(monkeypatch):
    """(op, precision) of all calls that the CUDA library computes without a plan; plans start empty."""
    library, seen = cuda_reference.launch.LIBRARY, []
    monkeypatch.setattr(library.plans, "_plans", {})
    run = type(library).run

    def watched(library, call, *args):
        seen.append((call.problem.op, call.problem.precision))
        return run(library, call, *args)

    monkeypatch.setattr(type(library), "run", watched)
    return seen


def test_unneeded_second_order_gradients_are_not_computed(problems):
    x, w = random(1, 2, 5, 5), random(3, 2, 2, 2).requires_grad_()
    gradient = cuda_reference.conv2d_input(x.shape, w, torch.ones(1, 3, 4, 4))
    gradient.pow(2).sum().backward()
    assert [op for op, _ in problems] == ["conv2d_input", "conv2d_weight"] and w.grad is not None


@pytest.mark.parametrize("said, computed", [(None, "ieee"), ("ieee", "ieee"), ("tf32", "tf32"), ("torch", "tf32")])
def test_gradients_have_the_precision_of_the_forward(problems, said, computed):
    """Second-order ones too; "torch" means the state of torch's switch during the forward pass."""
    x, w = (random(*shape).requires_grad_() for shape in ((1, 3, 6, 6), (2, 3, 3, 3)))
    switch = torch.backends.cudnn.conv
    before = switch.fp32_precision
    try:
        switch.fp32_precision = "tf32"
        y = cuda_reference.conv2d(x, w, precision=said)
        switch.fp32_precision = "ieee"
        gradients = torch.autograd.grad(y.pow(2).sum(), (x, w), create_graph=True)
        sum(g.pow(2).sum() for g in gradients).backward()
    finally:
        switch.fp32_precision = before
    ops = [op for op, _ in problems]
    assert {precision for _, precision in problems} == {computed}
    assert all(ops.count(op) >= 2 for op in ("conv2d", "conv2d_input", "conv2d_weight"))


@pytest.mark.parametrize("library, op, design", designs("conv2d_input", "conv2d_weight"))
@on_devices
def test_gradients_in_tf32(library, op, design, device):
    """Within the bound of tf32; a kernel without tf32 computes ieee."""
    available_on(library, device)
    args, options = operands(op, functools.partial(random, device=device), groups=1)
    run_where_taken(library, op, design, *args, precision="tf32", **options)


@pytest.mark.parametrize("op", ["conv2d_input", "conv2d_weight"])
@both_packages
@on_devices
def test_tf32_is_rounded_to_nearest_and_really_used(op, package, device):
    """As exact as a product of rounded operands, and different from the product of unrounded ones."""
    available_on(LIBRARIES[package], device)
    x, w, g = (without_ties(random(*shape, device=device)) for shape in ((2, 8, 9, 8), (16, 8, 3, 3), (2, 16, 9, 8)))
    args = (x.shape, w, g) if op == "conv2d_input" else (x, w.shape, g)
    tensor_cores = {tritonkernels: {"THIN": False}, cuda_reference: {"MATH": "MMA"}}[package]  # the others do not round
    config = tensor_cores if op == "conv2d_weight" else None
    options = {"precision": "tf32", "design": "implicit_gemm", "config": config}
    computed = getattr(package, op)(*args, padding=1, **options).double()
    rounded = [rounded_to_tf32(value) if isinstance(value, torch.Tensor) else value for value in args]
    terms = prepare(op, *args, padding=1).problem.terms
    bound = numerics.gamma(terms + 4, 2.0**-23) * numerics.magnitude(op, *args, padding=1)
    assert ((computed - numerics.reference(op, *rounded, padding=1)).abs() <= bound).all()
    assert ((computed - numerics.reference(op, *args, padding=1)).abs() > bound).any()
