"""Tuned tables of the test's own, the user's and the shipped ones, and packages that have not read them."""

import logging

import pytest

from tests.harness import LIBRARIES
from tritonkernels.choice.shipped import ShippedTable
from tritonkernels.choice.table import UserTable
from tritonkernels.plans import Plans


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "tuning.json"
    monkeypatch.setenv("TRITONKERNELS_TUNING", str(path))
    return path


@pytest.fixture
def tables(tmp_path):
    """The folder of shipped tables: none yet."""
    folder = tmp_path / "tables"
    folder.mkdir()
    return folder


@pytest.fixture
def fresh(monkeypatch, tables):
    """fresh(): both packages as in a new process, which has not read the tables."""

    def renew():
        for library in LIBRARIES:
            monkeypatch.setattr(library, "tuned", UserTable())
            monkeypatch.setattr(library, "shipped", ShippedTable(tables))
            monkeypatch.setattr(library, "plans", Plans())

    renew()
    return renew


@pytest.fixture
def said(caplog):
    """The warnings, as they are."""
    return lambda: [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
