"""The tuned table: what a key tells apart, what steers a choice, and what is refused, with one warning and no error."""

import builtins
import dataclasses
import functools
import json
import os
import pathlib
import threading

import pytest
import torch
from filelock import FileLock

import cuda_reference
import tritonkernels
from tests.harness import LIBRARIES, SMALL, built, prepare
from tritonkernels import problem as problems
from tritonkernels import user_file
from tritonkernels.choice.table import Entry, UserTable, class_of, size_class
from tritonkernels.design import as_dict
from tritonkernels.errors import TuningError
from tritonkernels.problem import Problem
from tritonkernels.target import Target

H200 = Target.named("h200")
NOBODY = 65534
both = pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away, and writes where others cannot")


def small(op, dtype=torch.float32):
    return prepare(op, *built(SMALL[op], functools.partial(torch.empty, dtype=dtype, device="meta"))).problem


def entry(library, problem, candidate, target=H200, **changes):
    design, config = candidate
    key = library.package, problem.op, target.name, library.compiler(), class_of(problem)
    return dataclasses.replace(Entry(*key, design.name, as_dict(config), 0.5, 1.0, "2026-11-22"), **changes)


KINDS = [
    kind for kind in vars(problems).values() if isinstance(kind, type) and issubclass(kind, Problem) and kind is not Problem
]
FIELDS = [pytest.param(kind, f, id=f"{kind.__name__}-{f.name}") for kind in KINDS for f in dataclasses.fields(kind)]
VALUES = {  # of each type of a field: some in classes of their own, then some of the class of the last
    int: ((1, 3, 16, 17, 96, 4096, 4097, 6000, 5000, 5001), (4999, 4609, 5631)),
    float: ((0.0, 1.0, -1.0), (2.5, 1e-9)),
    bool: ((False, True), ()),
    str: (("row", "col"), ()),
    str | None: ((None, "relu"), ()),
    torch.dtype: ((torch.float32, torch.bfloat16, torch.float16), ()),
    torch.dtype | None: ((None, torch.float8_e5m2), ()),
    tuple[int, int]: (((1, 1), (1, 2), (2, 1)), ()),
}


@pytest.mark.parametrize("kind, field", FIELDS)
def test_a_key_has_every_field(kind, field):
    """A new field of a known type is in the key by itself; one of another type fails here."""
    values = {f.name: VALUES[f.type][0][0] for f in dataclasses.fields(kind) if f.default is dataclasses.MISSING}
    apart, alike = VALUES[field.type]
    if field.name == "groups":  # an int that is no size: one channel a group, or several
        apart, alike = (*apart, *alike), ()
    keys = [json.dumps(class_of(kind(**values | {field.name: value}))) for value in (*apart, *alike)]
    assert len(set(keys)) == len(apart) and len(set(keys[len(apart) - 1 :])) == 1


def test_sizes_of_a_class_are_within_an_eighth_of_each_other():
    assert [size_class(size, 8) for size in (0, 1, 16, 17, 24, 4000, 4095, 4096, 4097)] == [
        *("0", "1", "16", "~16", "~24 by 8", "~4096 by 8", "~4096", "~4096 by 8", "~4096")
    ]
    for size in range(17, 20000, 7):
        middle = int(size_class(size, 8).partition(" ")[0][1:])
        assert abs(size - middle) <= size / 8 + 1


def test_an_operation_is_in_the_key():
    conv, of_input = (
        entry(LIBRARIES[0], small(op), LIBRARIES[0].candidates(small(op), H200)[0][0]) for op in ("conv2d", "conv2d_input")
    )
    assert conv.key != of_input.key


@both
@pytest.mark.parametrize("op", tritonkernels.OPS)
def test_the_first_candidate_is_the_choice_of_the_rule_and_configs_survive_a_file(library, op):
    for target in (H200, Target.named("a100")):
        found, refusals = library.candidates(small(op), target)
        design, config = library.choose(small(op), target)
        assert (design.name, as_dict(config)) == (found[0][0].name, as_dict(found[0][1]))
        assert {d.name for d, _ in found}.isdisjoint(refusals)
        for design, config in found:
            assert json.loads(json.dumps(as_dict(config))) == as_dict(config)
            assert design.transform(as_dict(config)) is None


@both
@pytest.mark.parametrize("op", tritonkernels.OPS)
def test_an_entry_steers_the_choice(library, op, file, fresh):
    """Every candidate, also of another operation's designs, is found again in a new process."""
    problem = small(op)
    found, _ = library.candidates(problem, H200)
    for candidate in (found[0], found[len(found) // 2], found[-1]):
        stored = entry(library, problem, candidate)
        UserTable().store(stored)
        fresh()
        assert library.tuned.find(library.package, problem, "h200", library.compiler) == stored
        design, config = library.choose(problem, H200)
        assert (design.name, as_dict(config)) == (stored.design, stored.config)
        other = library.choose(problem, Target.named("a100"))
        assert library.from_tables(problem, Target.named("a100")) is None and other


@pytest.mark.parametrize("package", (tritonkernels, cuda_reference), ids=lambda p: p.__name__)
def test_a_call_runs_what_the_table_says_and_explain_tells(package, file, fresh):
    a, b = torch.randn(20, 24), torch.randn(24, 40)
    library = next(library for library in LIBRARIES if library.package == package.__name__)
    problem, target = prepare("gemm", a, b).problem, library.target(a.device)
    assert package.explain("gemm", a, b)["chosen_by"] == "model"
    candidate = [c for c in library.candidates(problem, target)[0] if c[0].name == "rasterized"][-1]
    library.tuned.store(entry(library, problem, candidate, target))
    report = package.explain("gemm", a, b)
    assert (report["design"], report["config"], report["chosen_by"]) == ("rasterized", as_dict(candidate[1]), "tuned table")
    assert package.configs("gemm", a, b)[0] == report["config"], "the one that the call uses first"
    torch.testing.assert_close(package.gemm(a, b), a @ b)
    named = package.explain("gemm", a, b, design="split_k")
    assert (named["design"], named["chosen_by"]) == ("split_k", "caller")
    assert package.explain("gemm", a, b, config=named["config"])["chosen_by"] == "caller"
    assert package.explain("gemm", a[:10], b)["chosen_by"] == "model", "10 rows are another class"


@both
def test_an_entry_that_is_not_legal_is_a_miss(library, file, fresh):
    problem = small("gemm")
    found, _ = library.candidates(problem, H200)
    for wrong in ({"design": "gone"}, {"config": {}}, {"config": {"BM": 7}}, {"config": as_dict(found[-1][1]) | {"more": 1}}):
        library.tuned.store(entry(library, problem, found[-1], **wrong))
        assert library.choose(problem, H200)[0].name == found[0][0].name
        assert library.from_tables(problem, H200) is None


@both
def test_a_config_of_larger_error_is_a_miss(library, file, fresh):
    """conv2d's winograd, which is for those who name it."""
    image, filters = torch.empty(1, 64, 32, 32, device="meta"), torch.empty(64, 64, 3, 3, device="meta")
    problem = prepare("conv2d", image, filters, padding=1).problem
    library.tuned.store(entry(library, problem, library.choose(problem, H200, "winograd")))
    assert library.choose(problem, H200)[0].name != "winograd"


@both
def test_a_design_that_refuses_is_a_miss(library, file, fresh, monkeypatch):
    """Problems of a class may differ in what a design asks for: the entry was legal for another of them."""
    problem = small("matmul", torch.float16)
    design, config = library.candidates(problem, H200)[0][-1]
    library.tuned.store(entry(library, problem, (design, config)))
    assert library.from_tables(problem, H200)[0] is design
    refusing = dataclasses.replace(design, refuses=lambda problem, target: "it asks for more")
    monkeypatch.setattr(library, "designs", lambda op: (refusing,))
    assert library.from_tables(problem, H200) is None


@both
def test_an_entry_of_another_version_is_a_miss_with_one_line(library, file, fresh, said):
    problem = small("gemm")
    found, _ = library.candidates(problem, H200)
    UserTable().store(entry(library, problem, found[-1], compiler="of old 1.2"))
    for _ in range(3):
        assert library.from_tables(problem, H200) is None
    (line,) = said()
    assert "of old 1.2" in line and library.compiler() in line and "\n" not in line
    assert f'{library.package}.tune("gemm", ...)' in line
    assert "tritonkernels tune gemm --shapes FILE (in a checkout: python -m perf tune)" in line
    library.tuned.store(entry(library, problem, found[-1]))
    assert library.from_tables(problem, H200) and len(json.loads(file.read_text())["entries"]) == 2
    assert library.compiler().split()[0] in ("Triton", "CUDA")


def valid(**changes):
    library, problem = LIBRARIES[0], small("gemm")
    best = entry(library, problem, library.candidates(problem, H200)[0][-1])
    return {"schema": 1, "entries": [vars(best) | changes]}


def write(content):
    def put(path):
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        path.chmod(0o600)

    return put


def write_then(change):
    def put(path):
        write(valid())(path)
        change(path)

    return put


def link(path):
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


UNUSABLE = {
    "empty": write(b""),
    "half of it": write_then(lambda path: path.write_bytes(path.read_bytes()[:99])),
    "another's": write({"hello": [1, 2]}),
    "a list": write([]),
    "no entries": write({"schema": 1}),
    "another schema": write({"schema": 2, "entries": []}),
    "deep": write(b"[" * 100_000),
    "no text": write(b"\xff\xfe\x00"),
    "a field too many": lambda path: write(valid(more=1))(path),
    "a config that is none": lambda path: write(valid(config=[1]))(path),
    "a time that is none": lambda path: write(valid(ms="fast"))(path),
    "an attempt that is none": lambda path: write(valid(tried=[["naive", 1.0]]))(path),
    "an entry that is none": write({"schema": 1, "entries": [7]}),
    "all may write": write_then(lambda path: path.chmod(0o602)),
    "a group may write": write_then(lambda path: path.chmod(0o620)),
    "a link": write_then(link),
    "a folder": lambda path: path.mkdir(),
    "a pipe": lambda path: os.mkfifo(path, 0o600),
    "another user's": write_then(lambda path: os.chown(path, NOBODY, -1)),
}


@pytest.mark.parametrize("what", [pytest.param(w, marks=needs_root if w == "another user's" else ()) for w in UNUSABLE])
def test_an_unusable_file_is_refused_with_one_warning_and_calls_go_on(what, file, fresh, said):
    UNUSABLE[what](file)
    library, problem = LIBRARIES[0], small("gemm")
    found, _ = library.candidates(problem, H200)
    before = file.stat()
    for _ in range(3):
        assert library.choose(problem, H200)[0] == found[0][0]
    (line,) = said()
    assert str(file) in line and "Remove it, or set TRITONKERNELS_TUNING to another file or to off" in line and "\n" not in line
    with pytest.raises(TuningError, match=r"cannot be written: .*Remove it, or set TRITONKERNELS_TUNING"):
        library.tuned.store(entry(library, problem, found[-1]))
    assert file.stat().st_mtime_ns == before.st_mtime_ns, "it may be somebody's"


def test_a_usable_file_is_used(file, fresh, said):
    """So that the test above is one of what it changes."""
    write_then(lambda path: None)(file)
    assert LIBRARIES[0].from_tables(small("gemm"), H200) and not said()


def test_the_ordinary_place_is_the_private_cache_folder(tmp_path, monkeypatch, fresh, said):
    monkeypatch.delenv("TRITONKERNELS_TUNING")
    monkeypatch.setenv("TRITONKERNELS_CACHE", str(tmp_path / "cache"))
    library, problem = LIBRARIES[0], small("gemm")
    found, _ = library.candidates(problem, H200)
    assert library.from_tables(problem, H200) is None and not (tmp_path / "cache").exists(), "to choose makes no folder"
    umask = os.umask(0)
    try:
        library.tuned.store(entry(library, problem, found[-1]))
    finally:
        os.umask(umask)
    modes = {p.name: p.stat().st_mode & 0o777 for p in (tmp_path / "cache", *(tmp_path / "cache").iterdir())}
    assert {name: mode for name, mode in modes.items() if not name.endswith(".lock")} == {"cache": 0o700, "tuning.json": 0o600}
    fresh()
    assert library.from_tables(problem, H200)
    (tmp_path / "cache").chmod(0o777)
    with pytest.raises(TuningError, match=r"writable for others\. Set TRITONKERNELS_CACHE to a folder of your own"):
        library.tuned.store(entry(library, problem, found[-1]))
    assert not said()


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch, fresh, said):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRITONKERNELS_TUNING", str(tmp_path / "file" / "tuning.json"))
    library, problem = LIBRARIES[0], small("gemm")
    found, _ = library.candidates(problem, H200)
    assert library.choose(problem, H200)[0] == found[0][0]
    with pytest.raises(TuningError, match="cannot be written"):
        library.tuned.store(entry(library, problem, found[-1]))


def test_no_home_is_no_table(monkeypatch, fresh, said):
    for name in ("TRITONKERNELS_TUNING", "TRITONKERNELS_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(pathlib.Path, "home", no_home)
    assert LIBRARIES[0].from_tables(small("gemm"), H200) is None and not said()
    with pytest.raises(TuningError, match=r"home directory.*Set TRITONKERNELS_CACHE"):
        LIBRARIES[0].tuned.path()


def test_off(file, monkeypatch, fresh):
    library, problem = LIBRARIES[0], small("gemm")
    best = entry(library, problem, library.candidates(problem, H200)[0][-1])
    library.tuned.store(best)
    assert library.from_tables(problem, H200)
    fresh()
    monkeypatch.setenv("TRITONKERNELS_TUNING", " OFF ")
    assert library.from_tables(problem, H200) is None
    with pytest.raises(TuningError, match="TRITONKERNELS_TUNING is off"):
        library.tuned.store(best)


def test_a_full_disk_leaves_the_file_as_it_was(file, fresh, monkeypatch):
    library, problem = LIBRARIES[0], small("gemm")
    best = entry(library, problem, library.candidates(problem, H200)[0][-1])
    library.tuned.store(best)
    before = file.read_bytes()

    def full(*_, **__):
        raise OSError("No space left on device")

    monkeypatch.setattr(json, "dump", full)
    with pytest.raises(TuningError, match="No space left on device"):
        library.tuned.store(best)
    assert file.read_bytes() == before and not list(file.parent.glob(".tuning-*"))


def test_writers_at_once_lose_nothing(file):
    library = LIBRARIES[0]
    problems = [dataclasses.replace(small("gemm"), m=m) for m in range(1, 13)]
    found = [entry(library, problem, library.candidates(problem, H200)[0][-1]) for problem in problems]
    threads = [threading.Thread(target=UserTable().store, args=(one,)) for one in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    read = UserTable()
    assert [read.find(library.package, p, "h200", library.compiler) for p in problems] == found


def test_a_lock_that_is_held_is_an_error_in_time(file, monkeypatch):
    library, problem = LIBRARIES[0], small("gemm")
    monkeypatch.setattr(user_file, "LOCK_SECONDS", 0.1)
    with FileLock(f"{file}.lock"), pytest.raises(TuningError, match=r"another process has held .*tuning.json.lock for 0.1 s"):
        UserTable().store(entry(library, problem, library.candidates(problem, H200)[0][0]))


def test_only_the_first_choice_touches_a_file(file, fresh, monkeypatch):
    library, problem = LIBRARIES[0], small("gemm")
    library.tuned.store(entry(library, problem, library.candidates(problem, H200)[0][-1]))
    for m in (17, 500):
        library.choose(dataclasses.replace(problem, m=m), H200)  # reads the model's tables
    fresh()
    touched = []
    for module, name in ((os, "open"), (os, "stat"), (builtins, "open")):
        real = getattr(module, name)
        noted = functools.partial(lambda real, *args, **kwargs: touched.append(args[0]) or real(*args, **kwargs), real)
        monkeypatch.setattr(module, name, noted)
    assert library.from_tables(problem, H200) and file in touched
    touched.clear()
    file.unlink()
    for m in (16, 17, 500):
        library.choose(dataclasses.replace(problem, m=m), H200)
    assert library.from_tables(problem, H200) and not touched
