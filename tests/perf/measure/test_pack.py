"""`perf pack` keeps every record, once, in the folder of its GPU."""

import json

import pytest
from stand_ins import record

from perf.__main__ import main
from perf.measure import measured, packed, records, sweep_records

H200, A40 = ({"device": device, "date": "2026", "commit": "one"} for device in ("NVIDIA H200", "NVIDIA A40"))


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(measured, "RESULTS", tmp_path / "results")
    measured.RESULTS.mkdir()
    return measured.RESULTS


def row(op, us):
    return {"op": op, "times": [["tiled", {}, us, None]]}


def lines(*values):
    return "".join(json.dumps(value) + "\n" for value in values)


def sweep(folder, name, *values):
    (folder / "sweep").mkdir(exist_ok=True)
    (folder / f"sweep/{name}.jsonl").write_text(lines(*values))


def times(path, op=None):
    return [row["times"][0][2] for _, row in sweep_records.read(path, op)]


def test_rows_of_sweeps_are_in_the_file_of_their_gpu_each_once(results, tmp_path):
    of_h200, of_a40 = ({"environment": environment, "settings": {}} for environment in (H200, A40))
    sweep(tmp_path, "gemm", of_h200, row("gemm", 3.0), row("gemm", 4.0), of_a40, row("gemm", 5.0))
    assert main(["pack", str(tmp_path / "sweep")]) == 0
    assert times(results / "h200/sweep.jsonl.xz") == [3.0, 4.0] and times(results / "a40/sweep.jsonl.xz") == [5.0]
    before = (results / "h200/sweep.jsonl.xz").read_bytes()
    assert main(["pack", str(tmp_path / "sweep")]) == 0
    assert (results / "h200/sweep.jsonl.xz").read_bytes() == before
    sweep(tmp_path, "gemm", of_h200, row("gemm", 4.0), row("gemm", 6.0))
    sweep(tmp_path, "gemv", of_h200, row("gemv", 7.0))
    assert main(["pack", str(tmp_path / "sweep")]) == 0
    assert times(results / "h200/sweep.jsonl.xz") == [3.0, 4.0, 6.0, 7.0]
    assert times(results / "h200/sweep.jsonl.xz", "gemv") == [7.0]


def test_a_suite_keeps_its_name_and_is_read_by_it(results, tmp_path):
    records.write_json(tmp_path / "llm.json", [record(environment=H200, case="3x4")])
    (tmp_path / "errors.json").write_text("{}")
    assert main(["pack", str(tmp_path)]) == 0
    assert [path.relative_to(results).as_posix() for path in results.rglob("*.*")] == ["h200/llm.json.xz"]
    (found,) = records.read_json(results / "h200/llm.json")
    assert (found.case, found.environment) == ("3x4", H200)
    assert measured.files(results / "h200") == [results / "h200/llm.json.xz"]


def test_a_packed_file_with_the_same_text_stays_as_it_is(tmp_path):
    """Other versions of xz write other bytes, which git would see as a change."""
    file = tmp_path / "r.json.xz"
    packed.write(file, "one")
    other = packed.lzma.compress(b"one", preset=0)
    assert other != file.read_bytes() and packed.read(file) == "one"
    file.write_bytes(other)
    packed.write(file, "one")
    assert file.read_bytes() == other
    packed.write(file, "two")
    assert packed.read(file) == "two"


def test_what_is_no_record_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["pack", str(tmp_path)])
    assert f"no records in {tmp_path}" in capsys.readouterr().err
    (tmp_path / "r.json.xz").write_bytes(b"{}")
    with pytest.raises(ValueError, match=r"r.json.xz is not what xz writes"):
        packed.read(tmp_path / "r.json")
