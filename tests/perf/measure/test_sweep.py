"""perf sweep: which contenders a trial has, what it measures on a simulated GPU, its records, resumption and the command."""

import itertools
import json
import math

import pytest
import torch

from perf.__main__ import main
from perf.measure import cases, classes, contenders, shapes, sweep, sweep_records, trial
from perf.measure.environment import environment
from tests.choice.stand_ins import SimulatedGpu, library, right
from tritonkernels.choice import efficiency
from tritonkernels.design import as_dict
from tritonkernels.errors import BuildError
from tritonkernels.target import Target

CPU = torch.device("cpu")
US = 1e-6


def shape(case):
    return shapes.Shape("a family", case, shapes.prepared(case).problem)


def sweep_gemm(number=3, **options):
    return sweep.jobs(shapes.draw("gemm", number), ["tritonkernels"], shapes.H200, options.pop("number", 10), **options)


def numbers_of(choices):
    return [(choice.design.name, as_dict(choice.config)) for choice in choices]


def never_timed(choices):
    return numbers_of(choice for choice in choices if not choice.timed)


@pytest.mark.parametrize("package", ("tritonkernels", "cuda_reference"))
def test_a_trial_has_the_first_of_the_ranking_and_others_at_random(package):
    gemm = shape(cases.gemm(1536, 1536, 1536))
    ranking = trial.library(package).ranking(gemm.problem, shapes.H200)
    ranked, never = numbers_of(ranking), never_timed(ranking)
    for number in (1, 4, 10, 30):
        planned = list(trial.plan(gemm, package, shapes.H200, number).contenders)
        few = number // trial.FEW + min(number // trial.FEW, len(never))
        assert len(planned) == number and all(planned.count(c) == 1 and c in ranked for c in planned)
        assert planned[: number - few] == [c for c in ranked if c not in planned[number - few :]][: number - few]
    assert planned == list(trial.plan(gemm, package, shapes.H200, number).contenders)
    everything = trial.plan(gemm, package, shapes.H200, 10000).contenders
    assert len(everything) == len(ranked) and all(c in everything for c in ranked)


@pytest.mark.parametrize("package", ("tritonkernels", "cuda_reference"))
def test_a_trial_has_some_that_were_never_timed(package, monkeypatch):
    """However slow they are by prediction; of different designs, although one has most of the configs."""
    gemm, left_out = shape(cases.gemm(1536, 1536, 1536)), (f"{package} gemm.rasterized ieee", f"{package} gemm.stream_k ieee")
    left = {key: own for key, own in efficiency.sustained("h200").items() if key not in left_out}
    names = {"rasterized", "stream_k"} | {
        name for name, _ in never_timed(trial.library(package).ranking(gemm.problem, shapes.H200))
    }
    monkeypatch.setattr(efficiency, "sustained", lambda name: left)
    ranked = trial.library(package).ranking(gemm.problem, shapes.H200)
    never = never_timed(ranked)
    assert {name for name, _ in never} == names
    planned = trial.plan(gemm, package, shapes.H200, 10).contenders
    assert planned[0] == numbers_of(ranked)[0] not in never and all(c in never for c in planned[6:8])
    seen = [c for n in range(1100, 1900, 50) for c in plan_of(n, package) if c in never]
    assert {name for name, _ in seen} == names


def plan_of(n, package, number=10):
    return trial.plan(shape(cases.gemm(n, n, n)), package, shapes.H200, number).contenders


@pytest.mark.parametrize("package", ("tritonkernels", "cuda_reference"))
def test_a_trial_may_have_the_first_of_each_kind(package):
    """Tiles with splits of K are a kind of their own, however many splits there are."""
    product = shape(cases.matmul(256, 256, 8192, torch.float16))
    ranked = numbers_of(trial.library(package).ranking(product.problem, shapes.H200))
    picked = list(trial.plan(product, package, shapes.H200, 40, "kinds").contenders)
    assert (
        picked[: trial.LEADERS] == ranked[: trial.LEADERS] and len(picked) == len({ranked.index(one) for one in picked}) == 40
    )
    places = [ranked.index(one) for one in picked[trial.LEADERS :]]
    assert places == sorted(places) and places[-1] > 40, "in order, and not simply the first 40"

    def tile(contender):
        name, numbers = contender
        return name, *sorted((k, v) for k, v in numbers.items() if k not in ("SPLIT_K", "PROGRAMS", "BLOCKS", "WAVES"))

    found = [tile(one) for one in trial.plan(product, package, shapes.H200, 10000, "kinds").contenders]
    assert set(found) == {tile(one) for one in ranked}
    assert max(found[trial.LEADERS :].count(own) for own in found) == 2, "with splits, and without"


@pytest.mark.parametrize("package", ("tritonkernels", "cuda_reference"))
def test_the_leaders_may_be_of_one_kind(package):
    ranking = trial.library(package).ranking(shape(cases.matmul(64, 64, 65536, torch.float16)).problem, shapes.H200)
    of_kind = {}
    for choice in ranking:
        if as_dict(choice.config).get("SPLIT_K", 1) > 1:
            own = choice.design.name, *sorted(efficiency.own_numbers(choice.config).items())
            of_kind.setdefault(own, []).append(choice)
    same = max(of_kind.values(), key=len)
    assert len(same) > trial.LEADERS
    picked = trial.PICKS["kinds"]([*same, *(choice for choice in ranking if choice not in same)], 8, None)
    assert picked[: trial.LEADERS] == list(range(trial.LEADERS)) and min(picked[trial.LEADERS :]) >= len(same)


def test_each_shape_has_random_configs_of_its_own():
    """Configs of every design sooner or later."""
    plans = [plan_of(n, "cuda_reference") for n in range(1024, 4096, 64)]
    drawn = [str(sorted(map(str, plan[-2:]))) for plan in plans]
    assert len(set(drawn)) > len(drawn) // 2
    problem, library = shape(cases.gemm(1024, 1024, 1024)).problem, trial.library("cuda_reference")
    assert {name for plan in plans for name, _ in plan} == {c.design.name for c in library.ranking(problem, shapes.H200)}


def test_where_no_design_is_willing_there_are_no_contenders():
    fp8 = next(s for s in shapes.draw("matmul", 40) if s.problem.precision == "fp8")
    turing = Target.named("t4")
    assert trial.plan(fp8, "cuda_reference", turing, 10).contenders == ()


@pytest.mark.parametrize("package", ("tritonkernels", "cuda_reference"))
def test_every_contender_has_launches_to_build(package):
    for drawn in (*shapes.draw("matmul", 9), *shapes.draw("conv2d_weight", 7), *shapes.draw("gemv", 6)):
        for contender in trial.plan(drawn, package, shapes.H200, 5).contenders:
            assert trial.launches(drawn.case, package, shapes.H200, contender)


@pytest.fixture
def gpu(monkeypatch):
    """measured(each, **designs): what measure finds on a simulated GPU, and what it tells."""
    gpu, heard = SimulatedGpu(noise=0.01), []

    def measured(**designs):
        served = library(gpu, **designs)
        monkeypatch.setattr(trial, "library", lambda package: served)
        monkeypatch.setattr(trial, "_clock", lambda device: gpu)
        return trial.measure(trial.plan(shape(cases.gemv(64, 48)), "tritonkernels", shapes.H200, 10), heard.append), heard

    measured.work = gpu.work
    return measured


@pytest.mark.parametrize("at", range(8))
def test_a_disturbed_run_does_not_make_a_fast_one_hopeless(gpu, at):
    runs = itertools.count()

    def disturbed(a, x, out):
        right(a, x, out)
        if next(runs) == at:
            gpu.work(9000 * US)

    found, _ = gpu(fast=[(100 * US, disturbed), (130 * US, right)])
    us, spread = next((us, spread) for _, config, us, spread in found["times"] if config["number"] == 0)
    assert next(runs) > at and us == pytest.approx(100, rel=0.05) and spread < 0.05


def test_times_are_medians_and_a_hopeless_one_has_few_samples(gpu):
    found, heard = gpu(slow=[(900 * US, right)], fast=[(100 * US, right), (130 * US, right)])
    times = {(design, config["number"]): (us, spread) for design, config, us, spread in found["times"]}
    assert times["fast", 0] == (pytest.approx(100, rel=0.05), pytest.approx(0, abs=0.05))
    assert times["fast", 1][0] == pytest.approx(130, rel=0.05) and times["fast", 1][1] is not None
    assert times["slow", 0] == (pytest.approx(900, rel=0.1), pytest.approx(0, abs=0.05))
    assert (
        found["torch"][0] == "addmv"
        and sorted(heard[:-1]) == [0, 1, 2]
        and heard[-1] is None
        and not found["wrong"] + found["failed"]
    )


def test_a_wrong_one_and_one_that_fails_are_not_timed(gpu):
    def fails(a, x, out):
        raise BuildError("no registers")

    found, _ = gpu(good=[(1e-4, right)], wrong=[(1e-5, lambda a, x, out: out.fill_(7))], broken=[(1e-5, fails)])
    assert [design for design, *_ in found["times"]] == ["good"]
    ((design, config, why),) = found["wrong"]
    assert (design, config) == ("wrong", {"number": 0}) and "above the bound" in why
    assert [design for design, *_ in found["failed"]] == ["broken"] and "no registers" in found["failed"][0][2]


def test_where_all_are_wrong_torch_is_timed_alone(gpu):
    found, _ = gpu(wrong=[(1e-5, lambda a, x, out: None)])
    assert found["times"] == [] and len(found["wrong"]) == 1 and found["torch"]


@pytest.mark.parametrize("op", shapes.FAMILIES)
def test_a_problem_comes_back_from_its_description(op):
    for drawn in shapes.draw(op, 20):
        described = json.loads(json.dumps(drawn.problem.describe()))
        assert sweep_records.problem_of(op, described) == drawn.problem


@pytest.mark.parametrize("op", ("gemm", "matmul", "gemv"))
def test_families_of_odd_rows_and_of_a_short_k(op):
    drawn = [(s.family, s.problem) for s in shapes.draw(op, 40)]
    uneven, shallow = ([p for family, p in drawn if family == name] for name in ("uneven", "shallow"))
    assert uneven and all(p.m % 2 and p.n % 2 for p in uneven)
    assert (op == "gemv") != bool(shallow) and all(p.k <= 100 and min(p.m, p.n) >= 1000 for p in shallow)


@pytest.mark.parametrize("op", shapes.FAMILIES)
def test_classes_are_swept_by_draws_of_their_own(op):
    """No judge draws them, whatever its seed: the words that they are drawn by are others."""
    families, seeds = classes.families_of(op), (0, 1)
    assert bool(families) == (op != "gemm")
    number = 2 * len(families)
    drawn = {seed: {s.key: s.family for s in shapes.draw(op, number, seed, families)} for seed in seeds}
    judged = {shapes.key_of(op, shapes.prepared(case).problem.describe()) for case in cases_of(families, seeds)}
    assert all(len(of_one) == number and {*of_one.values()} == {*families} for of_one in drawn.values())
    assert not {*drawn[0]} & {*drawn[1]} and not judged & {*drawn[0], *drawn[1]}


def cases_of(names, seeds):
    return [case for name in names for seed in seeds for case in classes.CLASSES[name].cases(2, seed)]


def row(case, package="tritonkernels", us=3.0, **changes):
    problem = shape(case).problem
    times = [["tiled", {"BLOCK_M": 64}, us, 0.01], ["naive", {"BLOCK_M": 8}, 90.0, None]]
    fields = {"op": case.op, "family": "a family", "package": package, "problem": problem.describe(), "torch": ["addmm", 5.0]}
    return {**fields, "times": times, "wrong": [], "failed": [], "left_out": 0, **changes}


def writer(path, **changes):
    return sweep_records.Writer(path, {**environment(CPU), "commit": "one", **changes}, contenders=10)


def test_records_come_back_as_one_row_a_shape(tmp_path):
    path, one, other = tmp_path / "gemm.jsonl", cases.gemm(64, 48, 32), cases.gemm(64, 48, 33)
    out = writer(path)
    for each in (row(one), row(one, "cuda_reference", torch=None), row(other), row(one, us=4.0)):
        out.write(each)
    first, second = sweep_records.load([path])
    assert first.problem == shape(one).problem and second.problem == shape(other).problem
    assert first.times["tritonkernels"] == [("tiled", {"BLOCK_M": 64}, 4.0, 0.01), ("naive", {"BLOCK_M": 8}, 90.0, None)]
    assert set(first.times) == {"tritonkernels", "cuda_reference"} and first.torch == ("addmm", 5.0)
    assert first.half == shapes.half(shape(one).key) and first.environment["commit"] == "one"


def test_what_the_same_sources_measured_is_done(tmp_path):
    path, case = tmp_path / "gemm.jsonl", cases.gemm(64, 48, 32)
    out = writer(path)
    assert out.done == set()
    out.write(row(case))
    assert writer(path).done == {(shape(case).key, "tritonkernels")}
    assert writer(path, commit="two").done == set() == writer(path, device="another").done
    writer(path, commit="two").write(row(case))
    assert [e["commit"] for e, _ in sweep_records.read(path)] == ["one", "two"]


def test_half_a_line_is_neither_read_nor_continued(tmp_path):
    path, case = tmp_path / "gemm.jsonl", cases.gemm(64, 48, 32)
    writer(path).write(row(case))
    path.write_text(path.read_text() + '{"op":"ge')
    assert len(list(sweep_records.read(path))) == 1
    writer(path, commit="two").write(row(cases.gemm(64, 48, 33)))
    assert [e["commit"] for e, _ in sweep_records.read(path)] == ["one", "two"]


def test_jobs_of_what_is_done_are_left_out():
    first, *rest = sweep_gemm(3)
    again = sweep_gemm(3, done={"gemm": {(first.trial.shape.key, "tritonkernels")}})
    assert [job.trial.shape.key for job in again] == [job.trial.shape.key for job in rest]


def test_any_part_has_all_operations_and_shares_are_apart():
    by_op = {op: shapes.draw(op, 6) for op in ("gemm", "gemv")}
    order = sweep.interleaved(by_op)
    assert [s.problem.op for s in order] == ["gemm", "gemv"] * 6
    longer = sweep.interleaved(by_op | {"gemv": shapes.draw("gemv", 9)})
    assert [s.problem.op for s in longer] == ["gemm", "gemv"] * 6 + ["gemv"] * 3, "none is dropped where an operation has fewer"
    halves = [{s.key for s in sweep.interleaved(by_op, i, 2)} for i in (0, 1)]
    assert not halves[0] & halves[1] and halves[0] | halves[1] == {s.key for s in order}


def test_contenders_of_one_cuda_module_share_its_build():
    (job,) = sweep.jobs([shape(cases.gemm(256, 256, 256))], ["cuda_reference"], shapes.H200, 10)
    assert 1 < len(set(job.keys)) <= len(job.keys) == len(job.trial.contenders)


class Done:
    """A worker that is at once done with whatever it is given."""

    def __init__(self, work):
        self.work, self.answer = work, None

    def give(self, task):
        found = (
            {"torch": None, "times": [[*c, 1.0, None] for c in task.contenders], "wrong": [], "failed": []}
            if (self.work is trial.measure)
            else None
        )
        self.answer = "done", found

    def receive(self):
        answer, self.answer = self.answer, None
        return answer

    def end(self):
        pass


def run(planned, writers, worker=Done):
    return sweep.run(
        planned, 2, math.inf, writers, start=worker, wait=lambda waiting, seconds: [w for w in waiting if w.answer]
    )


def test_a_sweep_is_recorded_and_a_second_one_has_nothing_left(tmp_path, capsys):
    path = tmp_path / "gemm.jsonl"
    assert run(sweep_gemm(), {"gemm": writer(path)}) == 0
    rows = sweep_records.load([path])
    assert len(rows) == 3 and {r.problem for r in rows} == {s.problem for s in shapes.draw("gemm", 3)}
    assert "3 of 3 measured" in capsys.readouterr().out
    assert sweep_gemm(done={"gemm": writer(path).done}) == []


def test_a_wrong_contender_is_reported_and_fails_the_command(tmp_path, capsys):
    class Wrong(Done):
        def receive(self):
            what, found = super().receive()
            if found:
                found["wrong"].append(["tiled", {"BLOCK_M": 64}, "error 0.5 above the bound 1e-06"])
            return what, found

    assert run(sweep_gemm(1), {"gemm": writer(tmp_path / "gemm.jsonl")}, Wrong) == 1
    heard = capsys.readouterr().out
    assert "WRONG: tritonkernels.gemm, scientific: tiled" in heard and "error 0.5 above the bound" in heard


def test_a_fault_is_reported_and_fails_the_command(tmp_path, capsys):
    class Dying(Done):
        def receive(self):
            what, found = super().receive()
            return ("died", "gone") if found else (what, found)

    assert run(sweep_gemm(1), {"gemm": writer(tmp_path / "gemm.jsonl")}, Dying) == 1
    assert "GIVEN UP: tritonkernels.gemm, scientific: gone" in capsys.readouterr().out


def test_a_dry_run_counts(capsys):
    assert main(["sweep", "gemm", "gemv", "--shapes", "6", "--contenders", "3", "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and lines[0].startswith("gemm, tritonkernels: 6 shapes of 6 families, ")
    assert main(["sweep", "gemm", "--shapes", "6", "--share", "0/2", "--package", "cuda_reference", "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("gemm, cuda_reference: 3 shapes")


def test_shapes_of_a_precision_alone(capsys):
    few = ["--shapes", "60", "--contenders", "2", "--package", "cuda_reference", "--dry-run"]
    of_all = [shape.problem.precision for shape in shapes.draw("matmul", 60)]
    assert 0 < of_all.count("tf32x3") < of_all.count("fp16") < 60
    assert main(["sweep", "matmul", "--precision", "tf32x3", "--precision", "fp16", *few]) == 0
    both = of_all.count("tf32x3") + of_all.count("fp16")
    assert capsys.readouterr().out.startswith(f"matmul, cuda_reference: {both} shapes of ")


def test_shapes_of_a_family_and_a_class_alone(capsys):
    few = ["--shapes", "60", "--contenders", "2", "--package", "cuda_reference", "--dry-run"]
    of_all = shapes.draw("matmul", 60)
    own = [s for s in of_all if s.family in ("long K", "square") and not s.problem.aligned]
    assert 0 < len(own) < sum(s.family in ("long K", "square") for s in of_all)
    assert main(["sweep", "matmul", "--family", "long K", "--family", "square", "--class", "aligned False", *few]) == 0
    assert capsys.readouterr().out.startswith(f"matmul, cuda_reference: {len(own)} shapes of ")


def test_shapes_of_classes(capsys):
    few = ["--contenders", "2", "--package", "cuda_reference", "--from", "classes", "--family", "fp64", "--dry-run"]
    number = len(classes.families_of("matmul"))
    assert main(["sweep", "matmul", "--shapes", str(3 * number), *few]) == 0
    assert capsys.readouterr().out.startswith("matmul, cuda_reference: 3 shapes of 1 families, 6 contenders, ")
    assert main(["sweep", "gemm", *few]) == 2, "it has no class"
    assert "none of the shapes" in capsys.readouterr().err


def test_no_shape_of_what_is_asked_for(capsys):
    assert main(["sweep", "matmul", "--shapes", "20", "--family", "long k", "--dry-run"]) == 2
    assert "none of the shapes" in capsys.readouterr().err


@pytest.mark.parametrize(
    "bad",
    (
        ["relu"],
        ["gemm", "--shapes", "0"],
        ["gemm", "--seconds", "nan"],
        ["gemm", "--contenders", "0"],
        ["gemm", "--share", "2/2"],
        ["gemm", "--share", "x"],
    ),
)
def test_bad_arguments(bad):
    with pytest.raises(SystemExit) as ended:
        main(["sweep", *bad])
    assert ended.value.code == 2


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_nothing_is_measured(capsys):
    assert main(["sweep", "gemm"]) == 2 and "needs a GPU" in capsys.readouterr().err


def test_the_commit_of_a_copy_without_its_repository(tmp_path, monkeypatch):
    monkeypatch.setattr(contenders, "device", lambda: torch.device("cuda", 0))
    monkeypatch.setattr(sweep.Target, "live", lambda device: shapes.H200)
    monkeypatch.setattr(sweep, "environment", lambda device, named: environment(CPU, named))

    def run(planned, workers, seconds, writers):
        writers["gemm"].write(row(cases.gemm(64, 48, 32)))
        return 0

    monkeypatch.setattr(sweep, "run", run)
    assert main(["sweep", "gemm", "--shapes", "1", "--out", str(tmp_path), "--commit", "abc"]) == 0
    assert [e["commit"] for e, _ in sweep_records.read(tmp_path / "gemm.jsonl")] == ["abc"]
