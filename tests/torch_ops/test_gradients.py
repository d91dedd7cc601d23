"""Gradients and tangents of every operation in both packages, of any order, against torch's own."""

import functools

import pytest
import torch
from torch.autograd import forward_ad

from tests.harness import random
from tests.torch_ops.samples import SAMPLES, both_packages, emulated, every_sample, everywhere, loss, on_devices, pair_of
from tritonkernels.errors import GradientError


def leaves(tensors):
    return [t.clone().requires_grad_() for t in tensors]


def assert_alike(pair, gradients):
    """gradients(function, leaves) are the same of ours and of torch's."""
    tensors = pair.make()
    for got, wanted in zip(*(gradients(function, leaves(tensors)) for function in (pair.ours, pair.torchs)), strict=True):
        torch.testing.assert_close(got, wanted)


@both_packages
@every_sample
@on_devices
def test_gradients_of_first_and_second_order(package, name, device):
    def both_orders(function, inputs):
        first = torch.autograd.grad(loss(function)(*inputs), inputs, create_graph=True)
        norm = sum(g.pow(2).sum() for g in first)
        return *first, *torch.autograd.grad(norm, inputs, allow_unused=True, materialize_grads=True)

    assert_alike(pair_of(package, name, device), both_orders)


@both_packages
@every_sample
@on_devices
@emulated
def test_gradcheck(package, name, device):
    """In both modes, in batches of them, and one over the other."""
    pair = pair_of(package, name, device)
    options = {"fast_mode": True, "check_undefined_grad": False}
    batches = {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True}
    assert torch.autograd.gradcheck(pair.ours, leaves(pair.make()), **options, **batches)
    assert torch.autograd.gradgradcheck(pair.ours, leaves(pair.make()), **options, check_fwd_over_rev=True)


@both_packages
@pytest.mark.parametrize("name", [name for name, sample in SAMPLES.items() if not sample.op.startswith("conv2d")])
@on_devices
@emulated
def test_gradients_of_empty_tensors(package, name, device):
    """Each size in turn is 0."""
    pair = pair_of(package, name, device)
    tensors = pair.make()
    for empty in {size for t in tensors for size in t.shape} - {1}:
        inputs = leaves([t.new_zeros([0 if size == empty else size for size in t.shape]) for t in tensors])
        results = [torch.autograd.grad(function(*inputs).sum(), inputs) for function in (pair.ours, pair.torchs)]
        torch.testing.assert_close(*results)


LAYOUTS = {
    "expanded": lambda y: y.sum(),
    "from cat": lambda y: torch.cat((y.flatten(), y.flatten()[:1])).pow(2).sum(),
    "transposed": lambda y: (y.mT if y.ndim > 1 else y).contiguous().view(-1).pow(2).sum(),
    "with gaps": lambda y: y.expand(3, *y.shape)[..., ::2].pow(2).sum() if y.ndim else y,
}


@both_packages
@every_sample
@pytest.mark.parametrize("layout", LAYOUTS)
@on_devices
@emulated
def test_gradients_come_in_any_layout(package, name, layout, device):
    def gradients(function, inputs):
        return torch.autograd.grad(LAYOUTS[layout](function(*inputs)), inputs)

    assert_alike(pair_of(package, name, device), gradients)


@both_packages
@every_sample
@on_devices
@emulated
def test_only_what_is_wanted_is_computed_and_kept(package, name, device):
    """For each tensor alone: its gradient, and no tensor kept that this gradient does not need."""
    pair = pair_of(package, name, device)
    for wanted in everywhere(pair.make()):
        tensors, kept = pair.make(), []
        tensors[wanted].requires_grad_()
        with torch.autograd.graph.saved_tensors_hooks(functools.partial(_keep, kept), lambda t: t):
            result = pair.ours(*tensors)
        assert not any(t.data_ptr() == tensors[wanted].data_ptr() and t.shape == tensors[wanted].shape for t in kept)
        result.sum().backward()
        assert [t.grad is not None for t in tensors] == [at == wanted for at in everywhere(tensors)]


def _keep(kept, tensor):
    kept.append(tensor)
    return tensor


@both_packages
@every_sample
@on_devices
@emulated
def test_forward_mode(package, name, device):
    pair = pair_of(package, name, device)
    tensors, tangents = pair.make(), pair.make()
    for count in (1, len(tensors)):
        results = []
        for function in (pair.ours, pair.torchs):
            with forward_ad.dual_level():
                duals = [forward_ad.make_dual(t, d) for t, d in zip(tensors[:count], tangents)]
                results.append(forward_ad.unpack_dual(function(*duals, *tensors[count:])))
        for got, wanted in zip(*results):
            torch.testing.assert_close(got, wanted)


TRANSFORMED = ("gemm", "gemv, a batch", "matmul", "matmul, a row", "conv2d", "conv2d_input", "conv2d_weight", "conv2d_bias")


@both_packages
@pytest.mark.parametrize("name", TRANSFORMED)
@pytest.mark.parametrize("transform", ("grad", "jacrev", "jacfwd", "hessian"))
@on_devices
@emulated
def test_transforms_of_torch_func(package, name, transform, device):
    pair, apply = pair_of(package, name, device), getattr(torch.func, transform)
    tensors = pair.make()
    scalar = transform in ("grad", "hessian")
    got, wanted = (
        apply(loss(function) if scalar else function, everywhere(tensors))(*tensors) for function in (pair.ours, pair.torchs)
    )
    torch.testing.assert_close(got, wanted)


@both_packages
@on_devices
def test_nothing_is_recorded_into_an_out(package, device):
    """Gradients and tangents would be dropped: refused, with the tensor's name."""
    op, (first, *others) = package.gemm, pair_of(package, "gemm", device).make()
    out = torch.zeros(4, 6, dtype=first.dtype, device=device)
    with pytest.raises(GradientError, match=r"^a: got requires_grad.*out"):
        op(first.clone().requires_grad_(), *others, out=out)
    with pytest.raises(GradientError, match=r"^out: got requires_grad"):
        op(first, *others, out=out.clone().requires_grad_())
    with forward_ad.dual_level(), pytest.raises(GradientError, match=r"^a: .*forward-mode"):
        op(forward_ad.make_dual(first, first), *others, out=out)
    with pytest.raises(GradientError, match=r"^a: .*torch\.func"):
        torch.vmap(lambda a: op(a, *others, out=out))(first[None])
    with pytest.raises(GradientError, match=r"^a: got requires_grad.*out"):
        getattr(torch.ops, package.__name__).gemm.out(first.clone().requires_grad_(), *others, out=out)
    with forward_ad.dual_level(), pytest.raises(GradientError, match=r"^a: .*forward-mode"):
        getattr(torch.ops, package.__name__).gemm.out(forward_ad.make_dual(first, first), *others, out=out)
    assert not out.any()
    with torch.no_grad():
        assert op(first.clone().requires_grad_(), *others, out=out) is out and out.any()


@both_packages
@on_devices
def test_types_without_a_gradient(package, device):
    a, b = (random(16, 16, device=device).to(torch.float8_e4m3fn) for _ in range(2))
    with pytest.raises(GradientError, match=r"^a: .*float8"):
        package.matmul(a.requires_grad_(), b)
