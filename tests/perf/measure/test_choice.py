"""perf choice: each operation and package has a row of the times of its choices."""

from perf.__main__ import main
from perf.measure import choice, shapes


def test_every_operation_has_a_row_of_each_package(monkeypatch, capsys):
    monkeypatch.setattr(shapes, "FAMILIES", {op: shapes.FAMILIES[op] for op in ("gemm", "gemv")})
    monkeypatch.setattr(choice, "_in_a_new_process", choice.taken)
    assert main(["choice", "--number", "4"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [row[:3] for row in rows] == [[op, package, "3"] for op in ("gemm", "gemv") for package in choice.PACKAGES.values()]
    for median, most, worst, first in (map(float, row[3:]) for row in rows):
        assert 0 < median <= most <= worst and first > 0


def test_each_choice_is_made(monkeypatch):
    """Not look-ups: each problem is new."""
    chosen = []
    monkeypatch.setattr(
        "tritonkernels.library.best", lambda package, designs, problem, target: chosen.append(problem) or problem
    )
    monkeypatch.setattr("tritonkernels.launch.LIBRARY._choices", {})
    assert len(choice.taken("tritonkernels", "gemm", choice.Target.named("h200"), 5)) == 5 == len(set(chosen))
