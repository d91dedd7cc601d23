"""The public functions say what they take and return, and a type checker holds users to it."""

import importlib.util
import inspect
import json
import typing

import pytest
import torch

import cuda_reference.nn
import tritonkernels.nn
from tests.harness import thorough
from tests.tools import typed
from tritonkernels import annotations, errors, report
from tritonkernels.design import Design, Designs
from tritonkernels.launch import LIBRARY
from tritonkernels.nn.swap import Swap, Swaps
from tritonkernels.numerics import ACTIVATIONS
from tritonkernels.operations.conv2d.precision import FP32_PRECISIONS
from tritonkernels.operations.matmul.prepare import ACCEPTS, SUMS
from tritonkernels.problem import FLOAT_PRECISION

MODULES = (tritonkernels, cuda_reference, tritonkernels.nn, cuda_reference.nn)
RETURNED = (report.Report, Design, Designs, Swap, Swaps)
MODES = tuple(precision for precisions, _ in ACCEPTS.values() for precision in precisions)
LITERALS = {
    "OperationName": LIBRARY.served,
    "Float32MatmulPrecision": ACCEPTS[torch.float32][0],
    "MatmulPrecision": MODES,
    "Float32Conv2dPrecision": FP32_PRECISIONS,
    "Conv2dPrecision": (*FP32_PRECISIONS, *FLOAT_PRECISION.values()),
    "Accumulate": ("fp32", *(name for names in SUMS.values() for name in names)),
    "Activation": ACTIVATIONS,
}
# Each line after the first three is an error.
MISTAKES = """import torch, tritonkernels as tk
from tritonkernels import errors, nn
a = torch.ones(4, 4)
tk.gem(a, a)
tk.gemm(a)
tk.gemm(a, a, alpha="1")
tk.gemm(a, a).no_such_method()
tk.matmul(a, a, precision="tf33")
tk.matmul(a, a, activation="tanh")
tk.conv2d(a, a, padding="sam")
tk.conv2d(a, a, precision="bf16x9")
tk.explain("gemms", a, a)
tk.configs("gemm", a, a)["BM"]
tk.designs("gemm")[0].no_such_name
nn.Linear(4)
nn.Conv2d(4, 4, 3, precision="tf32x3")
nn.replace(torch.nn.Linear(4, 4), precision="fp16")
"""


def public():
    """{name: function} of the functions that users call, and of the methods of the classes that they make, get and catch."""
    found = {f"{module.__name__}.{name}": getattr(module, name) for module in MODULES for name in module.__all__}
    found |= {kind.__name__: kind for kind in (*RETURNED, *vars(errors).values()) if inspect.isclass(kind)}
    for name, kind in list(found.items()):
        for own in (own for own in getattr(kind, "__mro__", ()) if own.__module__.startswith("tritonkernels")):
            for key, value in vars(own).items():
                if not key.startswith("_") or key == "__init__":
                    found[f"{name}.{key}"] = getattr(value, "fget", None) or getattr(value, "__func__", value)
    return {name: value for name, value in found.items() if inspect.isfunction(value) and value.__name__ != "<lambda>"}


@pytest.mark.parametrize("name", public())
def test_a_public_function_has_a_full_signature(name):
    function = public()[name]
    named = {parameter for parameter in inspect.signature(function).parameters if parameter not in ("self", "cls")}
    assert named | {"return"} <= typing.get_type_hints(function).keys()


def test_those_of_all_kinds_are_looked_at():
    found = public()
    assert {"tritonkernels.gemm", "cuda_reference.tune", "tritonkernels.nn.Linear.from_torch", "Swap.cells"} <= found.keys()
    assert {"cuda_reference.nn.replace", "ArgumentError.__init__", "Design.is_lesson"} <= found.keys()


@pytest.mark.parametrize("name", LITERALS)
def test_names_are_those_that_a_call_accepts(name):
    assert {*typing.get_args(getattr(annotations, name))} == {*LITERALS[name]}


@pytest.mark.parametrize("name", ("Linear", "Conv2d"))
def test_modules_take_torch_s_arguments(name):
    ours, torchs = (
        {parameter.name: parameter.default for parameter in inspect.signature(kind).parameters.values()}
        for kind in (getattr(tritonkernels.nn, name), getattr(torch.nn, name))
    )
    assert ours == torchs | {"precision": None} | ({"cache_split": False} if name == "Linear" else {})


needs_checker = pytest.mark.skipif(importlib.util.find_spec("basedpyright") is None, reason="basedpyright is not installed")


@needs_checker
@thorough
def test_what_users_see_has_no_error(capsys):
    assert typed.main() == 0, capsys.readouterr().out


@needs_checker
@thorough
def test_a_mistake_is_an_error(tmp_path):
    (tmp_path / "mistakes.py").write_text(MISTAKES)
    settings = {"extraPaths": [str(typed.ROOT)], "typeCheckingMode": "standard"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    found = json.loads(typed.check(tmp_path, "--outputjson").stdout)["generalDiagnostics"]
    lines = {error["range"]["start"]["line"] for error in found if error["severity"] == "error"}
    assert lines == {*range(3, len(MISTAKES.splitlines()))}
