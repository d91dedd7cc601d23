"""`make mutants` writes to outcome.json which test notices each mutant; here two of them are, as a sample."""

import subprocess
import sys

import pytest

import tritonkernels
from perf.render.architecture import imports, reachable
from tests.conftest import COLLECTED, holds
from tests.harness import thorough
from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import ROOT
from tests.mutants.outcome import gone, killers, read
from tritonkernels.launch import LIBRARY

NAMES = (
    "tritonkernels.gemv.parts.row_tile: x read contiguously",
    "cuda_reference.gemm.tiled: barrier before the product removed",
)
SAMPLE = """
import dataclasses, sys
from pathlib import Path
from tests.mutants import run
from tests.mutants.catalogue import MUTANTS

run.SUITE = ("tests/designs/test_designs.py",)
place, *names = sys.argv[1:]
sample = [m for m in MUTANTS if m.name in names]
whole = dataclasses.replace(sample[0], name="whole", new=sample[0].old, tests="test_gemv_sizes and 3x2")
sys.exit(run.main([*sample, whole], file=Path(place, "outcome.json"), place=Path(place)))
"""


@thorough
def test_a_broken_kernel_is_noticed_and_an_intact_one_is_not(tmp_path):
    """A Triton and a CUDA kernel."""
    run = subprocess.run([sys.executable, "-c", SAMPLE, tmp_path, *NAMES], cwd=ROOT, capture_output=True, text=True)
    outcomes = read(tmp_path / "outcome.json")
    found = {name: outcome["outcome"] for name, outcome in outcomes.items()}
    assert run.returncode == 1 and found == dict.fromkeys(NAMES, "killed") | {"whole": "survived"}, run.stderr


def test_mutants_apply():
    """The mutants of a changed kernel must still apply."""
    for mutant in MUTANTS:
        assert mutant.broken(ROOT) != (ROOT / mutant.path).read_text(), mutant.name


def test_every_mutant_was_noticed():
    """When it last ran: `make mutants` runs those that are new or have changed."""
    outcomes, names = read(), [mutant.name for mutant in MUTANTS]
    assert len(names) == len(set(names)) and outcomes.keys() == set(names)
    assert not [name for name, outcome in outcomes.items() if outcome["outcome"] != "killed"]


def test_what_noticed_a_mutant_is_still_run(pytestconfig):
    """In files that are collected whole (covering.py keeps them); `make mutants` runs those again whose test is no more."""
    of_some = any("::" in argument for argument in pytestconfig.args)
    outcomes, items = read(), [] if of_some else pytestconfig.stash[COLLECTED]
    by = killers(outcomes)
    assert not gone(outcomes, {item.nodeid for item in items if item.nodeid not in by or holds(item, "only")})


@pytest.mark.parametrize("op", tritonkernels.OPS)
def test_every_design_has_a_mutant(op):
    """In CUDA, a mutant of its file; in Triton, of its file or of a part of its operation that it uses."""
    broken, graph = {mutant.path for mutant in MUTANTS}, imports(("tritonkernels",))
    for rung in LIBRARY.operation(op).own:
        if rung.is_in("cuda_reference"):
            assert broken & {f"cuda_reference/{op}/{rung.name}{suffix}" for suffix in (".cuh", ".py")}, rung.name
        if rung.is_in("tritonkernels"):
            design = f"tritonkernels.{op}.{rung.name}"
            files = {module for module in {design} | reachable(graph, design) if module.startswith(f"tritonkernels.{op}.")}
            assert broken & {module.replace(".", "/") + ".py" for module in files}, rung.name
