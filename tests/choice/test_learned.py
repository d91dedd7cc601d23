"""What was learned of the model's errors chooses among contenders, and among nothing else."""

import dataclasses
import math

import numpy
import pytest

from perf.measure import shapes
from tests.choice.test_choose import DRAWN, willing
from tests.harness import LIBRARIES
from tritonkernels.analysis import roofline
from tritonkernels.choice import efficiency, learned, model
from tritonkernels.choice.learned import NEAR, Trees
from tritonkernels.design import as_dict
from tritonkernels.target import Target

H200 = Target.named("h200")
libraries = pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)

TWO = Trees(  # the first asks for k, then for warps; the other for warps twice
    numpy.array(["k", "warps"]),
    numpy.array([0, 1, 1, 1]),
    numpy.array([10.0, 4.0, 1.0, 6.0]),
    numpy.array([[0, 2], [1, 3]]),
    numpy.array([[100, -80, 90, 50], [10, 20, 30, 40]], numpy.int8),
)


@pytest.mark.parametrize(
    "row, log",
    [
        ({"k": 10.0, "warps": 4.0}, 0.1 + 0.03),  # a threshold is not above itself
        ({"k": 11.0, "warps": 4.0}, 0.09 + 0.03),
        ({"k": 9.0, "warps": 8.0, "else": 3.0}, -0.08 + 0.04),
        ({"k": 11.0}, 0.09 + 0.01),  # a figure that a call lacks is 0
    ],
)
def test_answers_lead_to_values(row, log):
    assert list(TWO.factors(row, 1)) == pytest.approx([math.exp(log)])
    with_another = {name: numpy.array([0.0, value]) for name, value in row.items()}
    assert list(TWO.factors(with_another, 2)) == pytest.approx([math.exp(0.11), math.exp(log)])


def favours(name):
    """Trees that make a design about nine times as fast as it is predicted."""
    values = numpy.array([[0, round(-math.log(9) / learned.UNIT)]])
    return Trees(numpy.array([f"design {name}"]), numpy.array([0]), numpy.array([0.5]), numpy.array([[0]]), values)


@pytest.fixture
def fresh(library, monkeypatch):
    """fresh(trees): these were learned. Times are as predicted, although below the roofline."""
    monkeypatch.setattr(roofline, "limits", lambda *of: {"compute_s": 0.0, "memory_s": 0.0})

    def set_trees(trees):
        monkeypatch.setattr(learned, "trees_of", lambda *of: trees)
        monkeypatch.setattr(library, "_choices", {})

    return set_trees


@libraries
def test_contenders_are_chosen_among_by_what_was_learned_and_others_are_not(library, fresh):
    seen = set()
    for problem in willing(library, "matmul", 25, seed=11):
        fresh(None)
        timed = [choice for choice in library.ranking(problem, H200) if choice.timed]
        for name in {choice.design.name for choice in timed}:
            own = min(choice.cost for choice in timed if choice.design.name == name)
            is_near = own <= NEAR * timed[0].cost
            seen.add(is_near)
            fresh(favours(name))
            chosen, (first, *others) = library.choose(problem, H200), library.ranking(problem, H200)
            assert all(first.cost <= other.cost for other in others if other.timed)
            assert (chosen[0].name == name) == is_near, (problem, name)
            assert chosen == first[:2] and first.cost == first.estimate.seconds
            if is_near:
                assert first.cost == pytest.approx(own / 9, rel=1e-3)
    assert seen == {True, False}


@libraries
def test_it_is_the_table_of_the_gpu_or_of_the_reference(library):
    for op in ("matmul", "gemm"):
        own = learned.trees_of("h200", library.package, op)
        assert own is learned.trees_of("a new one", library.package, op) is not None
    assert learned.trees_of("h200", library.package, "no such operation") is None


@pytest.mark.parametrize("op", DRAWN)
@libraries
def test_every_figure_is_a_number_and_trees_find_theirs(library, op):
    """A figure that no call has would be one that was renamed, with a table that was not fitted again; but for classes and
    designs, of which a few problems need not have all."""
    known, rate = set(), model.rates(H200)
    for problem in [*willing(library, op, 20, seed=12), *map(empty, willing(library, op, 3, seed=13))]:
        for choice in {choice.design.name: choice for choice in library.ranking(problem, H200)}.values():
            works = tuple(choice.design.work(problem, choice.config, H200))
            sustained = efficiency.of_design(
                efficiency.sustained("h200"), library.package, choice.design.key, problem.precision
            )
            contenders = [model.Contender(choice.design.name, choice.config, works, sustained)]
            figures = learned.figures(problem, contenders, model.predicted(contenders, rate), rate, [0])
            assert all(numpy.isfinite(values).all() for values in figures.values()), (problem, as_dict(choice.config))
            known |= figures.keys()
    numbers = (part for own in efficiency.sustained("h200").values() for factor in own.factors for part in factor.split())
    known |= {part.partition("=")[0] for part in numbers if "=" in part} | {*efficiency.DEPENDENT}
    trees = learned.trees_of("h200", library.package, op)
    for name in set(trees.names.tolist() if trees else ()) - known:
        field, *rest = name.split()
        assert rest and (field == "design" or hasattr(problem, field)), name


def empty(problem):
    sizes = [field.name for field in dataclasses.fields(problem) if field.name in ("n", "m", "k")]
    return dataclasses.replace(problem, **{sizes[0]: 0})


def test_the_shipped_trees_are_of_operations_that_are_drawn():
    of_packages = {f"{library.package}.{op}.npz" for library in LIBRARIES for op in shapes.FAMILIES}
    found = {path.name for path in (efficiency.TABLES / "h200" / "learned").glob("*.npz")}
    assert {"tritonkernels.matmul.npz", "cuda_reference.matmul.npz"} <= found <= of_packages
