"""What is registered with a module of torch once a user imports it."""

import importlib
import importlib.util
import sys

import pytest

from tritonkernels.torch_ops.on_import import on_import


@pytest.fixture
def lazy(tmp_path, monkeypatch):
    (tmp_path / "imported_lately.py").write_text("answer = 42\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "imported_lately"
    sys.modules.pop("imported_lately", None)


def test_nothing_happens_before_the_import(lazy):
    """Not when the module is looked for; then all that waits, with the module loaded, and once."""
    found = []
    for _ in range(2):
        on_import(lazy, lambda: found.append(sys.modules[lazy].answer))
    assert importlib.util.find_spec(lazy) is not None and found == []
    importlib.import_module(lazy)
    assert found == [42, 42]
    importlib.reload(sys.modules[lazy])
    assert found == [42, 42]


def test_of_a_loaded_module_it_happens_now(lazy):
    importlib.import_module(lazy)
    found = []
    on_import(lazy, lambda: found.append(True))
    assert found == [True]


def test_a_module_that_is_not_there_is_not_found():
    on_import("not_there_at_all", lambda: None)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("not_there_at_all")
