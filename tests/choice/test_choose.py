"""The choice is total, pure and legal: for random problems, every operation and every known GPU."""

import contextlib
import copy
import dataclasses
import pickle
import random

import pytest
import torch

import cuda_reference.launch
from perf.measure import shapes
from tests.harness import LIBRARIES, prepare
from tritonkernels import OPS
from tritonkernels.choice import efficiency, model
from tritonkernels.choice.work import Work
from tritonkernels.config import config_of
from tritonkernels.design import as_dict
from tritonkernels.errors import UnsupportedError
from tritonkernels.target import KNOWN, Target

H200 = Target.named("h200")
GPUS = [t for t in KNOWN if t.is_gpu]
DRAWN = [op for op in OPS if op in shapes.FAMILIES]


def problems(op, number, seed):
    return [shape.problem for shape in shapes.draw(op, number, seed)]


def willing(library, op, number, seed):
    """The problems that some design of the library computes."""
    return [p for p in problems(op, number, seed) if not all(d.refuses(p, H200) for d in library.designs(op))]


@pytest.mark.parametrize("op", DRAWN)
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_every_gpu_gets_a_legal_choice_or_all_reasons(library, op):
    chooser, chosen_at_all = random.Random(op), 0
    for problem in problems(op, 30, seed=1):
        target = chooser.choice(GPUS)
        try:
            design, config = library.choose(problem, target)
        except UnsupportedError as error:
            refusals = [d.refuses(problem, target) for d in library.designs(op)]
            assert library.misses(target) or all(refusals) or "configs fits" in str(error)
            continue
        chosen_at_all += 1
        assert design.refuses(problem, target) is None
        assert as_dict(config) in [as_dict(c) for c in design.configs(problem, target)]
        assert design.transform(as_dict(config)) is None, "of another error bound than the operation's"
    assert chosen_at_all > 10


@pytest.mark.parametrize("op", DRAWN)
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_the_ranking_has_every_legal_config_once_the_least_time_first(library, op):
    """After the choice, which is the first of those that were timed."""
    for problem in willing(library, op, 5, seed=2):
        ranked = library.ranking(problem, H200)
        others = [c.cost for c in ranked[1:]]
        assert others == sorted(others) and min(c.cost for c in ranked) > 0
        assert ranked[0].cost == min(c.cost for c in ranked if c.timed or not any(c.timed for c in ranked))
        found = [(c.design.name, str(as_dict(c.config))) for c in ranked]
        legal = [
            (d.name, str(as_dict(c)))
            for d in library.designs(op)
            if not d.is_lesson and d.refuses(problem, H200) is None
            for c in d.configs(problem, H200)
            if d.transform(as_dict(c)) is None
        ]
        assert sorted(found) == sorted(legal) and len(set(found)) == len(found)
        assert library.choose(problem, H200) == ranked[0][:2]


@pytest.mark.parametrize("op", DRAWN)
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_the_choice_is_the_first_of_the_ranking(library, op):
    """Although it is found another way; of all designs and of each alone, on GPUs and without one."""
    chooser = random.Random(op)
    for problem in willing(library, op, 12, seed=5):
        for target in chooser.sample(KNOWN, 4):
            for design in (None, *chooser.sample(library.names(op), 2)):
                with contextlib.suppress(UnsupportedError):
                    assert library.choose(problem, target, design) == library.ranking(problem, target, design)[0][:2]


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_of_equals_the_later_design_is_chosen(library, monkeypatch):
    """They are in the order of what they add to each other."""
    problem = willing(library, "gemm", 2, seed=14)[0]
    design, config = library.choose(problem, H200)
    twins = tuple(dataclasses.replace(design, name=name) for name in ("first", "second"))
    monkeypatch.setitem(library._designs, "gemm", twins)
    monkeypatch.setattr(library, "_choices", {})
    first, *others = library.ranking(problem, H200)
    assert library.choose(problem, H200) == first[:2] == (twins[1], config)
    assert [choice.design.name for choice in others if choice.config == config] == ["first"]


@pytest.mark.parametrize("op", DRAWN)
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_a_choice_asks_for_the_work_of_each_config_once_and_for_no_estimate(library, op, monkeypatch):
    """So it takes a fraction of a millisecond. A repeated one asks for nothing."""
    asked = []

    def counting(design):
        def work(problem, config, target):
            asked.append((design.name, id(config)))
            return design.work(problem, config, target)

        return dataclasses.replace(design, work=work)

    problem, monkeypatched = willing(library, op, 1, seed=6)[0], tuple(map(counting, library.designs(op)))
    number = sum(choice.timed for choice in library.ranking(problem, H200))
    monkeypatch.setitem(library._designs, op, monkeypatched)
    monkeypatch.setattr(library, "_choices", {})
    monkeypatch.setattr(model, "estimates", None)
    library.choose(problem, H200)
    assert len(asked) == len(set(asked)) == number
    library.choose(problem, H200)
    assert len(asked) == number


ON_H100 = (  # what was predicted faster than its bytes can be read: long rows and few, in fp32 and fp16
    *(
        ("gemv", (torch.empty(m, 4096, dtype=dtype, device="meta"), torch.empty(4096, dtype=dtype, device="meta")))
        for m in (16384, 65536)
        for dtype in (torch.float32, torch.float16)
    ),
)


@pytest.mark.parametrize("op", DRAWN)
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_no_prediction_is_below_the_roofline(library, op):
    """No design is timed below it, in 161,919 records. And nothing that is said of a call takes longer than the call."""
    known = [prepare(op, *args).problem for name, args in ON_H100 if name == op]
    for target in (Target.named("h100"), H200, Target.named("RTX 4090")):
        for problem in (*known, *willing(library, op, 3, seed=9)):
            with contextlib.suppress(UnsupportedError):
                least = max(problem.bytes / target.dram_bandwidth, problem.flops / target.peak(problem.precision))
                for design, config, seconds, estimate, _ in library.ranking(problem, target):
                    assert seconds == estimate.seconds >= least * (1 - 1e-9), (problem, design.name, as_dict(config))
                    assert max(estimate[1:-1]) <= seconds * (1 + 1e-9), (problem, design.name, as_dict(config))


def with_new(design, number):
    """The design with new configs: of each another one, with a number that no record has, and that takes just a launch."""

    def new(config):
        own = as_dict(config) | number
        if isinstance(config, dict):
            return cuda_reference.launch.config_of(**own)
        numbers = {name: value for name, value in own.items() if name in config.kwargs or name in number}
        return config_of(numbers, config.num_warps, config.num_stages, config.maxnreg)

    def configs(problem, target):
        known = list(design.configs(problem, target))
        return [*known, *map(new, known)]

    def work(problem, config, target):
        nothing = Work(1, 32, 0.0, "ieee", 0.0, 0.0, 0.0)
        return (nothing,) if number.items() <= as_dict(config).items() else design.work(problem, config, target)

    return dataclasses.replace(design, configs=configs, work=work)


@pytest.mark.parametrize("target", (H200, Target.named("a100")), ids=lambda target: target.name)
@pytest.mark.parametrize("op", DRAWN)
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_what_was_never_timed_is_not_chosen_unasked(library, op, target, monkeypatch):
    """On a GPU without records neither. It is reached by its name, and leads the others of the ranking."""
    number = {"NEVER": 2}
    problem = next(p for p in willing(library, op, 9, seed=8) if any(c.timed for c in choices(library, p, target)))
    expected = library.choose(problem, target)
    assert library.ranking(problem, target)[0].timed
    monkeypatch.setitem(library._designs, op, tuple(with_new(design, number) for design in library.designs(op)))
    monkeypatch.setattr(library, "_choices", {})
    chosen = library.choose(problem, target)
    assert (chosen[0].name, chosen[1]) == (expected[0].name, expected[1])
    first, second, *_ = library.ranking(problem, target)
    assert first[:2] == chosen and first.timed and number.items() <= as_dict(second.config).items() and not second.timed
    assert as_dict(library.choose(problem, target, None, number)[1])["NEVER"] == 2
    assert number.items() <= as_dict(library.candidates(problem, target)[0][1][1]).items(), (
        "tune tries it right after the choice"
    )


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_where_nothing_was_timed_all_compete(library, monkeypatch):
    """Designs of a precision without records among them: those that have records in others do not come first."""
    problem = willing(library, "matmul", 1, seed=9)[0]
    figures = {key: dataclasses.replace(own, timed=False) for key, own in efficiency.sustained("h200").items()}
    monkeypatch.setattr(efficiency, "sustained", lambda name: figures)
    monkeypatch.setattr(library, "_choices", {})
    ranked = library.ranking(problem, H200)
    assert [c.cost for c in ranked] == sorted(c.cost for c in ranked) and not any(c.timed for c in ranked)
    assert library.choose(problem, H200) == ranked[0][:2]


def choices(library, problem, target):
    with contextlib.suppress(UnsupportedError):
        return library.ranking(problem, target)
    return []


@pytest.mark.parametrize("op", DRAWN)
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_the_same_config_is_the_same_object(library, op):
    """So what follows from it alone is found by it, for all problems."""
    for problem in willing(library, op, 3, seed=7):
        taking = [design for design in library.designs(op) if design.refuses(problem, H200) is None]
        assert taking
        for design in taking:
            first, again = (list(design.configs(problem, H200)) for _ in range(2))
            assert all(a is b for a, b in zip(first, again, strict=True)) and len(set(map(id, first))) == len(first)


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_the_choice_is_pure(library, monkeypatch):
    """No torch call, no file: the same from the problem alone, also where what is known of it is dropped."""
    drawn = willing(library, "matmul", 20, seed=3)
    first = [library.choose(p, H200) for p in drawn]
    library._choices.clear()
    monkeypatch.setattr(torch, "empty", None)
    monkeypatch.setattr("builtins.open", None)
    again = [library.choose(p, H200) for p in drawn]
    assert [(d.name, as_dict(c)) for d, c in first] == [(d.name, as_dict(c)) for d, c in again]


EMPTY = {"gemm": ("m", "n", "k"), "gemv": ("batch", "m", "n"), "matmul": ("batch", "m", "n", "k")}


@pytest.mark.parametrize("op", DRAWN)
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_problems_without_elements_have_a_ranking(library, op):
    """No count divides by their sizes."""
    for problem in willing(library, op, 20, seed=4):
        for name in EMPTY.get(op, ("n",)):
            empty = dataclasses.replace(problem, **{name: 0})
            for target in (H200, Target.named("interpreter" if library.package == "tritonkernels" else "simt")):
                assert library.ranking(empty, target)


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_a_config_cannot_be_changed(library):
    """It is the same object for all calls that have it: one that a caller changed would compute all of them."""
    call = prepare("gemv", torch.empty(64, 64), torch.empty(64))
    _, config = library.choose(call.problem, Target.named("h200"))
    numbers = config if isinstance(config, dict) else config.kwargs
    for change in (lambda: numbers.update(SPLITS=3), lambda: numbers.__setitem__("SPLITS", 3), lambda: numbers.__ior__({})):
        with pytest.raises(TypeError, match="shared"):
            change()
    assert copy.deepcopy(numbers) == pickle.loads(pickle.dumps(numbers)) == numbers


@pytest.mark.parametrize("op", DRAWN)
def test_a_problem_keeps_its_hash_in_its_own_process_only(op):
    """Strings have another one in another process."""
    problem = problems(op, 1, seed=7)[0]
    equal = dataclasses.replace(problem)
    assert hash(problem) == hash(problem) == hash(equal) and problem == equal
    assert problem.__getstate__().keys() == {field.name for field in dataclasses.fields(problem)}
    assert pickle.loads(pickle.dumps(problem)) == problem
