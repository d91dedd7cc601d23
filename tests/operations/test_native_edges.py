"""What goes wrong around repeated calls without Python: other threads, errors, memory, the end of Python, builds."""

import functools
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

import cuda_reference
from cuda_reference.launch import LIBRARY
from tritonkernels import native, plans
from tritonkernels.errors import BuildError, DtypeError
from tritonkernels.plans import Plan

ROOT = Path(__file__).parents[2]


@pytest.fixture
def repeats(monkeypatch):
    """Repeated calls of the CUDA library, on CPU tensors, without plans; its overloads ask it first."""
    monkeypatch.setattr(LIBRARY.plans, "_plans", {})
    monkeypatch.setattr(LIBRARY, "native", native.load().Repeats())
    for operator in LIBRARY.operators.values():
        monkeypatch.setattr(operator.overloads.default, "_op", operator.overloads.default._op)
        operator.shorten()
    return LIBRARY.native


def square(requires_grad=True):
    return torch.randn(8, 8, requires_grad=requires_grad)


def is_native(repeats, a, b):
    return repeats.call("gemm", LIBRARY.switches(), None, None, a, b, None, 1.0, None, None) is not NotImplemented


def product_of(a, b):
    """The fourth, which is native."""
    return [cuda_reference.gemm(a, b) for _ in range(4)][-1]


def learn(repeats, values, makes, launches=()):
    """Without gradients."""
    return repeats.learn(values, makes, launches, 1, None, None, None)


def test_a_list_that_contains_itself_is_refused_as_any_other(repeats):
    endless = []
    endless.append(endless)
    with pytest.raises(DtypeError):
        cuda_reference.gemm(endless, square())


def test_an_overload_below_autograd_records_nothing(repeats):
    """As torch's operators in the kernel of another operator."""
    a, b = square(), square()
    assert product_of(a, b).requires_grad and is_native(repeats, a, b)
    overload = torch.ops.cuda_reference.gemm.default
    for _ in range(3):
        overload(a, b)
    with torch._C._AutoDispatchBelowAutograd():
        assert not torch.mm(a, b).requires_grad and not overload(a, b).requires_grad
    assert overload(a, b).requires_grad


class WithoutGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return None


def test_no_gradient_of_the_result_is_none_of_the_operands(repeats):
    """As torch.mm's, by whichever way it was recorded."""
    a, b = square(), square()
    products = [torch.mm(a, b), cuda_reference.gemm(a, b), product_of(a, b)]
    assert [p.grad_fn.name() for p in products] == ["MmBackward0", "RecordedBackward", "RecordedBackward"]
    for product in products:
        WithoutGradient.apply(product).sum().backward()
        assert a.grad is None and b.grad is None


def test_another_thread_does_not_free_what_a_backward_unpacks(repeats):
    """As torch's own nodes. The hook of the first operand waits for a thread that goes through the same graph."""
    a, b = square(), square()
    product_of(a, b)
    other, first = threading.Thread(target=lambda: product.backward(torch.ones(8, 8))), []

    def unpack(tensor):
        if not first:
            first.append(tensor)
            other.start()
            other.join(0.5)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        product = cuda_reference.gemm(a, b)
    product.backward(torch.ones(8, 8))
    other.join()


OUTLIVING = """
import ctypes, pathlib, torch, cuda_reference
from cuda_reference.launch import LIBRARY
from tritonkernels import native
LIBRARY.native = native.load().Repeats()
a, b = (torch.randn(8, 8, requires_grad=True) for _ in range(2))
for _ in range(4):
    product = cuda_reference.gemm(a, b)
address = ctypes.pythonapi.PyCapsule_GetPointer
address.restype, address.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
(capsule,) = torch._C._aoti.unsafe_alloc_void_ptrs_from_tensors([product])
handle, kept = ctypes.c_void_p(address(capsule, None)), ctypes.c_void_p()
torch_cpu = ctypes.CDLL(pathlib.Path(torch.__file__).parent / "lib/libtorch_cpu.so")
assert not torch_cpu.aoti_torch_clone(handle, ctypes.byref(kept))
delete = torch_cpu.aoti_torch_delete_tensor_object
delete(handle)
at_exit = ctypes.CDLL(None).__cxa_atexit
at_exit.argtypes = (ctypes.c_void_p,) * 3
assert not at_exit(ctypes.cast(delete, ctypes.c_void_p), kept, None)
"""


def test_a_graph_may_outlive_python():
    run = subprocess.run([sys.executable, "-c", OUTLIVING], cwd=ROOT, capture_output=True, text=True, timeout=290)
    assert run.returncode == 0, run.stdout + run.stderr


def test_forgotten_plans_are_learnt_anew(repeats):
    """Calls that a table decided, and all when there are too many: then Python still has its plan."""
    a, b = square(), square()
    assert product_of(a, b) is not None and is_native(repeats, a, b)
    LIBRARY.forget_plans()
    assert not is_native(repeats, a, b)
    assert product_of(a, b) is not None and is_native(repeats, a, b)
    for number in range(plans.ROOM):
        learn(repeats, (number, a), (torch.empty(1),))
    assert not is_native(repeats, a, b)
    cuda_reference.gemm(a, b)
    assert is_native(repeats, a, b)


def test_what_a_forgotten_plan_held_may_call_when_it_goes(repeats):
    a = square(False)

    class Held:
        def __del__(self):
            learn(repeats, ("last", a), (torch.empty(1),))

    learn(repeats, ("first", a), (torch.empty(1),), ((print, (0,), 0, Held(), True, False, ()),))
    repeats.clear()
    assert repeats.call("first", a) is NotImplemented and repeats.call("last", a) is not NotImplemented


def test_learning_takes_no_memory(repeats):
    make = functools.partial(torch.empty_strided, (2**60,), (1,), dtype=torch.float32, device=torch.device("cpu"))
    a = square(False)
    assert native.teach(repeats, ("op", a), Plan(a.device, (make,), (), 1, None))
    with pytest.raises(RuntimeError, match="memory"):
        repeats.call("op", a)


def test_other_threads_run_while_memory_is_allocated(repeats):
    """As with torch's own functions. Nothing else lets them here; torch takes its time to fill what it allocates."""
    a, done, ticks, before = square(False), threading.Event(), [0], []

    def tick():
        while not done.is_set():
            ticks[0] += 1
            time.sleep(0)

    def fresh():
        before.append(ticks[0])
        return torch.empty(1)

    learn(
        repeats, ("op", a), (fresh, torch.empty(2**25)), ((lambda *_: before.append(ticks[0]), (0,), 0, None, True, False, ()),)
    )
    interval, thread = sys.getswitchinterval(), threading.Thread(target=tick)
    sys.setswitchinterval(1000)
    torch.use_deterministic_algorithms(True)
    thread.start()
    try:
        repeats.call("op", a)
    finally:
        done.set()
        sys.setswitchinterval(interval)
        torch.use_deterministic_algorithms(False)
        thread.join()
    assert before[1] > before[0]


def test_an_interrupt_is_not_lost():
    """In Python that looks for an overload's plan; errors there are left to the overload."""
    repeats, a = native.load().Repeats(), square(False)

    def interrupted(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        repeats.dispatched(lambda *_: None, lambda: None, interrupted)(a)
    assert repeats.dispatched(lambda *_: "torch's", lambda: None, lambda *_: 1 / 0)(a) == "torch's"


@pytest.fixture
def source(tmp_path, monkeypatch):
    """The module's source, to be written, and an empty cache."""
    monkeypatch.setenv("TRITONKERNELS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(native, "SOURCE", tmp_path / "repeat.cpp")
    return native.SOURCE


def test_a_module_that_does_not_load_is_an_error_of_the_build(source):
    source.write_text('extern "C" void* nowhere(); extern "C" void* PyInit_repeat() { return nowhere(); }')
    with pytest.raises(BuildError, match=r"does not load.*nowhere"):
        native.load.__wrapped__()


def test_one_of_several_processes_builds(source, monkeypatch):
    source.write_text(
        "#include <Python.h>\n"
        'static PyModuleDef module = {PyModuleDef_HEAD_INIT, "repeat"};\n'
        "PyMODINIT_FUNC PyInit_repeat() { return PyModule_Create(&module); }"
    )
    compiled, compile_it, modules = [], native._compile, []
    monkeypatch.setattr(native, "_compile", lambda command: compiled.append(command) or compile_it(command))
    several = [threading.Thread(target=lambda: modules.append(native.load.__wrapped__())) for _ in range(3)]
    for thread in several:
        thread.start()
    for thread in several:
        thread.join()
    assert len(modules) == 3 and len(compiled) == 1
