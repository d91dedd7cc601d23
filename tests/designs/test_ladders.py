"""A folder shows its designs: what lies there is what the operation's ladder names, in both packages."""

from pathlib import Path

import pytest

import tritonkernels
from tests.harness import LIBRARIES
from tritonkernels.launch import LIBRARY
from tritonkernels.operation import PACKAGES

ROOT = Path(__file__).parents[2]
REDUCED = [op for op in tritonkernels.OPS if LIBRARY.served[op].of]  # by the designs of another operation


def files(package, op, suffix):
    found = (ROOT / package / op).glob(f"*{suffix}")
    return {path.stem for path in found if path.name != "__init__.py"}


@pytest.mark.parametrize("op", [op for op in tritonkernels.OPS if op not in REDUCED])
def test_a_folder_holds_the_designs_of_the_ladder_and_nothing_else(op):
    for library in LIBRARIES:
        assert files(library.package, op, ".py") == set(library.names(op)), library.package
    borrowed = {d for d in LIBRARIES[0].names(op) if d not in files("cuda_reference", op, ".cuh")}
    assert files("cuda_reference", op, ".cuh") <= set(LIBRARIES[0].names(op)) and borrowed <= {"pointwise"}


@pytest.mark.parametrize("op", REDUCED)
def test_an_operation_that_reduces_to_another_has_no_designs_of_its_own(op):
    for library in LIBRARIES:
        assert library.names(op) == library.names(LIBRARY.served[op].of.name)
        assert not files(library.package, op, ".py") and not files(library.package, op, ".cuh")


@pytest.mark.parametrize("op", tritonkernels.OPS)
def test_what_one_package_lacks_has_a_reason(op):
    for rung in LIBRARY.operation(op).ladder:
        assert rung.only is None or (rung.only in PACKAGES and rung.why and rung.why.endswith(".")), rung.name
