"""A tuned table of the test's own."""

import pytest


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "tuning.json"
    monkeypatch.setenv("TRITONKERNELS_TUNING", str(path))
    return path
