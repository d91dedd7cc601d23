"""perf fit on a synthetic GPU, whose times follow the model with known shares: it finds them, and the choice is good."""

import dataclasses
import itertools
import json
import math
import random
import statistics

import numpy
import pytest
import torch
import triton

from perf.__main__ import main
from perf.fit import boosting, counted, evaluate, least_squares, residuals, table, timed
from perf.fit.counted import library
from perf.fit.samples import Samples
from perf.fit.timed import Run, Timed
from tritonkernels.choice import efficiency, learned, model
from tritonkernels.choice.efficiency import PARTS, SHARES, Sustained
from tritonkernels.design import as_dict
from tritonkernels.matmul import MATMUL
from tritonkernels.problem import GemmProblem
from tritonkernels.target import Target

H200 = Target.named("h200")
PACKAGE, KEY = "tritonkernels", "tritonkernels gemm."
SLOW = efficiency.config_name(triton.Config({"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}, num_warps=4, num_stages=1))
ACROSS = efficiency.config_name(
    triton.Config({"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": 8}, num_warps=4, num_stages=3)
)
TN = "a_layout col b_layout row"
TRUE = {  # each part is the longest of some shapes
    "tiled": Sustained(0.6, 0.35, 0.2, 0.9, 0.15, 1.2, 1.0, {SLOW: 1.2, "b_layout col": 1.15}),
    "rasterized": Sustained(0.8, 0.4, 0.3, 0.6, 0.15, 0.9, 1.0, {efficiency.in_layouts(ACROSS, TN): 1.6, ACROSS: 1.0}),
    "stream_k": Sustained(0.5, 0.3, 0.25, 0.8, 0.15, 1.0, 0.4),
}


def problem(pick):
    m, n, k = (round(math.exp(pick.uniform(math.log(16), math.log(5000)))) for _ in range(3))
    layouts = pick.choice(("row", "col")), pick.choice(("row", "col"))
    return GemmProblem(torch.float32, torch.float32, "ieee", False, m, n, k, 1.0, 0.0, *layouts)


def shapes(number, noise=0.03, outliers=0.05, seed=0, names=tuple(TRUE)):
    """Timed shapes: of each design six of the configs that are legal, with noise, and some that took three times as long."""
    pick = random.Random(seed)
    designs = [design for design in library(PACKAGE).designs("gemm") if design.name in names]
    for own in (problem(pick) for _ in range(number)):
        runs = []
        for design in designs:
            configs = [config for config in design.configs(own, H200) if "PACKED" not in as_dict(config)]
            for config in pick.sample(configs, min(6, len(configs))):
                true = TRUE[design.name]
                factor = true.of_config(config, efficiency.layouts_of(own))[0] * math.exp(pick.gauss(0, noise))
                works = tuple(design.work(own, config, H200))
                of_problem, after = true.of_problem(own)
                contender = model.Contender(design.name, config, works, true, (factor * of_problem, after))
                (seconds,) = model.predicted([contender], model.rates(H200)).seconds
                runs.append(Run(design.name, as_dict(config), seconds * (3 if pick.random() < outliers else 1)))
        yield Timed("synthetic", own, None, {PACKAGE: runs})


@pytest.fixture(scope="module")
def runs():
    return counted.counted(shapes(200), H200)


@pytest.fixture(scope="module")
def fitted(runs):
    return table.fitted(runs)


@pytest.mark.parametrize("name", ("rasterized", "stream_k"))
def test_shares_are_found_in_spite_of_noise_and_outliers(fitted, name):
    """Shares of launches where they can be found: only stream_k has a second kernel, where tiles are shared."""
    parts = SHARES if name == "stream_k" else PARTS
    found, true = ({part: getattr(own, part) for part in parts} for own in (fitted[KEY + name + " ieee"], TRUE[name]))
    assert found == pytest.approx(true, rel=0.15)


def test_factors_are_found(fitted):
    """Up to what is common to all: that is in the shares."""
    factors = fitted[KEY + "tiled ieee"].factors
    assert factors.get("b_layout col", 1) / factors.get("b_layout row", 1) == pytest.approx(1.15, rel=0.03)
    assert factor_of_slow(fitted[KEY + "tiled ieee"]) == pytest.approx(1.2, rel=0.05)


def test_a_config_that_is_slow_on_operands_that_lie_so(fitted):
    """Its factor there, next to its own in all layouts, is about what records of 12 shapes can say."""
    found = fitted[KEY + "rasterized ieee"].factors
    of_layouts = {name: value for name, value in found.items() if efficiency.is_in_layouts(name)}
    assert max(of_layouts, key=of_layouts.get) == efficiency.in_layouts(ACROSS, TN)
    assert of_layouts[efficiency.in_layouts(ACROSS, TN)] > 1.25 and found[ACROSS] > 1.0
    others = [value for name, value in of_layouts.items() if ACROSS not in name]
    assert all(0.95 < value < 1.05 for value in others)


def test_the_choice_is_good_on_other_shapes(fitted):
    """From times without noise, so that nothing but the model is at fault."""
    others = counted.counted(shapes(100, noise=0, outliers=0, seed=1), H200)
    of_choice = evaluate.summary(evaluate.outcomes(others, fitted, {}))
    assert of_choice.shapes == 100 and of_choice.mean < 1.02 and of_choice.passes


def test_the_same_records_give_the_same_files(tmp_path, monkeypatch):
    def written(seed):
        shuffled = [shape._replace(judges=True) for shape in shapes(20)]
        random.Random(seed).shuffle(shuffled)
        monkeypatch.setattr(timed, "of_suite", lambda rows: shuffled)
        row = {"suite": "smoke", "environment": {"date": "", "commit": "abc+def"}}
        monkeypatch.setattr(timed.records, "read_rows", lambda path: [row])
        monkeypatch.setattr(efficiency, "TABLES", tmp_path / str(seed))
        judged = tmp_path / str(seed) / "judged.md"
        judged.parent.mkdir()
        assert main(["fit", "--records", "of.json", "--judged", str(judged)]) == 0
        files = (path for path in (tmp_path / str(seed) / "h200").rglob("*.*"))
        return {path.name: path.read_bytes() for path in (*files, judged)}

    monkeypatch.setattr(residuals, "FEWEST", 0)
    first = written(1)
    assert written(2) == first
    assert b"| tritonkernels | 8 | " in first["judged.md"], "fitted to all 20 shapes, judged by 8 next to 12"
    of_gemm = json.loads(first["tritonkernels.gemm.json"])
    assert (of_gemm["schema"], of_gemm["gpus"], of_gemm["commit"], of_gemm["records"]) == (table.SCHEMA, ["h200"], "abc", 360)
    assert set(efficiency.Figures(table.folder("h200"))) >= set(table.fitted([]))
    assert len(learned.trees_of.__wrapped__("h200", PACKAGE, "gemm").values) == boosting.TREES


def test_gpus_of_an_architecture_are_fitted_to_together(monkeypatch):
    """Each time is a share of its own GPU's figures: times of an H100 say of an H200's what the H200's own do."""
    h100, found = Target.named("h100"), []
    for gpu in (H200, h100):
        monkeypatch.setattr(f"{__name__}.H200", gpu)  # that `shapes` makes times for
        found.append(counted.counted(shapes(120, noise=0, outliers=0), gpu))
    alone, together = table.fitted(found[0]), table.fitted([run for own in found for run in own])
    for name, true in TRUE.items():
        for part in PARTS:
            known, sharper = (getattr(fitted[f"{KEY}{name} ieee"], part) for fitted in (alone, together))
            assert sharper == pytest.approx(known, rel=0.1) == pytest.approx(getattr(true, part), rel=0.15), (name, part)
    of_choice = evaluate.summary(evaluate.outcomes(found[1], alone, {}))
    assert of_choice.mean < 1.02


def test_records_from_before_a_design_had_splits_are_of_one_split():
    operands = (torch.empty(*size, device="meta") for size in ((128, 8192), (8192, 64)))
    own = MATMUL.prepare(*operands, precision="tf32x3").problem
    planes = next(design for design in library(PACKAGE).designs("matmul") if design.name == "planes")
    config = next(config for config in planes.configs(own, H200) if config.kwargs["SPLIT_K"] == 1)
    before = {name: value for name, value in as_dict(config).items() if name != "SPLIT_K"}
    runs = [Run("planes", numbers, 1e-5) for numbers in (before, as_dict(config), before | {"SPLIT_K": 3})]
    assert [as_dict(run.config) for run in counted.counted([Timed("", own, None, {PACKAGE: runs})], H200)] == [
        as_dict(config)
    ] * 2


def test_records_of_the_same_architecture_count(tmp_path, monkeypatch):
    monkeypatch.setattr(timed, "RESULTS", tmp_path)
    for name in ("h200", "a100", "h100"):
        (tmp_path / name).mkdir()
    (tmp_path / "README.md").write_text("")
    assert [target.name for target in timed.of_architecture(90)] == ["h200", "h100"]


def test_the_model_reads_what_was_written(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr(efficiency, "TABLES", tmp_path)
    table.folder("h200").mkdir(parents=True)
    for name, text in table.texts(["h200"], "abc", 1, fitted).items():
        (table.folder("h200") / name).write_text(text)
    assert efficiency.sustained.__wrapped__("h200") == fitted


def test_designs_without_records_are_as_the_others_of_their_operation(fitted):
    expected = [getattr(fitted[KEY + "split_k"], part) for part in SHARES]
    assert expected == [getattr(fitted["cuda_reference gemm.split_k"], part) for part in SHARES]
    known = [[getattr(fitted[KEY + name], part) for part in SHARES] for name in TRUE]
    assert all(min(column) <= value <= max(column) for value, column in zip(expected[:1], zip(*known)))
    nothing = table.fitted([])[KEY + "split_k"]
    assert [getattr(nothing, part) for part in SHARES] == list(table.GUESS)


def as_tf32(runs):
    """The same times as if the design had taken them in another precision."""
    for run in runs:
        yield run._replace(key=run.key.replace("ieee", "tf32"), problem=dataclasses.replace(run.problem, precision="tf32"))


def test_a_precision_with_few_records_is_about_as_the_design_s_others(runs, fitted):
    """Also in the factors of configs; its own records move it as far as they are many."""
    own = [run for run in runs if run.key == KEY + "tiled ieee"]
    slow = [run._replace(run=run.run._replace(seconds=2 * run.run.seconds)) for run in as_tf32(own)]
    off = []
    for few in (2, len(own)):
        found = table.fitted([*own, *slow[:few]])
        predicted = [counted.predicted(of_one, found)[1].seconds for of_one in (own, slow)]
        off.append(numpy.median(numpy.divide(*predicted[::-1])))
        alone = counted.predicted(own, fitted)[1].seconds
        assert numpy.median(numpy.divide(predicted[0], alone)) == pytest.approx(1, abs=0.02)
        assert factor_of_slow(found[KEY + "tiled tf32"]) == pytest.approx(1.2, rel=0.05)
    assert 1.05 < off[0] < 1.5 < off[1] == pytest.approx(2, rel=0.02)


def factor_of_slow(sustained):
    """The factor of a config in all layouts, relative to the others."""
    configs = [name for name in sustained.factors if name.startswith("config")]
    layouts = [f"a_layout {a} b_layout {b}" for a in ("row", "col") for b in ("row", "col")]
    total = {
        name: sustained.factors[name]
        * statistics.geometric_mean(sustained.factors.get(efficiency.in_layouts(name, own), 1.0) for own in layouts)
        for name in configs
    }
    return total.pop(SLOW) / statistics.median(total.values())


def test_what_was_timed_is_written(runs):
    """In each precision that has records, all configs of the design, from the half that is not fitted to as well."""
    for name in ("tiled", "stream_k"):
        own = [run for run in runs if run.key == KEY + name + " ieee"]
        found = table.fitted(own[:1], [*own[1:], *as_tf32(own[:1])])
        configs = {efficiency.config_name(run.config) for run in own}
        assert len(configs) > 1
        for precision in (" ieee", " tf32"):
            known = found[KEY + name + precision]
            assert known.timed and configs == {factor for factor in known.factors if factor.startswith("config")}
            assert sum(known.factors[config] == known.unseen for config in configs) >= len(configs) - 1
        assert not any(found[key].timed for key in (KEY + name, efficiency.ANY, KEY + "rasterized"))
        assert KEY + name + " fp16" not in found


def test_shares_stay_within_bounds():
    """Times far beyond the GPU's figures, both ways."""
    for scale in (1e-5, 1e5):
        wrong = [shape._replace(runs=_scaled(shape.runs, scale)) for shape in shapes(10, names=("tiled",))]
        own = table.fitted(counted.counted(wrong, H200))[KEY + "tiled"]
        values = {part: getattr(own, part) for part in SHARES}
        assert all(least <= values[part] <= most for part, (least, most) in least_squares.BOUNDS.items())
        assert any(value in least_squares.BOUNDS[part] for part, value in values.items())


def _scaled(runs, scale):
    return {package: [run._replace(seconds=run.seconds * scale) for run in own] for package, own in runs.items()}


def test_a_single_record_changes_little(fitted):
    one = counted.counted(itertools.islice(shapes(1), 1), H200)[:1]
    odd = one[0]._replace(run=one[0].run._replace(seconds=10 * one[0].run.seconds))
    many = counted.counted(shapes(60, names=("rasterized", "stream_k")), H200)
    without, with_it = (table.fitted(runs)[KEY + "tiled"] for runs in (many, [*many, odd]))
    moved = [abs(math.log(getattr(with_it, part) / getattr(without, part))) for part in SHARES]
    assert 0 < max(moved) < 0.5


def test_arrays_predict_what_the_model_predicts(runs, fitted):
    pick = random.Random(0)
    for key in {run.key for run in runs}:
        own = pick.sample([run for run in runs if run.key == key], 50)
        samples = Samples.of(own)
        shares = numpy.array([pick.uniform(0.1, 1.2) for _ in SHARES])
        factors = numpy.array([pick.uniform(0.5, 2) for _ in samples.names])
        sustained = Sustained(*shares, {name: factor for (name, _), factor in zip(samples.names, factors)})
        seconds, derivatives = samples.predicted(shares[None], factors)
        assert seconds == pytest.approx(counted.predicted(own, {key: sustained})[1].seconds, rel=1e-9)
        for column in range(len(SHARES) + len(factors)):
            step = numpy.ones(len(SHARES) + len(factors))
            step[column] = math.exp(1e-5)
            ahead = samples.predicted((shares * step[: len(SHARES)])[None], factors * step[len(SHARES) :])[0]
            assert (ahead - seconds) / 1e-5 == pytest.approx(derivatives[:, column], rel=1e-3, abs=1e-4 * seconds.max())


def test_calls_in_a_row_have_no_first_launch(runs, fitted):
    """Their launch is one more of those that the host prepares meanwhile: of the model's time, and of what is fitted."""
    own = runs[:300]
    rows = [run._replace(run=run.run._replace(in_a_row=True)) for run in own]
    sustained = [efficiency.of_design(fitted, *run.key.split()) for run in own]
    saved = [H200.launch / of.launch - H200.launch / of.next_launch for of in sustained]
    alone, in_rows = (counted.predicted(runs, fitted)[1].seconds for runs in (own, rows))
    assert list(alone - in_rows) == pytest.approx(saved)
    first, further = (Samples.of(runs).parts[-2:].sum(axis=1) for runs in (own, rows))
    assert first[0] == pytest.approx(300 * H200.launch) and further[0] == 0 and sum(first) == pytest.approx(sum(further))


def test_no_records_are_an_error(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["fit", "--gpu", "a100", "--records", str(tmp_path / "none.json")])
    with pytest.raises(SystemExit):
        main(["fit", "--gpu", "a100"])
    assert "no records of a100" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["fit", "--gpu", "nope"])
    assert "unknown target" in capsys.readouterr().err
