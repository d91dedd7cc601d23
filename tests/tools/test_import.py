"""What an import loads, and what the first call does."""

import subprocess
import sys

import pytest


def python(code, **environment):
    import os

    env = {k: v for k, v in os.environ.items() if not k.startswith(("TRITON", "PYTEST"))} | environment
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert run.returncode == 0, run.stderr
    return run.stdout, run.stderr


def test_importing_touches_neither_triton_nor_a_compiler():
    code = """
import sys, torch
before = set(sys.modules)
import tritonkernels
import cuda_reference
new = {name for name in set(sys.modules) - before if name.split('.')[0] not in sys.stdlib_module_names}
print(sorted(name for name in new if name.split('.')[0] not in ('tritonkernels', 'cuda_reference')))
print(torch.cuda.is_initialized())
"""
    others, initialised = python(code)[0].splitlines()
    assert (others, initialised) == ("[]", "False"), "importing loads torch and no other package"


def test_the_interpreter_is_announced_once():
    code = """
import torch, tritonkernels
for _ in range(2):
    tritonkernels.gemm(torch.ones(2, 2), torch.ones(2, 2))
"""
    _, log = python(code, CUDA_VISIBLE_DEVICES="")
    assert log.count("interpreter") == 1 and log.count("\n") == 1, log


@pytest.mark.parametrize("first", ["import triton, triton.language as tl", "import torch._inductor.runtime.triton_helpers"])
def test_triton_may_be_imported_first(first):
    """Triton decorates its own library at import: without a GPU our kernels need theirs decorated for the interpreter."""
    code = f"""
{first}
import torch, tritonkernels
a, x = torch.randn(40, 70), torch.randn(70)
torch.testing.assert_close(tritonkernels.gemv(a, x), a @ x)
torch.testing.assert_close(tritonkernels.gemm(a, a.t()), a @ a.t())
"""
    python(code, CUDA_VISIBLE_DEVICES="")


def test_listing_designs_first_chooses_the_backend():
    code = """
import torch, tritonkernels
tritonkernels.designs("gemm")
a = torch.randn(4, 5)
torch.testing.assert_close(tritonkernels.gemm(a, a.t()), a @ a.t())
"""
    python(code, CUDA_VISIBLE_DEVICES="")


def test_an_unknown_backend_is_an_error():
    code = """
import torch, tritonkernels
from tritonkernels.errors import BackendError
try:
    tritonkernels.gemm(torch.ones(2, 2), torch.ones(2, 2))
except BackendError as error:
    print(error)
"""
    out, _ = python(code, TRITONKERNELS_BACKEND="tpu")
    assert "tpu" in out and "gpu, interpreter" in out


def test_tensors_of_another_backend_are_an_error():
    code = """
import torch, tritonkernels
from tritonkernels.errors import DeviceError
try:
    tritonkernels.gemm(torch.ones(2, 2), torch.ones(2, 2))
except DeviceError as error:
    print(error)
"""
    out, _ = python(code, TRITONKERNELS_BACKEND="gpu")
    assert "cpu" in out and "TRITONKERNELS_BACKEND" in out
