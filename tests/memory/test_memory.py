"""No design reads or writes outside its tensors: every operand and result lies next to an unreadable page, and inputs are
read-only. A fault kills the child process, and its last line names the call.

Those of Triton are for `make test-all`: the interpreter refuses accesses outside of the tensors in every test
(test_interpreter.py), and run_checked compares the inputs.
"""

import ctypes
import signal

import pytest
import torch

from tests import children
from tests.harness import LIBRARIES, prepare, random, runnable_designs, short, twins
from tests.memory.guarded import end_of, guarded
from tritonkernels import OPS, backend


def faults(which, package, designs):
    """{design: the call that died, and how} of the designs that did not finish."""
    found, left = {}, list(designs)
    while left:
        run = children.run("-m", "tests.memory.child", which, package, *left)
        lines = run.stdout.splitlines()
        left = [design for design in left if f"DONE {design}" not in lines]
        if run.returncode == 0:
            break
        last = [line for line in lines if line.startswith("RUN")]
        dead = left.pop(0)
        found[dead] = f"exit status {run.returncode} at {last[-1] if last else 'start'} {run.stderr[-500:]}"
    return found


@short(lambda library: library.package == "cuda_reference")
@pytest.mark.skipif(backend.device_type() != "cpu", reason="guards CPU memory")
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_no_access_outside_the_tensors(library, op, everything):
    runnable = [p for kind in ("lesson", "contender") for p in runnable_designs(op, kind=kind)]
    names = [name for served, _, name in (p.values for p in runnable) if served is library]
    designs = [f"{op}/{name}" for name in names if everything or name not in twins(library, op)]
    assert designs and faults("every" if everything else "some", library.package, designs) == {}


@pytest.mark.parametrize("side, index", [("start", -1), ("end", 1)])
@pytest.mark.parametrize("write", [False, True], ids=["read", "write"])
def test_the_guard_catches_one_element_too_many(side, index, write):
    t = guarded(torch.arange(5.0), side, read_only=False)
    inside, outside = (t.data_ptr() + 4 * element for element in ((0, -1) if index < 0 else (4, 5)))

    def access(address):
        ctypes.memset(address, 0, 1) if write else ctypes.string_at(address, 1)

    assert end_of(lambda: access(inside)) == 0
    assert end_of(lambda: access(outside)) == -signal.SIGSEGV


def test_read_only_means_read_only():
    t = guarded(torch.ones(3), "end", read_only=True)
    assert end_of(t.sum) == 0
    assert end_of(t.zero_) == -signal.SIGSEGV


@pytest.mark.skipif(backend.device_type() != "cpu", reason="guards CPU memory")
@pytest.mark.parametrize("side", ["start", "end"])
@pytest.mark.parametrize("n", [3, 5])
def test_words_of_lines_shorter_than_a_tile(n, side):
    """The tile has 64 columns, its last slice one line: what the lines before it lack is past the end of the matrix."""
    cuda = next(library for library in LIBRARIES if library.package == "cuda_reference")
    a, b = (guarded(random(*shape, dtype=torch.float16), side, read_only=True) for shape in ((64, 193), (193, n)))
    call = prepare("matmul", a, b)
    assert end_of(lambda: cuda.run(call, "pipelined", {"BM": 64, "BN": 64, "SLICE": 64})) == 0


@pytest.mark.skipif(backend.device_type() != "cpu", reason="guards CPU memory")
@pytest.mark.parametrize("side", ["start", "end"])
@pytest.mark.parametrize("m, k", [(3, 33), (129, 33)])
def test_parts_of_lines_that_end_in_the_first(m, k, side):
    """A thread copies two places of each line of a thin tile, float by float."""
    cuda = next(library for library in LIBRARIES if library.package == "cuda_reference")
    a, b = (guarded(random(*shape), side, read_only=True) for shape in ((k, m), (k, 5)))
    call = prepare("matmul", a.t(), b)
    assert end_of(lambda: cuda.run(call, "cuda_cores", {"BM": 128, "BN": 8, "SPLIT_K": 1})) == 0


def test_guarded_tensors_keep_values_and_strides():
    t = torch.randn(4, 6)[:, ::2]
    copy = guarded(t, "end", read_only=True)
    assert torch.equal(copy, t) and copy.stride() == t.stride()
