"""The digest of a step changes with every file that its outcome may depend on, and with no other."""

import pytest

from perf import ROOT
from perf.gate import plan, sources
from perf.measure import kernels

FILES = {
    "tritonkernels/launch.py": "",
    "tritonkernels/choice/tables/h200/gemm.json": "",
    "tritonkernels/nn/modules.py": "from ..matmul import MATMUL\nfrom ..conv2d.parts.precision import FP32\n",
    "tritonkernels/gemm/__init__.py": "from ..operations.gemm.prepare import prepare\n",
    "tritonkernels/operations/gemm/rules.py": "",
    "tritonkernels/gemm/tiled.py": "",
    "tritonkernels/gemv/__init__.py": "",
    "tritonkernels/operations/gemv/rules.py": "from ..gemm.rules import scaled\n",
    "tritonkernels/matmul/__init__.py": "",
    "tritonkernels/operations/matmul/as_gemv.py": "from ..gemv.prepare import prepare\n",
    "tritonkernels/operations/matmul/prepare.py": "",
    "tritonkernels/operations/conv2d/precision.py": "",
    "tritonkernels/conv2d_input/__init__.py": "from ..conv2d.parts.precision import FP32\n",
    "cuda_reference/common/tma.cuh": "",
    "cuda_reference/gemm/tiled.cuh": "",
    "cuda_reference/matmul/tiled.cuh": '#include "../gemm/tiled.cuh"\n',
    "perf/__init__.py": "",
    "perf/offline/__init__.py": "from .sass import LOCAL\n",
    "perf/offline/sass.py": "",
    "perf/measure/compare.py": "",
    "perf/measure/kernels.py": "",
    "perf/gate/gate.py": "",
    "perf/gate/plan.py": "",
    "perf/gate/gate_pytest.py": "",
    "perf/gate/findings.py": "",
    "perf/results/h200/gate.json": "",
    "tests/conftest.py": "",
    "tests/support.py": "from perf.measure.compare import main\n",
    "tests/harness.py": "from tests import cases\n",
    "tests/cases.py": "",
    "tests/gate/child.py": "from tests.harness import moved\nfrom tests.gate.calls import calls\n",
    "tests/gate/calls.py": "from tritonkernels.operations.matmul.prepare import FP8\n",
    "tests/gate/build.py": "",
    "tests/designs/test_designs.py": "from tests import harness\nfrom tritonkernels import conv2d\nA = 'matmul/tiled.cuh'\n",
    "tests/designs/test_code.py": "from perf.offline import sass\n",
    "tests/designs/matmul/test_fp8.py": "COMMAND = 'python -m tests.memory.child'\n",
    "tests/operations/test_conv2d_gradients.py": "",
    "tests/memory/child.py": "",
    "tests/torch_ops/test_nn.py": "",
    "tests/properties/test_valid_calls.py": "",
    "tests/perf/measure/test_compare.py": "",
    "examples/train.py": "",
    "pyproject.toml": "[project]\nversion = 1\n[tool.pytest.ini_options]\ntimeout = 300\n[tool.ruff]\n",
}
REMARKS = {  # a file, and what runs the same
    "py": (
        '"""One."""\n\nA = \'# é \'  # one\nB = "// kept"\n\ndef f(b):  # two\n    """Two\n    lines."""\n    return b\n',
        '"""Été."""\n# a line\nA = \'# é \'\nB = "// kept"\ndef f(b):\n    """Three."""  # 3\n    return b\n',
    ),
    "cuh": (
        "#pragma once  // one\n/* two\n   lines */ int a = '\"'; // it's\nconst char* b = \"// kept\", *c = \"'# é '\";\n",
        '#pragma once\n\n   int a = \'"\';\nconst char* b = "// kept", *c = "\'# é \'"; // "\n',
    ),
}
CHANGES = {"py": "changed = 1\n", "cuh": "int changed;\n"}
EVERY = {*plan.names()}
TESTS_OF_ALL = {name for name in EVERY if plan.parts(name)[0] in ("tests", "two_gpus", "around")}
REST = {name for name in EVERY if plan.parts(name)[1] == plan.REST}
WHOLE = {name for name in EVERY if plan.parts(name)[1] not in plan.FAMILIES}  # which depend on every operation


def of(*families, checks=None):
    """The steps of these families and of all, of these checks."""
    found = {name for name in EVERY if plan.parts(name)[1] in families} | WHOLE
    return {name for name in found if not checks or plan.parts(name)[0] in checks}


@pytest.fixture
def changed(tmp_path, monkeypatch):
    """changed(path): the steps whose digest differs once the file has."""
    for module in (sources, kernels):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(sources, "HERE", tmp_path / "perf")
    monkeypatch.setattr(sources, "PROGRAMS", tuple(tmp_path / path.relative_to(ROOT) for path in sources.PROGRAMS))
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    def digests(used):
        for function in (sources.files, sources._hashes, sources._lines, sources._imports, sources._of_packages):
            function.cache_clear()
        return {name: sources.digest(name, used) for name in EVERY}

    def run(path, used=(), text=None):
        before = digests(used)
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(
            FILES.get(path, "") + CHANGES.get(path.rsplit(".", 1)[-1], "changed") if text is None else text
        )
        after = digests(used)
        return {name for name in EVERY if after[name] != before[name]}

    yield run
    for function in (sources.files, sources._hashes, sources._lines, sources._imports, sources._of_packages):
        function.cache_clear()


@pytest.mark.parametrize(
    "path, steps",
    [
        ("tritonkernels/launch.py", EVERY),
        ("tritonkernels/nn/modules.py", EVERY),
        ("tritonkernels/choice/tables/h200/gemm.json", EVERY),
        ("cuda_reference/common/tma.cuh", EVERY),
        (
            "tests/conftest.py",
            EVERY - of(*plan.FAMILIES, checks=("build", "calls", "memcheck", "racecheck", "synccheck", "consan", "gsan")),
        ),
        ("perf/gate/gate_pytest.py", EVERY),
        ("perf/gate/findings.py", EVERY),
        ("perf/gate/gate.py", {"around"}),
        ("perf/gate/plan.py", {"around"}),
        ("perf/results/h200/gate.json", set()),
        ("perf/measure/compare.py", {"around"}),
        ("tests/perf/measure/test_compare.py", {"around"}),
        ("examples/train.py", {"around"}),
        ("tests/support.py", {"around"}),
        ("tritonkernels/gemm/tiled.py", of("gemm", "matmul")),  # which has its designs
        ("tritonkernels/gemm/new.py", of("gemm", "matmul")),
        ("tritonkernels/operations/gemm/rules.py", of("gemm", "gemv", "matmul")),  # gemv is made of it, and matmul calls gemv
        ("tritonkernels/gemv/__init__.py", of("gemv", "matmul")),
        ("cuda_reference/gemm/tiled.cuh", of("gemm", "matmul", "conv2d")),  # matmul's kernel includes it
        ("cuda_reference/matmul/tiled.cuh", of("matmul", "gemm", "conv2d")),
        ("tritonkernels/operations/conv2d/precision.py", of("conv2d")),
        (
            "tests/gate/calls.py",
            of(*plan.FAMILIES, checks=("calls", "memcheck", "racecheck", "synccheck", "consan", "gsan", "around")),
        ),
        ("tests/gate/build.py", of(*plan.FAMILIES, checks=("build", "around"))),
        ("tests/designs/test_designs.py", TESTS_OF_ALL),
        ("perf/offline/sass.py", TESTS_OF_ALL),
        ("tests/designs/matmul/test_fp8.py", of("matmul", checks=("tests", "around")) - REST),
        ("tests/memory/child.py", of("matmul", checks=("tests", "two_gpus", "around"))),
        ("tests/operations/test_conv2d_gradients.py", of("conv2d", checks=("tests", "around")) - REST),
        ("tests/torch_ops/test_nn.py", REST | {"two_gpus", "around"}),
        ("tests/properties/test_valid_calls.py", TESTS_OF_ALL),
    ],
)
def test_it_changes_with_what_the_step_depends_on(changed, path, steps):
    assert changed(path) == steps


def test_the_calls_of_an_operation_depend_on_a_file_of_another_that_lists_their_types(changed):
    """But not on that one's kernels."""
    assert {"calls-gemm", "calls-matmul"} <= changed("tritonkernels/operations/matmul/prepare.py")
    assert "calls-gemv" not in changed("tritonkernels/operations/matmul/as_gemv.py")


def test_the_operations_that_its_tests_used_belong_to_it(changed):
    path = "tritonkernels/operations/conv2d/precision.py"
    assert "tests-gemm-1of1" not in changed(path)
    assert "tests-gemm-1of1" in changed(path, used=("conv2d_input",), text="changed = 2\n")


def test_comments_and_docstrings_are_free_to_change(changed):
    for path in ("tritonkernels/operations/gemm/prepare.py", "cuda_reference/gemm/tiled.cuh"):
        before, after = REMARKS[path.rsplit(".", 1)[-1]]
        assert changed(path, text=before)
        assert not changed(path, text=after)
        for string in ("'# é '", '"// kept"'):
            assert changed(path, text=after.replace(string, string.replace(" ", "  ")))
            assert changed(path, text=before)


def test_of_the_settings_those_of_pytest_count(changed):
    text = FILES["pyproject.toml"]
    assert changed("pyproject.toml", text=text.replace("version = 1", "version = 2") + "line-length = 128\n") == set()
    assert changed("pyproject.toml", text=text.replace("timeout = 300", "timeout = 30")) == EVERY


def test_of_this_repository():
    """What no step can do without, and what does not belong to it."""

    def of(step, *used):
        return {str(path.relative_to(ROOT)) for path in sources.files(step, frozenset(used))}

    gemm = of("tests-gemm-1of1")
    assert gemm >= {"tests/harness.py", "tests/cases.py", "tests/conftest.py", "tests/designs/test_designs.py"}
    assert gemm >= {"tritonkernels/gemm/tiled.py", "cuda_reference/gemm/tiled.cuh", "tritonkernels/native/repeat.cpp"}
    assert not {path for path in gemm if path.startswith(("perf/render/", "tests/perf/", "tests/designs/matmul/"))}
    assert "tritonkernels/conv2d/winograd.py" not in gemm and "tritonkernels/conv2d/winograd.py" in of(
        "tests-gemm-1of1", "conv2d"
    )
    assert "cuda_reference/matmul/persistent.cuh" in of("calls-conv2d") and "tests/gate/calls.py" in of("calls-conv2d")
