"""vmap: every operand with and without the batch, in the first and the last dimension."""

import itertools
import types

import pytest
import torch

import cuda_reference
from tests.torch_ops.samples import SAMPLES, both_packages, emulated, every_sample, loss, on_devices, pair_of
from tritonkernels.launch import LIBRARY
from tritonkernels.torch_ops import operator

SIZE = 3


@both_packages
@every_sample
@pytest.mark.parametrize("at", (0, -1))
@on_devices
@emulated
def test_every_operand_may_have_the_batch(package, name, at, device):
    pair = pair_of(package, name, device)
    for batched in itertools.product((False, True), repeat=len(pair.make())):
        if not any(batched):
            continue
        tensors = [many.movedim(0, at) if b else one for one, many, b in zip(pair.make(), pair.make(SIZE), batched)]
        dims = tuple(at if b else None for b in batched)
        got, wanted = (torch.vmap(function, dims)(*tensors) for function in (pair.ours, pair.torchs))
        torch.testing.assert_close(got, wanted)


@both_packages
@every_sample
@on_devices
@emulated
def test_batches_of_gradients(package, name, device):
    pair = pair_of(package, name, device)
    tensors = pair.make(SIZE)
    argnums = tuple(range(len(tensors)))
    got, wanted = (torch.vmap(torch.func.grad(loss(f), argnums))(*tensors) for f in (pair.ours, pair.torchs))
    torch.testing.assert_close(got, wanted)


ADDENDS = {  # the operands of a call, and addends that broadcast to its result
    "gemm": (((4, 5), (5, 6)), ((6,), (4, 1), (1, 6), ())),
    "gemv": (((4, 5), (3, 5)), ((4,), (3, 1), (1, 4), (1,), ())),
    "matmul": (((3, 4, 5), (5, 6)), ((6,), (4, 1), (3, 1, 6), (1,), ())),
}


@pytest.mark.parametrize("others", list(itertools.product((False, True), repeat=2)))
@pytest.mark.parametrize("op, shape", [(op, shape) for op, (_, shapes) in ADDENDS.items() for shape in shapes])
def test_an_addend_of_fewer_dimensions_may_have_the_batch(op, shape, others):
    """Alone, too. The batch is as long as a dimension that it must not be taken for."""
    call = {"gemm": cuda_reference.gemm, "gemv": cuda_reference.gemv, "matmul": addmm}[op]
    operands, dims = ADDENDS[op][0], (*(0 if batched else None for batched in others), 0)
    for size in (3, 4, 6):
        tensors = [
            torch.randn(*([size] if dim == 0 else []), *own, dtype=torch.float64) for own, dim in zip((*operands, shape), dims)
        ]
        got = torch.vmap(call, dims)(*tensors)
        one_by_one = [call(*(t if dim is None else t[i] for t, dim in zip(tensors, dims))) for i in range(size)]
        torch.testing.assert_close(got, torch.stack(one_by_one))


def addmm(a, b, c):
    return cuda_reference.matmul(a, b, c=c)


@both_packages
@on_devices
def test_batches_within_batches(package, device):
    pair = pair_of(package, "matmul, a row", device)
    tensors = pair.make(2, SIZE)
    got, wanted = (torch.vmap(torch.vmap(f), in_dims=1)(*tensors) for f in (pair.ours, pair.torchs))
    torch.testing.assert_close(got, wanted)


@both_packages
@every_sample
@on_devices
@emulated
def test_batches_of_nothing(package, name, device):
    """Results have the shape of others, and the gradient of an operand without the batch is zeros."""
    pair = pair_of(package, name, device)
    (first, *others), empty = pair.make(), pair.make(0)[0]
    others = [t.requires_grad_() for t in others]
    result = torch.vmap(pair.ours, (0, *[None] * len(others)))(empty, *others)
    assert result.shape == (0, *pair.ours(first, *others).shape) and result.dtype == first.dtype
    if others:
        assert not any(g.any() for g in torch.autograd.grad(result.sum(), others))


@both_packages
@on_devices
def test_a_batch_of_nothing_by_a_named_design(package, device):
    a, b, _ = pair_of(package, "gemm", device).make(0)
    assert torch.vmap(lambda a, b: package.gemm(a, b, design="matmul.pipelined"))(a, b).shape == (0, 4, 6)


@pytest.fixture
def said(monkeypatch):
    operator._say_once.cache_clear()
    lines = []
    own = types.SimpleNamespace(warning=lambda text, *values: lines.append(text % values))
    monkeypatch.setattr(operator, "log", own)  # not those of builds, which a first call may wait for
    return lines


@both_packages
@on_devices
def test_a_batch_that_no_design_has_is_a_loop_and_says_so_once(package, device, said):
    """A design that the caller names, and a C with a bias of each element."""
    pair = pair_of(package, "gemm", device)
    tensors = pair.make(SIZE)
    for _ in range(2):
        got = torch.vmap(lambda a, b, c: package.gemm(a, b, c, alpha=0.5, beta=2.0, design="matmul.pipelined"))(*tensors)
        torch.testing.assert_close(got, torch.stack([pair.torchs(*t) for t in zip(*tensors)]))
    assert len(said) == 1 and "gemm" in said[0]


@both_packages
@on_devices
def test_a_batch_is_one_call(package, device, monkeypatch, said):
    """As the operations have batches: of matmul, gemv, images, or groups of a convolution."""
    library, calls = LIBRARY if package.__name__ == "tritonkernels" else package.launch.LIBRARY, []
    monkeypatch.setattr(library.plans, "_plans", {})
    run = type(library).run
    monkeypatch.setattr(type(library), "run", lambda self, call, *args: calls.append(call.problem.op) or run(self, call, *args))
    for name in SAMPLES:
        if name == "matmul":  # a loop: it has a C and a bias
            continue
        pair = pair_of(package, name, device)
        calls.clear()
        torch.vmap(pair.ours)(*pair.make(SIZE))
        assert len(calls) == 1, (name, calls)
    assert not said
