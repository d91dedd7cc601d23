"""What an import loads, and what the first call does."""

import ast
import os
from pathlib import Path

import pytest

import cuda_reference
import tritonkernels
from tests import children
from tests.harness import thorough


def python(code, **environment):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TRITON", "PYTEST"))} | environment
    run = children.run("-c", code, env=env)
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


def test_a_choice_imports_designs_of_other_operations_for_their_problems_only():
    code = """
import sys, torch, tritonkernels, cuda_reference
for dtype in (torch.float16, torch.float32):
    a = torch.empty(64, 64, dtype=dtype, device="meta")
    for library in (tritonkernels, cuda_reference):
        library.explain("matmul", a, a, target="h200")
    print(*[name for name in ("tritonkernels.gemm.rasterized", "cuda_reference.gemm.rasterized") if name in sys.modules])
"""
    assert python(code)[0].splitlines() == ["", "tritonkernels.gemm.rasterized cuda_reference.gemm.rasterized"]


def test_the_interpreter_is_announced_once():
    code = """
import torch, tritonkernels
for _ in range(2):
    tritonkernels.gemm(torch.ones(2, 2), torch.ones(2, 2))
"""
    _, log = python(code, CUDA_VISIBLE_DEVICES="")
    assert log.count("interpreter") == 1 and log.count("\n") == 1, log


def test_the_log_is_the_program_s_own():
    """As of any library: its handlers, its format, its levels."""
    code = """
import logging, sys, torch, tritonkernels
logging.basicConfig(format="%(name)s %(levelname)s", stream=sys.stdout, force=True)
log = logging.getLogger("tritonkernels")
print(log.handlers, log.level)
tritonkernels.gemm(torch.ones(2, 2), torch.ones(2, 2))
"""
    assert python(code, CUDA_VISIBLE_DEVICES="") == ("[] 0\ntritonkernels WARNING\n", "")
    silenced = code.replace("print(log.handlers, log.level)", "log.setLevel(logging.ERROR)")
    assert python(silenced, CUDA_VISIBLE_DEVICES="") == ("", "")


@pytest.mark.parametrize("package", (tritonkernels, cuda_reference), ids=lambda package: package.__name__)
def test_dir_lists_what_is_meant_for_users(package):
    assert set(package.__all__) <= set(dir(package)) <= {*package.__all__, "__version__", "nn"}
    assert all(hasattr(package, name) for name in dir(package))


def words_to_users(package):
    """(file, string) of what a package may say: its strings but those that document modules and private things."""
    for file in Path(package.__file__).parent.rglob("*.py"):
        tree, unsaid = ast.parse(file.read_text()), set()
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
                is_private = isinstance(node, ast.Module) or node.name.startswith("_") or node.name not in package.__all__
                unsaid |= {node.body[0].value} if is_private else set()
        yield from (
            (file.name, node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in unsaid
        )


@pytest.mark.parametrize("package", (tritonkernels, cuda_reference), ids=lambda package: package.__name__)
def test_no_message_points_to_docs_that_a_wheel_lacks(package):
    assert [(file, text) for file, text in words_to_users(package) if "docs/" in text] == []


@pytest.mark.parametrize(
    "first",
    [
        "import triton, triton.language as tl",
        pytest.param("import torch._inductor.runtime.triton_helpers", marks=thorough),
    ],
)
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
