"""A tuned table of the test's own, and packages that have not read it."""

import pytest

from tests.harness import LIBRARIES
from tritonkernels.choice.table import UserTable
from tritonkernels.plans import Plans


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "tuning.json"
    monkeypatch.setenv("TRITONKERNELS_TUNING", str(path))
    return path


@pytest.fixture
def fresh(monkeypatch):
    """fresh(): both packages as in a new process, which has not read the table."""

    def renew():
        for library in LIBRARIES:
            monkeypatch.setattr(library, "tuned", UserTable())
            monkeypatch.setattr(library, "plans", Plans())

    renew()
    return renew
