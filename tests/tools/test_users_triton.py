"""Without a GPU our kernels are interpreted and the user's own Triton is as he left it: his environment, knobs and kernels."""

import os

import pytest

from tests import children
from tests.harness import thorough

# Of a user's program: a kernel, and some ways of using it.
THEIRS = """
import os, subprocess, sys, threading
import numpy, torch, triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

def decorated():
    @triton.jit
    def total(x_ptr, out_ptr, by, SIZE: tl.constexpr):
        x = tl.load(x_ptr + tl.arange(0, SIZE))
        tl.store(out_ptr, tl.sum(x, axis=0) + tl.cdiv(x_ptr.dtype.element_ty.primitive_bitwidth, 32) - 1)
        tl.store(out_ptr + 1, 8 // by)
    return total

def kinds(*kernels):
    return [type(kernel).__name__ for kernel in (*kernels, tl.sum, tl.zeros, triton.language.standard.cdiv)]

def compiled(kernel):
    source = ASTSource(kernel, {"x_ptr": "*i32", "out_ptr": "*i32", "by": "i32", "SIZE": "constexpr"}, {"SIZE": 8})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ttir"]

def interpreted(kernel):
    "Of eight numbers, of which the last four are behind the tensor, with a division by zero."
    out = torch.zeros(2, dtype=torch.int32)
    numbers = numpy.arange(8, dtype=numpy.int32)
    with numpy.errstate(all="ignore"):
        kernel[(1,)](torch.from_numpy(numbers[:4]), out, 0, 8)
        kernel[(0,)](out, out, 1, 8)
    return out[0].item()

def ours():
    a = torch.randn(40, 70)
    torch.testing.assert_close(tritonkernels.gemm(a, a.t()), a @ a.t())
    torch.testing.assert_close(tritonkernels.gemv(a, a[0]), a @ a[0])

def while_ours_runs(act):
    "What `act` returns in another thread, called once, while a kernel of ours runs."
    from tritonkernels.launch import TritonLaunch
    results, run = [], TritonLaunch.run

    def run_and_act(launch):
        grid = launch.grid
        def grid_after_act(arguments):
            if not results:
                thread = threading.Thread(target=lambda: results.append(act()))
                thread.start()
                thread.join()
            return grid
        launch.grid = grid_after_act
        return run(launch)

    TritonLaunch.run = run_and_act
    ours()
    TritonLaunch.run = run
    return results[0]
"""


def user(tmp_path, code, **environment):
    """What a program prints that begins with THEIRS; as a file, because Triton reads a kernel's source."""
    program = tmp_path / "program.py"
    program.write_text(f"{THEIRS}\n{code}")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TRITON", "PYTEST"))}
    env |= {"TRITONKERNELS_BACKEND": "interpreter", "TRITON_CACHE_DIR": str(tmp_path)}
    run = children.run(program, env=env | environment)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


@pytest.mark.parametrize("setting", [{}, pytest.param({"TRITON_INTERPRET": "1"}, marks=thorough)])
def test_the_environment_and_the_knobs_stay(tmp_path, setting):
    code = """
import tritonkernels
def state():
    child = subprocess.run(["env"], capture_output=True, text=True).stdout
    knobs = [vars(knob) for knob in vars(triton.knobs).values() if isinstance(knob, triton.knobs.base_knobs)]
    return sorted(os.environ.items()), sorted(child.splitlines()), triton.knobs.runtime.interpret, repr(knobs)
before = state()
ours()
print(state() == before, os.environ.get("TRITON_INTERPRET"))
"""
    assert user(tmp_path, code, **setting) == [f"True {setting.get('TRITON_INTERPRET')}"]


def test_kernels_of_the_user_are_compiled(tmp_path):
    """Decorated and compiled before, after and while ours run."""
    code = """
import tritonkernels
before = decorated()
first = kinds(before)
ours()
after = decorated()
print(*first, *kinds(before, after))
print(*while_ours_runs(lambda: kinds(decorated())))
print("tt.reduce" in compiled(before), "tt.reduce" in while_ours_runs(lambda: compiled(after)))
"""
    kinds = [" ".join(["JITFunction"] * count) for count in (9, 4)]
    assert user(tmp_path, code) == [*kinds, "True True"]


def test_kernels_that_the_user_interprets_obey_tritons_rules(tmp_path):
    """Not our stricter ones, before, after and while ours run: the numbers behind the tensor are read, 8 // 0 is no error."""
    code = """
import tritonkernels
before = decorated()
first = interpreted(before)
ours()
print(type(before).__name__, first, interpreted(before), interpreted(decorated()), while_ours_runs(lambda: interpreted(before)))
"""
    assert user(tmp_path, code, TRITON_INTERPRET="1") == ["InterpretedFunction 28 28 28 28"]
