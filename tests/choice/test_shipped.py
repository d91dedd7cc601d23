"""The shipped tables: after the user's table and before the model, for their own GPU only, and never the end of a call."""

import builtins
import dataclasses
import json
import os

import pytest
import torch

import cuda_reference
import tritonkernels
from tests.choice.test_table import H200, UNUSABLE, both, entry, small
from tests.harness import LIBRARIES, prepare
from tritonkernels.choice import efficiency
from tritonkernels.choice.shipped import SHIPPED, ShippedTable
from tritonkernels.design import as_dict
from tritonkernels.errors import TuningError
from tritonkernels.target import Target


def chosen(library, problem, target=H200):
    """The numbers of the config that a call gets, and from where."""
    tuned = library.from_tables(problem, target)
    design, config = library.choose(problem, target)
    assert tuned is None or (design.name, as_dict(config)) == (tuned[0].name, as_dict(tuned[1]))
    return (design.name, as_dict(config)), tuned and tuned[2]


def as_found(candidate):
    return candidate[0].name, as_dict(candidate[1])


@both
def test_the_user_s_table_comes_first_and_the_model_last(library, file, fresh):
    problem = small("gemm")
    found, _ = library.candidates(problem, H200)
    best, middle, last = found[0], found[len(found) // 2], found[-1]
    assert chosen(library, problem) == (as_found(best), None)
    library.shipped.store(entry(library, problem, last))
    assert chosen(library, problem) == (as_found(last), "shipped table")
    for of_user, expected in (
        (entry(library, problem, middle, compiler="of old 1.2"), (as_found(last), "shipped table")),
        (entry(library, problem, middle), (as_found(middle), "tuned table")),
        (entry(library, problem, middle, design="gone"), (as_found(last), "shipped table")),
        (entry(library, problem, best, design=None, config={}), (as_found(best), None)),
        (entry(library, problem, best, design=None, config={}, ms=None), (as_found(last), "shipped table")),
    ):
        library.tuned.store(of_user)
        assert chosen(library, problem) == expected, of_user
    assert as_found(library.choose(problem, H200, middle[0].name, as_dict(middle[1]))) == as_found(middle), "the caller's own"


@both
def test_it_holds_for_its_own_gpu(library, file, fresh):
    """Under the driver's name, too."""
    problem = small("gemm")
    last = library.candidates(problem, H200)[0][-1]
    library.shipped.store(entry(library, problem, last, gpu="NVIDIA H200"))
    assert library.shipped.path("h200").exists()
    live = dataclasses.replace(H200, name="NVIDIA H200")
    assert chosen(library, problem, live) == chosen(library, problem) == (as_found(last), "shipped table")
    for other in (Target.named("h100"), dataclasses.replace(H200, name="NVIDIA H200 MIG 1g.18gb")):
        assert chosen(library, problem, other)[1] is None


def test_a_gpu_is_known_by_the_name_that_its_driver_has():
    """With its memory in it; no slice of a GPU has the whole one's figures."""
    assert efficiency.gpu_name("NVIDIA H100 80GB HBM3") == efficiency.gpu_name("h100") == "h100"
    for other in ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "NVIDIA H100 NVL", "NVIDIA A100 80GB PCIe"):
        assert efficiency.gpu_name(other) == other


@both
def test_an_entry_that_a_call_may_not_get_is_a_miss(library, file, fresh, said):
    """Without a word: who calls cannot renew it."""
    problem = small("gemm")
    found, _ = library.candidates(problem, H200)
    for wrong in ({"compiler": "of old 1.2"}, {"design": "gone"}, {"config": {"BM": 7}}):
        fresh()
        library.shipped.path("h200").unlink(missing_ok=True)
        library.shipped.store(entry(library, problem, found[-1], **wrong))
        assert chosen(library, problem) == (as_found(found[0]), None)
    assert not said()


@pytest.mark.parametrize("package", (tritonkernels, cuda_reference), ids=lambda p: p.__name__)
def test_a_call_runs_what_it_says_and_explain_tells(package, file, fresh):
    a, b = torch.randn(20, 24), torch.randn(24, 40)
    library = next(library for library in LIBRARIES if library.package == package.__name__)
    problem, target = prepare("gemm", a, b).problem, library.target(a.device)
    candidate = [c for c in library.candidates(problem, target)[0] if c[0].name == "rasterized"][-1]
    library.shipped.store(entry(library, problem, candidate, target))
    report = package.explain("gemm", a, b)
    assert (report["design"], report["config"], report["chosen_by"]) == (*as_found(candidate), "shipped table")
    torch.testing.assert_close(package.gemm(a, b), a @ b)
    assert package.explain("gemm", a, b, design="rasterized")["chosen_by"] == "caller"


DAMAGED = [name for name in UNUSABLE if not name.endswith("write") and name not in ("a link", "a pipe", "another user's")]


@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_file_is_not_used_with_one_warning(what, file, fresh, said):
    library, problem = LIBRARIES[0], small("gemm")
    path = library.shipped.path("h200")
    path.parent.mkdir()
    UNUSABLE[what](path)
    for _ in range(3):
        assert chosen(library, problem) == (as_found(library.candidates(problem, H200)[0][0]), None)
    (line,) = said()
    assert str(path) in line and "Install tritonkernels again" in line and "\n" not in line
    with pytest.raises(TuningError, match="the shipped table cannot be written"):
        library.shipped.store(entry(library, problem, library.candidates(problem, H200)[0][-1]))


def test_off_is_for_both_tables(file, fresh, monkeypatch):
    library, problem = LIBRARIES[0], small("gemm")
    library.shipped.store(entry(library, problem, library.candidates(problem, H200)[0][-1]))
    assert chosen(library, problem)[1] == "shipped table"
    fresh()
    monkeypatch.setenv("TRITONKERNELS_TUNING", "off")
    assert chosen(library, problem)[1] is None


def test_it_is_read_once(file, fresh, monkeypatch):
    library, problem = LIBRARIES[0], small("gemm")
    library.shipped.store(entry(library, problem, library.candidates(problem, H200)[0][-1]))
    fresh()
    opened, real = [], builtins.open
    monkeypatch.setattr("io.open", lambda path, *args, **kwargs: opened.append(path) or real(path, *args, **kwargs))
    path = library.shipped.path("h200")
    assert chosen(library, problem)[1] == "shipped table" and opened == [path]
    os.unlink(path)
    for m in (16, 17, 500):
        library.choose(dataclasses.replace(problem, m=m), H200)
    assert chosen(library, problem)[1] == "shipped table" and opened == [path]


def test_a_file_has_an_entry_a_line_and_only_what_beats_the_model(tables):
    library, table = LIBRARIES[0], ShippedTable(tables)
    problems = [dataclasses.replace(small("gemm"), m=m) for m in (3, 1, 2)]
    entries = [entry(library, problem, library.candidates(problem, H200)[0][-1]) for problem in problems]
    for one in (*entries, *entries):
        table.store(dataclasses.replace(one, tried=[["naive", {}, 1.0]]))
    text = table.path("h200").read_text()
    assert sorted(map(str, json.loads(text)["entries"])) == sorted(str(vars(one)) for one in entries)
    assert text.count("\n") == len(entries) + 2 and text == text.strip() + "\n"
    table.store(dataclasses.replace(entries[0], compiler="Triton 9.9"))
    table.store(dataclasses.replace(entries[1], design=None, config={}))
    left = json.loads(table.path("h200").read_text())["entries"]
    assert sorted((one["problem"]["m"], one["compiler"]) for one in left) == sorted(
        [("3", library.compiler()), ("3", "Triton 9.9"), ("2", library.compiler())]
    )
    for one in (*entries, dataclasses.replace(entries[0], compiler="Triton 9.9")):
        table.store(dataclasses.replace(one, design=None, config={}))
    assert json.loads(table.path("h200").read_text()) == {"schema": 1, "entries": []}


def test_the_ordinary_place_is_that_of_the_model_s_figures():
    assert SHIPPED.path("NVIDIA H200") == efficiency.TABLES / "h200" / "tuned.json"
    assert all(library.shipped is SHIPPED for library in LIBRARIES)
