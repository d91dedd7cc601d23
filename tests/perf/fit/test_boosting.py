"""Trees for what the model leaves: they find what depends on several figures at once, and predict it for calls not seen."""

import math

import numpy
import pytest

from perf.fit import boosting, counted, evaluate, residuals
from tests.harness import thorough
from tests.perf.fit.test_fit import H200, PACKAGE, fitted, runs, shapes  # noqa: F401
from tritonkernels.choice import efficiency, learned


def calls(number, seed, noise=0.05, wrong=0.0):
    """(figures, logarithms, shapes, weights, logarithms without noise): a call is slower if K is large and it has 8 warps, and
    on "b" a little. Five calls are of one shape, which has a K and an M."""
    random = numpy.random.default_rng(seed)
    rows, logs, true = [], [], []
    for at in range(number):
        if at % 5 == 0:
            k, m = random.uniform(4, 16, 2)
        row = {"k": k, "warps": float(random.choice([4, 8])), "m": m}
        row |= {"on b": 1.0} if random.random() < 0.5 else {}
        true.append(0.3 * (row["k"] > 11 and row["warps"] == 8) + 0.1 * ("on b" in row))
        logs.append(true[-1] + random.normal(0, noise) + (3.0 if random.random() < wrong else 0.0))
        rows.append(row)
    shapes, times = numpy.arange(number) // 5, numpy.exp(logs)
    weights = [times[5 * shape : 5 * shape + 5].min() / time for shape, time in zip(shapes, times)]
    return rows, logs, shapes, weights, numpy.array(true)


def factors(trees, rows):
    """Factors of calls with these figures, a dict each."""
    return trees.factors({name: numpy.array([row.get(name, 0.0) for row in rows]) for name in trees.names}, len(rows))


@pytest.mark.parametrize("wrong", (0.0, 0.02))
def test_what_depends_on_several_figures_is_found(wrong):
    """Near the threshold, which is known as well as there are calls, it may be off; a few wrong times move little."""
    trees = boosting.boosted(*calls(2500, seed=1, wrong=wrong)[:4])
    rows, *_, true = calls(500, seed=2)
    off = numpy.abs(numpy.log(factors(trees, rows)) - true)
    assert numpy.median(off) < 0.03 and numpy.mean(off > 0.1) < 0.05
    assert set(trees.names) <= {"k", "warps", "m", "on b"} and {"k", "warps", "on b"} <= set(trees.names)


def test_what_a_whole_shape_takes_counts_little_beside_how_its_calls_differ():
    """Which a choice asks for, first of the fast ones."""
    left, of_shapes, weights = numpy.array([0.3, 0.1, 3.0, -0.1]), numpy.array([0, 0, 0, 1]), numpy.array([1.0, 1.0, 0.05, 0.7])
    mean = (0.3 + 0.1 + 0.05 * 3.0) / 2.05
    expected = [0.3 - mean, 0.1 - mean, 0.05 * boosting.OUTLIER, 0.0] + boosting.LEVEL * numpy.array(
        [boosting.OUTLIER] * 3 + [-0.1]
    )
    assert mean > boosting.OUTLIER
    assert boosting._residuals(left, of_shapes, weights) == pytest.approx(expected, abs=boosting.GRID)


def test_a_run_counts_by_how_fast_it_is_among_those_of_its_shape(fitted):  # noqa: F811
    own = counted.counted(shapes(5), H200)
    numbers, weights = residuals._among(own)
    assert len(set(numbers)) == 5 == max(numbers) + 1
    for run, number, weight in zip(own, numbers, weights):
        others = [other for other, of in zip(own, numbers) if of == number]
        assert all(other.shape is run.shape for other in others)
        assert weight == min(other.run.seconds for other in others) / run.run.seconds


def test_a_single_call_changes_little():
    rows, _, of_shapes, *_ = calls(100, seed=3)
    logs = [0.4, *[0.0] * 99]
    trees = boosting.boosted(rows, logs, of_shapes, [1.0] * 100, trees=10)
    assert 0.0 < numpy.abs(numpy.log(factors(trees, rows))).max() < 0.02, "a third of what it would say alone"


def test_questions_do_not_depend_on_the_order_in_which_sums_are_added():
    random = numpy.random.default_rng(4)
    rows, logs, ofs, weights, _ = calls(4000, seed=4)
    answers = boosting._questions(numpy.array([[row["k"], row["m"], row["warps"]] for row in rows])).answers
    gridded = boosting._residuals(numpy.array(logs), ofs, weights)
    assert gridded.dtype == numpy.float32 and gridded.sum() == gridded.astype("f8").sum(), "exact"
    expected = boosting._asked(answers, gridded)
    for _ in range(3):
        order = random.permutation(len(rows))
        assert boosting._asked(answers[order], gridded[order]) == expected


def test_questions_have_both_answers_and_are_asked_once():
    """A figure that is a multiple of another asks the same; one that never changes asks nothing."""
    figures = numpy.array([[i, 2.0 * i, 7.0, i % 2] for i in range(200)], float)
    found = boosting._questions(figures)
    assert set(found.figure) == {0, 3} and (found.figure == 3).sum() == 1
    assert (found.figure == 0).sum() <= boosting.THRESHOLDS
    assert ((found.answers.mean(axis=0) > 0) & (found.answers.mean(axis=0) < 1)).all()
    assert numpy.array_equal(figures[:, found.figure] > found.threshold, found.answers)


def test_the_choice_reads_what_was_written(tmp_path, monkeypatch):
    rows, *others, _ = calls(300, seed=5)
    trees = boosting.boosted(rows, *others, trees=20)
    monkeypatch.setattr(efficiency, "TABLES", tmp_path)
    for folder in ("sustained", "learned"):
        (tmp_path / "h200" / folder).mkdir(parents=True)
    learned.path_of("h200", "tritonkernels", "gemm").write_bytes(residuals.content(trees))
    read = learned.trees_of.__wrapped__("h200", "tritonkernels", "gemm")
    assert list(factors(read, rows)) == list(factors(trees, rows))
    assert learned.trees_of.__wrapped__("h200", "tritonkernels", "gemv") is None


@thorough
def test_a_choice_that_the_model_gets_wrong_becomes_good(fitted):  # noqa: F811
    """Times of another GPU than the model's: configs of 8 warps take 1.4 times as long on products with few k."""

    drawn = {}

    def slower(seed, number):
        for run in counted.counted(shapes(number, noise=0, outliers=0, seed=seed), H200):
            factor = 1.4 if run.config.num_warps == 8 and run.problem.k < 600 else 1.0
            shape = drawn.setdefault(run.shape.key, run.shape._replace(judges=True))
            yield run._replace(shape=shape, run=run.run._replace(seconds=run.run.seconds * factor))

    trees = residuals.fitted(list(slower(1, 100)), fitted)
    before, after = (evaluate.summary(evaluate.outcomes(list(slower(2, 60)), fitted, own)).mean for own in ({}, trees))
    assert list(trees) == [(PACKAGE, "gemm")] and after - 1 < 0.5 * (before - 1), (before, after)


def test_few_shapes_teach_nothing(fitted):  # noqa: F811
    few = [run._replace(shape=run.shape._replace(judges=True)) for run in counted.counted(shapes(10), H200)]
    assert len({run.shape.key for run in few}) < residuals.FEWEST and residuals.fitted(few, fitted) == {}


def test_a_sample_is_what_the_model_left(fitted):  # noqa: F811
    run = counted.counted(shapes(1), H200)[0]
    ((figures, log),) = residuals._samples([run], fitted)
    assert math.exp(log) == pytest.approx(run.run.seconds / counted.predicted([run], fitted)[1].seconds[0])
    assert figures["k"] == pytest.approx(math.log2(run.problem.k)) and figures[f"design {run.run.design}"] == 1.0
