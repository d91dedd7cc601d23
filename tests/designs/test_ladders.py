"""A folder shows its designs: its files are the designs of the operation's ladder, in both packages."""

from pathlib import Path

import pytest

import tritonkernels
from tests.harness import LIBRARIES
from tritonkernels.launch import LIBRARY
from tritonkernels.operation import PACKAGES

ROOT = Path(__file__).parents[2]


def files(package, op, suffix):
    found = (ROOT / package / op).glob(f"*{suffix}")
    return {path.stem for path in found if path.name != "__init__.py"}


@pytest.mark.parametrize("op", tritonkernels.OPS)
def test_a_folder_holds_the_designs_of_the_ladder_and_nothing_else(op):
    for library in LIBRARIES:
        own = {rung.name for rung in library.operation(op).own if rung.is_in(library.package)}
        assert files(library.package, op, ".py") == own, library.package
    assert files("cuda_reference", op, ".cuh") == files("cuda_reference", op, ".py")


@pytest.mark.parametrize("op", tritonkernels.OPS)
def test_a_design_of_one_package_says_why(op):
    for rung in LIBRARY.operation(op).ladder:
        assert rung.only is None or (rung.only in PACKAGES and rung.why and rung.why.endswith(".")), rung.name
