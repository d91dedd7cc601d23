"""docs/choice.md: current with the records, and its figures are those of the outcomes."""

import pytest
import torch

from perf.fit import choice_page, evaluate
from perf.fit.counted import Counted
from perf.fit.timed import Run, Timed
from perf.render import chapter
from tritonkernels.problem import GemvProblem
from tritonkernels.target import Target

H200 = Target.named("h200")


def outcome(batch, chosen_us, best_us, package="tritonkernels"):
    problem = GemvProblem(
        torch.float32, torch.float32, "ieee", False, batch, 64, 32, 1.0, 0.0, torch.float32, "col", True, True, False
    )
    shape = Timed("llm", problem, None, {})
    runs = [
        Counted(shape, package, Run(name, {"rows": 4}, us / 1e6), "", problem, {}, (), H200)
        for name, us in (("staged", chosen_us), ("split", best_us))
    ]
    return evaluate.Outcome(*runs, 7e-6, 8e-6)


def test_the_page_is_current():
    assert (chapter.DOCS / "choice.md").read_text() == choice_page.markdown()


def test_the_worst_are_named_with_times_and_predictions():
    text = choice_page.section("h200", [outcome(1, 10, 10), outcome(2, 15, 10)])
    rows = [line for line in text.splitlines() if line.startswith("| gemv ieee")]
    assert rows[0] == (
        "| gemv ieee batch 2 m 64 n 32 a_dtype float32 a_layout col | tritonkernels | 1.50 "
        "| `staged` rows=4: 15.0 (7.0) | `split` rows=4: 10.0 (8.0) |"
    )
    assert "batch" not in rows[1]


@pytest.mark.parametrize(
    "times, met", ((((103, 100),) * 99 + ((120, 100),), False), (((102, 100),) * 99 + ((190, 100),), True))
)
def test_the_gates_are_told_as_they_are(times, met):
    text = choice_page.section("h200", [outcome(1, *pair) for pair in times])
    assert ("the gates are met" in text) is met and ("**not met**" in text) is not met


def test_the_summary():
    s = evaluate.summary([outcome(1, us, 10) for us in (10, 10, 20, 40)])
    assert (s.mean, s.p95, s.p99, s.fine, s.worst) == (pytest.approx(8**0.25), 4, 4, 0.5, 4)


def test_percentiles_are_values_that_occur():
    s = evaluate.summary([outcome(1, 100 + us, 100) for us in range(1, 101)])
    assert (s.p95, s.p99) == (pytest.approx(1.95), pytest.approx(1.99))
