"""Records survive the file, and the file is strict JSON."""

import csv
import json
import math

import pytest
from stand_ins import record

from perf.measure import records


def test_round_trip(tmp_path):
    file = tmp_path / "r.json"
    records.write_json(file, [record(problem={"m": 3}), record(problem={"m": 4}, ok=False, message="no\nway")])
    first, second = records.read_json(file)
    assert first == record(problem={"m": 3})
    assert (second.problem, second.message) == ({"m": 4}, "no\nway")


def test_a_record_is_a_line_and_its_environment_is_written_once(tmp_path):
    file, other = tmp_path / "r.json", {"torch": "2.14", "clock": {"max_sm_mhz": None}}
    written = [record(seed=0), record(seed=1, environment=other), record(seed=2)]
    records.write_json(file, written)
    read = json.loads(file.read_text())
    assert read["environments"] == [record().environment, other]
    assert [entry["environment"] for entry in read["records"]] == [0, 1, 0]
    assert [json.loads(line.rstrip(",")) for line in file.read_text().splitlines()[-4:-1]] == read["records"]
    assert read["records"][0]["problem"]["stride"] == [1, 2]
    assert read["records"][0]["ratio_to_torch"] is None
    assert [r.environment for r in records.read_json(file)] == [r.environment for r in written]


def test_no_records_are_a_file_too(tmp_path):
    records.write_json(tmp_path / "r.json", [])
    assert records.read_json(tmp_path / "r.json") == []


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_json_has_no_nan(tmp_path, value):
    file = tmp_path / "r.json"
    records.write_json(file, [record(error=value, problem={"alpha": value, "list": [value]})])
    assert "NaN" not in file.read_text()
    assert "Infinity" not in file.read_text()
    (back,) = records.read_json(file)
    assert (back.error, back.problem) == (None, {"alpha": None, "list": [None]})


def test_nan_literals_are_refused_on_reading(tmp_path):
    file = tmp_path / "r.json"
    records.write_json(file, [record()])
    file.write_text(file.read_text().replace("0.25", "NaN"))
    with pytest.raises(ValueError, match="NaN is not JSON"):
        records.read_json(file)


def test_writing_leaves_nothing_else_behind(tmp_path):
    records.write_json(tmp_path / "r.json", [record()])
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]


def test_csv_is_flat_and_has_every_column(tmp_path):
    file = tmp_path / "r.csv"
    records.write_csv(file, [record(), record(op="gemm", problem={"k": 9})])
    first, second = csv.DictReader(file.open(newline=""))
    assert first["environment.clock.max_sm_mhz"] == "1980.0"
    assert (first["problem.m"], first["problem.k"]) == ("3", "")
    assert (second["problem.m"], second["problem.k"]) == ("", "9")
    assert first["config.BLOCK_M"] == "4"
