"""docs/torch.md is true: each cell of its table is a test that is collected, and its example runs."""

import re
from pathlib import Path

import torch

from tests import children
from tests.conftest import COLLECTED, holds
from tests.torch_ops.features import FEATURES, Feature
from tritonkernels import OPS

ROOT = Path(__file__).parents[2]
COLLECT = """
import pytest

class Seen:
    @pytest.hookimpl(tryfirst=True)  # with those that need a GPU
    def pytest_collection_modifyitems(self, items):
        print(*(item.nodeid for item in items), sep="\\n")

pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", "tests/torch_ops"], plugins=[Seen()])
"""
CASE = re.compile(r"tests/torch_ops/(\S+?::\w+)(?:\[(.*)\])?")


def collected(config):
    """{test: the words of each of its cases' names}: of this session, if it has collected all files of this folder, whole."""
    files = {f"tests/torch_ops/{path.name}" for path in Path(__file__).parent.glob("test_*.py")}
    items = [item for item in config.stash[COLLECTED] if item.nodeid.startswith("tests/torch_ops/")]
    names = [item.nodeid for item in items if holds(item, "only")]
    if any("::" in argument for argument in config.args) or not files <= {name.partition("::")[0] for name in names}:
        names = children.run("-c", COLLECT).stdout.splitlines()
    found = {}
    for match in filter(None, map(CASE.fullmatch, names)):
        found.setdefault(match[1], []).append((match[2] or "").split("-"))
    return found


def is_tested(cases, feature, op):
    """Whether a case of the feature's test has the operation and all that the feature asks for."""
    named = ({word.split(",")[0] for word in words} for words in cases.get(feature.test, ()))
    return any({op, *feature.where} <= words for words in named)


def test_every_cell_is_a_test(pytestconfig):
    cases, untested = collected(pytestconfig), []
    for feature in FEATURES:
        for op in OPS:
            if op in feature.instead:
                assert feature.instead[op][1] in cases and not is_tested(cases, feature, op)
            elif not is_tested(cases, feature, op):
                untested.append((feature.text, op))
    assert not untested


def test_a_cell_without_a_test_is_noticed():
    feature = Feature("in words", "test_a.py::test_b", where=("cpu",))
    cases = {"test_a.py::test_b": [["cpu", "0", "gemv, a batch"], ["cuda", "1", "gemm"]]}
    assert is_tested(cases, feature, "gemv") and not is_tested(cases, feature, "gemm")
    assert not is_tested(cases, feature._replace(test="test_a.py::test_c"), "gemv")


def test_the_example_runs():
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/torch.md").read_text(), re.DOTALL)
    names = {}
    exec(compile(example, "docs/torch.md", "exec"), names)
    wanted = torch.nn.functional.linear(names["x"], names["weight"], names["bias"])
    torch.testing.assert_close((names["y"], names["z"] + names["bias"]), (wanted, wanted))
