"""Gradients of repeated calls without Python: the bits, strides and types of the first ones, which Python's rules gave."""

import sys
from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import cuda_reference
from cuda_reference.launch import LIBRARY
from tritonkernels import native
from tritonkernels.errors import LaunchError

ROOT = Path(__file__).parents[2]
PACKAGES = {ROOT / "tritonkernels", ROOT / "cuda_reference"}
LAUNCHING = {ROOT / "cuda_reference" / name for name in ("launch.py", "build.py")}  # on a CPU launches are Python's
ENOUGH = 6  # calls until forward, and the calls of backward, have plans, and backward has a recipe


@pytest.fixture
def repeats(monkeypatch):
    """Repeated calls of the CUDA library, on CPU tensors, without plans; its overloads ask it first."""
    monkeypatch.setattr(LIBRARY.plans, "_plans", {})
    monkeypatch.setattr(LIBRARY, "native", native.load().Repeats())
    for operator in LIBRARY.operators.values():
        monkeypatch.setattr(operator.overloads.default, "_op", operator.overloads.default._op)
        operator.shorten()
    return LIBRARY.native


CALLS = {  # (function, shapes[, dtype])
    "gemm": (lambda a, b, c: cuda_reference.gemm(a, b, c, alpha=0.5), ((4, 5), (5, 6), (6,))),
    "a weight by rows": (lambda x, w, bias: cuda_reference.matmul(x, w.t(), bias=bias), ((4, 5), (6, 5), (6,))),
    "bf16": (lambda x, w, bias: cuda_reference.matmul(x, w.t(), bias=bias), ((4, 5), (6, 5), (6,)), torch.bfloat16),
    "a weight and a batch": (
        lambda x, w, bias: cuda_reference.matmul(x.flatten(0, 1), w.t(), bias=bias),
        ((2, 3, 5), (6, 5), (6,)),
    ),
    "a batch": (lambda a, b: cuda_reference.matmul(a, b), ((2, 1, 4, 5), (3, 5, 6))),
    "gemv": (lambda a, x, y: cuda_reference.gemv(a, x, y), ((4, 5), (5,), (4,))),
    "conv2d": (lambda x, w, bias: cuda_reference.conv2d(x, w, bias, padding=1), ((2, 3, 5, 5), (4, 3, 3, 3), (4,))),
}


def frames(function):
    """(what it returns, this project's Python functions that ran meanwhile, but those of launches)."""
    ran = []

    def see(frame, event, _):
        path = Path(frame.f_code.co_filename)
        is_switch = frame.f_code is LIBRARY.switches.__code__
        if event == "call" and PACKAGES & {*path.parents} and path not in LAUNCHING and not is_switch:
            ran.append(f"{path.name}:{frame.f_code.co_name}")

    with torch.autograd.set_multithreading_enabled(False):
        sys.setprofile(see)
        try:
            return function(), ran
        finally:
            sys.setprofile(None)


def leaves(shapes, dtype=torch.float32):
    return [torch.randn(shape, dtype=dtype).requires_grad_() for shape in shapes]


def gradient_of(function, given, grad, wanted=None):
    """A function that computes the gradients of what function(*given) is."""
    result = function(*given)
    return lambda: torch.autograd.grad(result, wanted or given, grad)


def by_python(*about):
    """The gradients without native code."""
    kept, LIBRARY.native = LIBRARY.native, None
    try:
        return gradient_of(*about)()
    finally:
        LIBRARY.native = kept


def are_same(found, exact):
    return all(torch.equal(a, b) and (a.stride(), a.dtype) == (b.stride(), b.dtype) for a, b in zip(found, exact, strict=True))


def repeated(function, given, grad, wanted=None):
    """Gradients that run no Python."""
    for _ in range(ENOUGH):
        assert are_same(gradient_of(function, given, grad, wanted)(), by_python(function, given, grad, wanted))
    found, ran = frames(gradient_of(function, given, grad, wanted))
    assert not ran and are_same(found, by_python(function, given, grad, wanted))
    return found


@pytest.mark.parametrize("name", CALLS)
def test_repeated_gradients_run_no_python(repeats, name):
    """With other tensors, too; the first ones do."""
    function, shapes, *dtype = CALLS[name]
    given = leaves(shapes, *dtype)
    repeated(function, given, torch.randn_like(function(*given)))
    given = leaves(shapes, *dtype)
    grad = torch.randn_like(function(*given))
    found, ran = frames(gradient_of(function, given, grad))
    assert not ran and are_same(found, by_python(function, given, grad))
    LIBRARY.forget_plans()
    assert frames(gradient_of(function, given, grad))[1]


def test_other_gradients_are_not_taken_for_the_known_ones(repeats):
    """Gradients of other operands, of a result's with other strides, of tensors that hooks gave back in another layout."""
    function, shapes = CALLS["a weight by rows"]
    given = leaves(shapes)
    grads = [torch.randn(4, 6), torch.randn(6, 4).t(), torch.randn(1, 6).expand(4, 6), torch.randn(25)[1:].view(4, 6)]
    hooks = torch.autograd.graph.saved_tensors_hooks
    for wanted in (given, given[:1], given[1:], given[2:]):
        for grad in grads:
            found = repeated(function, given, grad, wanted)
            with hooks(lambda tensor: tensor, lambda tensor: tensor.detach().t().contiguous().t()):
                other = gradient_of(function, given, grad, wanted)
            for one, exact in zip(other(), found, strict=True):
                assert torch.allclose(one, exact, atol=1e-5) and one.stride() == exact.stride()


def test_an_operand_that_is_given_twice_is_not_taken_for_one(repeats):
    a, b = leaves(((8, 8), (8, 8)))
    grad = torch.randn(8, 8)

    def square(x):
        return cuda_reference.gemm(x, x)

    for _ in range(ENOUGH):
        assert are_same(gradient_of(square, [a], grad)(), by_python(square, [a], grad))
    repeated(cuda_reference.gemm, [a, b], grad)


def taught():
    """(operands, gradient) of a product whose gradients run no Python."""
    given, grad = leaves(((8, 8), (8, 8))), torch.randn(8, 8)
    repeated(cuda_reference.gemm, given, grad)
    return given, grad


def test_gradients_of_gradients(repeats):
    given, grad = taught()
    grad.requires_grad_()
    found = []
    for product in (cuda_reference.gemm, torch.mm):
        first = torch.autograd.grad(product(*given), given, grad, create_graph=True)
        found.append(torch.autograd.grad(sum(one.pow(2).sum() for one in first), (*given, grad)))
    torch.testing.assert_close(*found)


def test_what_torch_watches_is_left_to_python(repeats):
    given, grad = taught()
    exact, seen = gradient_of(cuda_reference.gemm, given, grad)(), []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    backward = gradient_of(cuda_reference.gemm, given, grad)
    with Mode():
        assert are_same(backward(), exact)
    assert seen.count("cuda_reference.gemm.default") == 2
    backward = gradient_of(cuda_reference.gemm, given, grad)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        assert are_same(backward(), exact)
    assert sum("gemm" in event.key for event in profile.key_averages())
    with pytest.warns(UserWarning, match="Anomaly"), torch.autograd.detect_anomaly():
        assert are_same(gradient_of(cuda_reference.gemm, given, grad)(), exact)
    batch = torch.stack((grad, 2 * grad))
    batched = torch.autograd.grad(cuda_reference.gemm(*given), given, batch, is_grads_batched=True)
    torch.testing.assert_close([one[0] for one in batched], list(exact))


def test_switches_of_launches_are_those_of_backward(repeats, monkeypatch):
    on = [False]
    monkeypatch.setattr(LIBRARY, "switches", lambda: on[0])
    given, grad = taught()
    backward = gradient_of(cuda_reference.gemm, given, grad)
    on[0] = True
    found, ran = frames(backward)
    assert ran and are_same(found, by_python(cuda_reference.gemm, given, grad))


def test_forgotten_plans_are_not_followed(repeats):
    """Neither those of backward's calls nor that of forward, by a graph that outlives them."""
    given, grad = taught()
    backward = gradient_of(cuda_reference.gemm, given, grad)
    exact = gradient_of(cuda_reference.gemm, given, grad)()
    LIBRARY.forget_plans()
    found, ran = frames(backward)
    assert ran and are_same(found, exact)
    taught()


def test_an_error_of_a_launch_is_raised():
    """As Python's error, after which the next call is as good as ever."""
    repeats, x, fails, asked = native.load().Repeats(), torch.zeros(4, requires_grad=True), [], []

    def launch(*_):
        if fails:
            raise LaunchError("on purpose")

    def backward(grad, kept, wanted):
        asked.append(wanted)
        return (repeats.call("backward", grad),)

    launches = ((launch, (0,), 0, None, True, False, ()),)
    repeats.learn(("forward", x), (torch.empty(4),), (), 1, backward, lambda needed: (False,), lambda: None)
    repeats.learn(("backward", x), (torch.empty(4),), launches, 1, None, None, None)
    for fail in (False, True, False, True):
        fails[:] = [fail] * fail
        result = repeats.call("forward", x)
        if fail:
            with pytest.raises(LaunchError, match="on purpose"):
                result.backward(torch.ones(4))
        else:
            result.backward(torch.ones(4))
    assert asked == [(True,)]
