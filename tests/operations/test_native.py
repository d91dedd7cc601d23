"""Repeated calls without Python give the same bits, and leave what is not for them to Python, with nothing done."""

import gc
import os
import shutil
import sys
import threading
import types
import weakref
from pathlib import Path

import pytest
import torch
from torch.autograd import forward_ad
from torch.func import vmap
from torch.utils._python_dispatch import TorchDispatchMode

import cuda_reference
from cuda_reference.launch import LIBRARY
from perf.measure import baselines
from tests import children
from tests.harness import thorough
from tests.operations.test_plans import APART, rows
from tests.torch_ops.samples import SAMPLES
from tritonkernels import native, plans
from tritonkernels.errors import BuildError, LaunchError, TritonKernelsError

ROOT = Path(__file__).parents[2]


class Counted:
    """A Repeats, and what each of its calls came to."""

    cleared = 0

    def __init__(self):
        self.repeats, self.outcomes = native.load().Repeats(), []

    def call(self, *values):
        result = self.repeats.call(*values)
        self.outcomes.append(result is not NotImplemented)
        return result

    def learn(self, *about):
        return self.repeats.learn(*about)


class Found(Exception):
    """The name of the module that is looked for."""


def test_the_module_s_name_follows_every_input(monkeypatch, tmp_path):
    def found(name, suffix):
        raise Found(name)

    monkeypatch.setattr(native.cache, "find", found)
    shutil.copytree(native.SOURCE.parent, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(native, "SOURCE", tmp_path / native.SOURCE.name)

    def name():
        with pytest.raises(Found) as looked_for:
            native.load.__wrapped__()
        return str(looked_for.value)

    names = [name()]
    assert name() == names[0]
    files = [path for path in tmp_path.iterdir() if path.suffix in (".h", ".cpp")]
    for path in files:
        path.write_text(path.read_text() + "\n")
        names.append(name())
    for where, what, value in (
        (native, "FLAGS", (*native.FLAGS, "-g")), (torch, "__version__", "9.9"), (sys, "version", "4.0"),
    ):  # fmt: skip
        monkeypatch.setattr(where, what, value)
        names.append(name())
    monkeypatch.setenv("CXX", "g++ -m64")
    names.append(name())
    assert len(files) > 5 and len(set(names)) == len(names) == len(files) + 5


def learn(repeats, values, makes, launches, result):
    """Without gradients."""
    return repeats.learn(values, makes, launches, result, None, None, None)


@pytest.fixture
def counted(monkeypatch):
    """Repeated calls of the CUDA library, on CPU tensors, without plans."""
    monkeypatch.setattr(LIBRARY.plans, "_plans", {})
    monkeypatch.setattr(LIBRARY, "native", Counted())
    return LIBRARY.native


def operands(name, device="cpu"):
    return [torch.randn(shape, device=device) for shape in SAMPLES[name].shapes]


@pytest.mark.parametrize("name", SAMPLES)
def test_the_same_bits(counted, name):
    """On new tensors each time, and in threads; the third call teaches, the next ones are native."""
    wrong = []

    def call():
        tensors = operands(name)
        result = SAMPLES[name].ours(cuda_reference, *tensors)
        kept, LIBRARY.native = LIBRARY.native, None
        try:
            whole = SAMPLES[name].ours(cuda_reference, *tensors)
        finally:
            LIBRARY.native = kept
        wrong.extend([] if torch.equal(result, whole) and result.stride() == whole.stride() else [tensors])

    for _ in range(5):
        call()
    assert counted.outcomes[-1] and not wrong
    many = (lambda: [SAMPLES[name].ours(cuda_reference, *operands(name)) for _ in range(20)] for _ in range(2))
    threads = [threading.Thread(target=target) for target in many]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(counted.outcomes[-40:]) and not wrong


def test_torch_s_switches_are_of_the_call(counted):
    """A repeated call with precision="torch" has the plan of what its switch says now."""
    a, b = torch.randn(8, 8), torch.randn(8, 8)
    named = {precision: cuda_reference.matmul(a, b, precision=precision) for precision in ("tf32", "ieee")}
    for precision in 4 * ("tf32", "ieee"):
        with baselines.precision(precision):
            assert torch.equal(cuda_reference.matmul(a, b, precision="torch"), named[precision])
    assert all(counted.outcomes[-2:]) and not torch.equal(*named.values())


def test_scales_are_operands_of_a_repeated_call(counted):
    """With other values each time; of another form they make a call of its own."""
    a, b = torch.randn(70, 300).to(torch.float8_e4m3fn), torch.randn(300, 37).to(torch.float8_e5m2)
    forms = {(70, 1): (1, 37), (1, 1): (1, 37), (): ()}
    for _ in range(5):
        for shapes in forms.items():
            scale_a, scale_b = (torch.rand(shape) for shape in shapes)
            result = cuda_reference.matmul(a, b, scale_a=scale_a, scale_b=scale_b, out_dtype=torch.float32)
            plain = cuda_reference.matmul(a, b, out_dtype=torch.float32)
            torch.testing.assert_close(result, plain * scale_a * scale_b)
    assert all(counted.outcomes[-2 * len(forms) :])


def gradients(name, tensors, needed, order=1):
    """The result, and its gradients of that order, of the tensors that need one."""
    leaves = [t.detach().clone().requires_grad_(need) for t, need in zip(tensors, needed)]
    wanted = [t for t in leaves if t.requires_grad]
    result = SAMPLES[name].ours(cuda_reference, *leaves)
    found, value = [result], result
    for i in range(order):
        grads = torch.autograd.grad(value.pow(2).sum(), wanted, create_graph=i + 1 < order)
        value = sum(g.pow(2).sum() for g in grads)
        found += grads
    return [t.detach() for t in found]


@pytest.mark.parametrize("order", (1, 2))
@pytest.mark.parametrize("name", SAMPLES)
def test_gradients_have_the_same_bits(counted, name, order):
    """For each tensor alone, and for all."""
    count = len(SAMPLES[name].shapes)
    masks = [tuple(i == j for j in range(count)) for i in range(count)] + [(True,) * count]
    for needed in masks:
        for _ in range(4):
            tensors = operands(name)
            native_s = gradients(name, tensors, needed, order)
            kept, LIBRARY.native = LIBRARY.native, None
            pythons = gradients(name, tensors, needed, order)
            LIBRARY.native = kept
            assert all(torch.equal(a, b) and a.stride() == b.stride() for a, b in zip(native_s, pythons, strict=True))
    assert any(counted.outcomes) or name == "matmul", "whose activation is torch's own, where a gradient is recorded"


def recorded(counted):
    """(a, b that require gradients, a native product of them)."""
    a, b = (torch.randn(8, 8).requires_grad_() for _ in range(2))
    for _ in range(4):
        product = cuda_reference.gemm(a, b)
    assert counted.outcomes[-1] and product.grad_fn is not None
    return a, b, product


def test_autograd_s_rules_hold(counted):
    a, b, product = recorded(counted)
    product.sum().backward()
    assert torch.allclose(a.grad, torch.ones(8, 8) @ b.detach().t()) and a.grad.shape == b.grad.shape
    with pytest.raises(RuntimeError, match="second time"):
        product.sum().backward()
    product = cuda_reference.gemm(a, b)
    with torch.no_grad():
        a.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()
    seen = []
    product = cuda_reference.gemm(a, b)
    product.register_hook(lambda grad: seen.append("tensor"))
    product.grad_fn.register_hook(lambda *_: seen.append("node"))
    product.sum().backward()
    assert sorted(seen) == ["node", "tensor"]
    with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append("saved") or t, lambda t: seen.append("loaded") or t):
        cuda_reference.gemm(a, b).sum().backward()
    assert seen.count("saved") == seen.count("loaded") == 2
    only = torch.autograd.grad(cuda_reference.gemm(a, b).sum(), a)
    assert len(only) == 1 and only[0].shape == (8, 8)
    assert counted.outcomes[-1]


def test_a_parameter_keeps_the_gradient_that_was_written(counted):
    """Without a copy: of its own strides, and held by nobody else."""
    x, weight, written = torch.randn(3, 8), torch.randn(6, 8).requires_grad_(), []
    weight.register_hook(lambda grad: written.append(grad.data_ptr()))
    for _ in range(4):
        weight.grad = None
        cuda_reference.gemm(x, weight.t()).sum().backward()
        assert weight.grad.data_ptr() == written.pop() and weight.grad.stride() == weight.stride()
    assert counted.outcomes[-1]


def test_only_what_a_gradient_needs_is_kept_and_freed_with_the_graph(counted):
    leaf, constant = recorded(counted)[0], torch.randn(8, 8)
    for _ in range(4):
        factor = 2 * leaf
        product = cuda_reference.gemm(factor, constant)
    kept, unneeded = weakref.ref(constant), weakref.ref(factor)
    del constant, factor
    gc.collect()
    assert counted.outcomes[-1] and kept() is not None and unneeded() is None
    product.sum().backward()
    del product
    gc.collect()
    assert kept() is None


def test_an_error_in_backward_is_raised(counted, monkeypatch):
    product = recorded(counted)[-1]
    monkeypatch.setattr(LIBRARY, "run", lambda *_: (_ for _ in ()).throw(LaunchError("on purpose")))
    monkeypatch.setattr(LIBRARY.plans, "_plans", {})
    LIBRARY.native.repeats = native.load().Repeats()
    with pytest.raises(LaunchError, match="on purpose"):
        product.sum().backward()


def taught(counted, *tensors):
    for _ in range(4):
        cuda_reference.gemm(*tensors)
    assert counted.outcomes[-1]
    counted.outcomes.clear()


def test_what_torch_watches_is_left_to_python(counted):
    a, b = torch.randn(8, 8), torch.randn(8, 8)
    taught(counted, a, b)

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    class Sub(torch.Tensor):
        pass

    exact, seen = cuda_reference.gemm(a, b), []
    assert counted.outcomes == [True]
    with Mode():
        assert torch.equal(cuda_reference.gemm(a, b), exact)
    assert seen[0] == "cuda_reference.gemm.default"
    with torch.autocast("cpu"):
        assert torch.equal(cuda_reference.gemm(a, b), exact)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(a, torch.ones_like(a))
        assert forward_ad.unpack_dual(cuda_reference.gemm(dual, b)).tangent is not None
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        cuda_reference.gemm(a, b)
    assert any("gemm" in event.key for event in profile.key_averages())
    assert torch.equal(vmap(lambda row: cuda_reference.gemm(row, b))(a[None])[0], exact)
    assert isinstance(cuda_reference.gemm(a.as_subclass(Sub), b), Sub)
    assert torch.equal(cuda_reference.gemm(a, b, out=torch.empty(8, 8)), exact)
    assert torch.equal(torch.jit.trace(cuda_reference.gemm, (a, b), check_trace=False)(a, b), exact)
    with torch.no_grad():
        assert torch.equal(cuda_reference.gemm(a.clone().requires_grad_(), b), exact)
    assert counted.outcomes[-1]


def test_other_calls_are_not_taken_for_the_known_one(counted):
    a, b = torch.randn(8, 8), torch.randn(8, 8)
    taught(counted, a, b)
    shifted = torch.randn(65)[1:].view(8, 8)
    for args, options in (
        ((a, b.t()), {}),
        ((shifted, b), {}),
        ((a[:4], b), {}),
        ((a._neg_view(), b), {}),
        ((a.double(), b.double()), {}),
        ((a, b), {"alpha": 2.0}),
        ((a, b), {"alpha": 1}),
        ((a, b), {"design": "tiled"}),
        ((a, b, torch.randn(8)), {}),
    ):
        kept, LIBRARY.native = LIBRARY.native, None
        whole = cuda_reference.gemm(*args, **options)
        LIBRARY.native = kept
        assert torch.equal(cuda_reference.gemm(*args, **options), whole)
    assert not any(counted.outcomes)
    for wrong in ((a, b[:4]), (a, b.half()), (a, [1])):
        with pytest.raises(TritonKernelsError):
            cuda_reference.gemm(*wrong)


@pytest.mark.parametrize("one, other", APART.values(), ids=APART)
def test_keys_differ_by_arguments(one, other):
    """As those of plans.py. What is unknown here is not learnt, and so repeated by plans.py."""
    tensor, calls = rows(), []
    repeats = native.load().Repeats()
    launches = ((lambda *values: calls.append(values), (0, 1), 0, None, True, False, ()),)
    if learn(repeats, (tensor, one), (torch.empty_like(tensor),), launches, 3 if isinstance(one, torch.Tensor) else 1):
        assert repeats.call(tensor, other) is NotImplemented and not calls
        if not isinstance(one, torch.Tensor):
            assert repeats.call(tensor, one).shape == tensor.shape and calls == [(0, 1)]


class Seen(TorchDispatchMode):
    """The overload that a call comes to, and its arguments."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "cuda_reference":
            self.call = func, args, kwargs or {}
        return func(*args, **(kwargs or {}))


@pytest.fixture
def short(counted, monkeypatch):
    """The operators of the CUDA library, whose overloads ask native code first; how often torch's dispatcher was called."""
    LIBRARY.native, through_torch = native.load().Repeats(), []

    def counting(op):
        return lambda *args, **kwargs: through_torch.append(op) or op(*args, **kwargs)

    for operator in LIBRARY.operators.values():
        overload = operator.overloads.default
        monkeypatch.setattr(overload, "_op", overload._op)
        monkeypatch.setattr(operator, "_through_torch", counting(operator._through_torch))
        operator.shorten()
    return through_torch


def test_the_background_gives_way(monkeypatch):
    seen = []

    def load():
        seen.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        raise BuildError("no compiler")

    monkeypatch.setattr(native, "load", load)
    monkeypatch.setattr(native, "_waiting", [])
    native.serve(types.SimpleNamespace(native=None))
    for thread in threading.enumerate():
        if thread.name == "tritonkernels native":
            thread.join()
    assert seen == [19] and os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) < 19


@pytest.mark.parametrize("device", ("cpu", pytest.param("cuda", marks=pytest.mark.gpu)))
@pytest.mark.parametrize("gradients_too", (False, True))
@pytest.mark.parametrize("name", SAMPLES)
def test_overloads_are_repeated(short, name, gradients_too, device):
    """The same bits as by torch's dispatcher, which the first calls and those that are watched go through."""
    tensors = operands(name, device)
    with Seen() as seen:
        SAMPLES[name].ours(cuda_reference, *tensors)
    overload, args, options = seen.call
    outer = gradients_too and name == "matmul"  # its activation is torch's own then

    def results(op):
        new = [torch.randn_like(a).requires_grad_(gradients_too) if isinstance(a, torch.Tensor) else a for a in args]
        wanted = [a for a in new if isinstance(a, torch.Tensor)]
        made = op(*new, **options), LIBRARY.operators[overload._opname]._through_torch(*new, **options)
        return [[r.detach(), *(torch.autograd.grad(r.pow(2).sum(), wanted) if gradients_too else ())] for r in made]

    for _ in range(6):
        short.clear()
        for pair in zip(*results(overload), strict=True):
            assert torch.equal(*pair) and pair[0].stride() == pair[1].stride()
    assert len(short) == 1 + outer, "the one to compare with"
    short.clear()
    with Seen():
        overload(*args, **options)
    assert short


def test_an_overload_s_error_is_torchs(short):
    a, gemm = torch.randn(4, 4), torch.ops.cuda_reference.gemm.default
    for _ in range(5):
        product = gemm(a, a)
    short.clear()
    assert torch.equal(gemm(a, a), product) and torch.equal(gemm(a=a, b=a), product) and not short
    assert torch.equal(gemm(b=a, a=a), product) and len(short) == 1, "in another order than the function's"
    b = torch.randn(4, 4)
    for _ in range(5):
        named, doubled = gemm(a=a, b=b), gemm(a, a, alpha=2.0)
    assert torch.equal(doubled, 2 * product) and torch.equal(gemm(a, a, alpha=4.0), 4 * product)
    assert torch.equal(gemm(b=b, a=a), named) and torch.equal(gemm(b=a, a=b), gemm(b, a))
    wrong = [((a,), {}), ((a, "b"), {}), ((a, torch.randn(3, 4)), {}), ((a, a, a, 2.0), {})]  # alpha has to be named
    for args, options in [*wrong, ((a, a), {"gamma": 1}), ((a, a), {"a": a})]:
        for _ in range(10):
            with pytest.raises((RuntimeError, TritonKernelsError)):
                gemm(*args, **options)
    with pytest.raises(TypeError, match="3 arguments"):
        LIBRARY.native.dispatched(1)


def test_what_is_launched():
    """Addresses of arguments and of new tensors, alone, in structs, and through a function; fresh tensors from a function."""
    a, calls, fresh = torch.zeros(4, 4), [], []
    repeats = native.load().Repeats()

    def make():
        fresh.append(torch.empty(3))
        return fresh[-1]

    places = ((1, 0, 8, None, None), (2, 1, 0, (7, "x"), None), (4, 2, 4, None, lambda address: ("built", address)))
    launches = ((lambda *values: calls.append(values), (0, 0, 0, "constant", 0), 0, None, True, False, places),) * 2
    assert learn(repeats, ("op", a), (torch.empty(2, 5).t(), make), launches, 1)
    result = repeats.call("op", a)
    assert (result.shape, result.stride(), result.dtype) == ((5, 2), (1, 5), torch.float32) and len(calls) == 2
    expected = (0, a.data_ptr() + 8, (result.data_ptr(), 7, "x"), "constant", ("built", fresh[0].data_ptr() + 4))
    assert calls == [expected, expected]
    assert not learn(repeats, ("op", a), (), launches, 0), "the result is an argument"
    assert not learn(repeats, ("op", object(), a), (torch.empty(1),), launches, 1)
    with pytest.raises(TypeError):
        learn(repeats, ("op", a), (torch.empty(1),), (("too short",),), 1)


def test_an_error_of_a_launch_is_raised():
    a, repeats = torch.zeros(4), native.load().Repeats()

    def fail(*_):
        raise LaunchError("on purpose")

    learn(repeats, (a,), (torch.empty(1),), ((fail, (0,), 0, None, True, False, ()),), 1)
    for _ in range(3):
        with pytest.raises(LaunchError, match="on purpose"):
            repeats.call(a)


def test_nothing_leaks():
    a, value = torch.zeros(4), (12345.5,)
    repeats = native.load().Repeats()
    launch = (lambda *values: None, (0, 0, value), 0, value, True, False, ((1, 0, 0, value, None),))
    learn(repeats, (a, value), (torch.empty(2),), (launch,), 1)
    repeats.call(a, value)
    gc.collect()
    before = sys.getrefcount(a), sys.getrefcount(value), sys.getrefcount(launch[0])
    for _ in range(1000):
        repeats.call(a, value)
    assert (sys.getrefcount(a), sys.getrefcount(value), sys.getrefcount(launch[0])) == before
    held = sys.getrefcount(value)
    learn(
        repeats, (a, value), (torch.empty(2),), ((launch[0], (0, 0, 1), 0, None, True, False, ()),), 1
    )  # in place of the one before
    assert sys.getrefcount(value) < held


def test_plans_are_bounded():
    repeats, a = native.load().Repeats(), torch.zeros(1)
    for number in range(plans.ROOM + 1):
        learn(repeats, (number, a), (torch.empty(1),), (), 1)
    assert repeats.call(0, a) is NotImplemented and repeats.call(plans.ROOM, a) is not NotImplemented


def test_triton_s_launches_are_repeated():
    """On a fake GPU, as in test_plans."""
    run = children.run("-m", "tests.operations.fake_gpu", "native")
    assert run.returncode == 0 and '"wrong": []' in run.stdout, run.stdout + run.stderr


BACKGROUND = """
import threading, torch, cuda_reference
from cuda_reference.launch import LIBRARY
a, b = torch.randn(8, 8), torch.randn(8, 8)
results = [cuda_reference.gemm(a, b) for _ in range(3)]
for builder in threading.enumerate():
    if builder.name == "tritonkernels native": builder.join(200)
results += [cuda_reference.gemm(a, b) for _ in range(3)]
print(LIBRARY.native is not None, all(torch.equal(result, results[0]) for result in results))
"""


@pytest.mark.parametrize(
    "setting, source, printed", [("1", None, "True"), pytest.param("", None, "False", marks=thorough), ("1", "no C++", "False")]
)
def test_it_is_built_in_the_background(tmp_path, setting, source, printed):
    """Calls go on meanwhile; where it cannot be built a line says why."""
    program = BACKGROUND
    if source:
        (tmp_path / "repeat.cpp").write_text(source)
        elsewhere = f"native.SOURCE = pathlib.Path({str(tmp_path)!r}, 'repeat.cpp')"
        program = f"import pathlib\nfrom tritonkernels import native\n{elsewhere}\n{program}"
    run = children.run("-c", program, env=os.environ | {"TRITONKERNELS_NATIVE": setting})
    assert run.stdout.split() == [printed, "True"], run.stdout + run.stderr
    assert ("stay in Python" in run.stderr) == bool(source)
