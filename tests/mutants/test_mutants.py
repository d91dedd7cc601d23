"""A few mutants of each kind in every run of the suite; `make mutants` runs them all."""

import pytest

from .catalogue import MUTANTS
from .run import ROOT, copy_of_the_tree, killer


@pytest.mark.parametrize("mutant", [m for m in MUTANTS if m.fast], ids=lambda m: m.name)
def test_the_suite_notices(mutant, tmp_path):
    copy_of_the_tree(tmp_path)
    assert killer(mutant, tmp_path), f"nothing notices {mutant.name}"


def test_an_unbroken_kernel_is_not_noticed(tmp_path):
    """Else the mutants above would prove nothing."""
    mutant = MUTANTS[0]
    copy_of_the_tree(tmp_path)
    unbroken = type(mutant)("unbroken", mutant.path, mutant.old, mutant.old, "test_gemm_sizes and tritonkernels and 5x3x7")
    assert killer(unbroken, tmp_path) is None


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_mutants_apply(mutant):
    """A kernel that changed must not leave its mutants behind."""
    assert (ROOT / mutant.path).read_text().count(mutant.old) == 1 and mutant.old != mutant.new
