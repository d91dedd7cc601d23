"""docs/architecture.md is true: no circles, dependencies point downwards, and a call enters each file of its operation once."""

import re
import sys
from pathlib import Path

import pytest
import torch

import tritonkernels
from perf.render.architecture import BOXES, imports, reachable
from tritonkernels import OPS, backend

HERE = Path(tritonkernels.__file__).parent


def test_no_module_imports_itself_in_a_circle():
    graph = imports()
    assert len(graph) > 100 and BOXES.keys() <= graph.keys()
    assert [module for module in graph if module in reachable(graph, module)] == []


def test_packages_import_downwards_only():
    above = {"tritonkernels": ("cuda_reference", "perf"), "cuda_reference": ("perf",)}
    for module, imported in imports().items():
        package = module.partition(".")[0]
        assert not [other for other in imported if other.startswith(above.get(package, ()))], module


def test_rooms_of_perf_import_downwards_only():
    """Nothing reads render, which reads all; what every room uses is in perf itself and in show, which know of none."""
    upwards = ("show", "offline", "measure", "fit", "gate", "render")
    folders = {path.parent.name for path in (HERE.parent / "perf").glob("*/__init__.py")}
    assert folders == {*upwards}
    level = {f"perf.{room}": number for number, room in enumerate(upwards, 1)}
    level_of = lambda module: level.get(".".join(module.split(".")[:2]), 0)  # noqa: E731
    for module, imported in imports(("perf",)).items():
        assert [other for other in imported if level_of(other) > level_of(module)] == [], module


def test_device_code_of_an_operation_is_its_own():
    """What both packages or several operations need is in operations/ or language/. (CUDA's convolutions share theirs.)"""
    for module, imported in imports().items():
        package, room, *_ = [*module.split("."), ""]
        own = f"{package}.conv2d" if (package, room[:6]) == ("cuda_reference", "conv2d") else f"{package}.{room}."
        parts = [other for other in imported if "parts" in other.split(".")]
        assert [other for other in parts if not other.startswith(own)] == [], module
        if module.startswith("tritonkernels.operations"):
            assert [other for other in imported if other.split(".")[1] in OPS] == [], module
        if module.startswith("cuda_reference"):
            of_triton = [other for other in imported if other.split(".")[1:2] == ["language"]]
            assert [other for other in of_triton if other.startswith("tritonkernels")] == [], module


def test_kernels_import_triton_through_the_language():
    """Else they would be decorated for a GPU where the backend is the interpreter."""
    direct = [file for file in HERE.rglob("*.py") if re.search("^import triton[.]language", file.read_text(), re.MULTILINE)]
    assert direct == [], "say `from ..language.triton import tl, triton`"


@pytest.fixture(scope="module")
def entered():
    """(file, function, the caller's file) of all calls into the package that a gemm of new sizes makes."""
    calls = []

    def watch(frame, event, argument):
        file, caller = (Path(f.f_code.co_filename) for f in (frame, frame.f_back or frame))
        if event == "call" and HERE in file.parents:
            calls.append((str(file.relative_to(HERE)), frame.f_code.co_name, caller))

    a = torch.randn(13, 13, device=backend.device_type())
    tritonkernels.gemm(a[:5], a)  # so that everything is imported
    sys.setprofile(watch)
    try:
        tritonkernels.gemm(a, a)
    finally:
        sys.setprofile(None)
    return calls


def test_the_page_walks_the_files_in_the_order_of_a_call(entered):
    """All but the last two, a design and its launch, of which the page shows one of many."""
    page = (HERE.parent / "docs/architecture.md").read_text()
    steps = re.findall(r"^\d+\. \[.*?\]\(\.\./tritonkernels/(.*?)\)", page.partition("## The path of a call")[2], re.MULTILINE)
    walk = steps[: steps.index("launch.py") - 1]
    assert len(walk) > 4 and walk == [file for file in dict.fromkeys(file for file, *_ in entered) if file in walk]


def test_a_call_enters_each_file_of_its_operation_once(entered):
    """Counted as calls from outside of the operation's files: the user function, prepare, and the designs' launches."""
    rooms = ("gemm", "parts")
    entered = [(f, name) for f, name, caller in entered if Path(f).parent.name in rooms and caller.parent.name not in rooms]
    files = [file for file, name in entered if name in ("gemm", "prepare")]
    assert files == ["gemm/__init__.py", "operations/gemm/prepare.py"], entered
    assert len([file for file, name in entered if name == "launches"]) >= 1
