"""What is said of noise is counted from the records."""

import dataclasses

import pytest
from stand_ins import record

from perf.measure import records
from perf.render import noise


def rows(n, **changes):
    return [record(case=str(i), rounds=90, left_out=0, exposed=0.0, **changes) for i in range(n)]


@pytest.fixture
def said(tmp_path):
    """said(records): the sentences on them."""

    def run(given):
        dated = [dataclasses.replace(row, environment={"date": "2026-11-23"}) for row in given]
        records.write_json(tmp_path / "gemv.json", dated)
        return list(noise.of(tmp_path))

    return run


def test_torch_against_itself(said):
    own = rows(20, implementation="torch", median_ms=1.0, again_ms=1.0)
    for row, again in zip(own, (0.995, 1.002, 1.03, 0.9)):
        row.again_ms = again
    assert said(own + rows(3))[0] == (
        "In 20 cases torch ran twice, as two contenders: the medians differ by 0.00% in the median and by 3.0% at 95 %;"
        " 90% are within 1%."
    )


def test_rounds_with_host_time(said):
    own = rows(4)
    own[0].left_out, own[0].rounds, own[1].exposed = 10, 80, 0.5
    (line, _) = said(own)
    assert line == (
        "Of 360 rounds in 4 rows 10 may include host time and are left out; in 1 rows too few remain without, so their times"
        " may include it."
    )


def test_cases_in_which_the_clocks_were_kept_down(said):
    own = [*rows(3, throttled="power cap"), *rows(3, throttled="power cap", design="tiled"), *rows(1, op="gemm", throttled="")]
    assert said(own)[-1].endswith("power cap in 3 of 4 cases.")
    assert said(rows(2, throttled=""))[-1].endswith("in none of 2 cases.")


def test_of_earlier_records_nothing_is_said(said):
    assert said([record()]) == []
    assert said([record(implementation="peer", again_ms=1.0, rounds=1, left_out=0)]) == []
