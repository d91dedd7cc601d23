"""The ladder of tensor cores: means over the sweep's products, row by row, and the loops of code.json."""

import json
from types import SimpleNamespace

import pytest
import torch

from cuda_reference.matmul.parts.fitted import that_fill_waves
from cuda_reference.matmul.persistent import SPACE
from perf.measure import counters, records
from perf.render import steps
from tests.harness import prepare
from tritonkernels.target import Target

SWEEP = steps.measured.RESULTS / "h200"


def rows(*times):
    """Products that torch does in 10 us and CUDA's designs in such times: {design: us}."""
    return [
        SimpleNamespace(torch=("mm", 10.0), times={"cuda_reference": [(d, {}, us, None) for d, us in own]}) for own in times
    ]


def test_products_are_of_one_kind(monkeypatch):
    """The large one; not those that are smaller, batched, of other sizes or types, with something added, or without torch's
    time."""

    def row(m=512, n=4096, k=1024, batch=(), dtype=torch.float16, torch_us=10.0, **added):
        a, b = (torch.empty(*batch, *shape, dtype=dtype, device="meta") for shape in ((m, k), (k, n)))
        added = {name: torch.empty(n, dtype=dtype, device="meta") if name == "bias" else x for name, x in added.items()}
        return SimpleNamespace(problem=prepare("matmul", a, b, **added).problem, torch=torch_us and ("mm", torch_us))

    others = [row(m=392), row(n=512), row(k=1023), row(batch=(2,)), row(dtype=torch.float32), row(torch_us=None)]
    others += [row(bias=True), row(activation="relu")]
    one = row()
    monkeypatch.setattr(steps.measured, "swept", lambda folder, op: [*others, one])
    assert steps.products(None) == [one]


def test_the_fastest_config_of_a_design_counts():
    own = rows([("tiled", 40.0), ("tiled", 20.0), ("naive", 100.0)], [("tiled", 5.0)])
    assert steps.speeds(own, "cuda") == {"naive": [0.1, None], "tiled": [0.5, 2.0]}
    assert steps.speeds(own, "triton") == {}


def test_a_step_is_compared_on_the_shapes_of_both_rungs(monkeypatch):
    own = rows([("tiled", 20.0), ("naive", 100.0)], [("tiled", 5.0)], [("naive", 200.0)])
    monkeypatch.setattr(steps, "products", lambda folder: own)
    triton, cuda = steps.step("naive", "tiled").splitlines()[2:]
    assert triton.split(" | ")[1:4] == ["-", "-", "0"], "no times, but its code is known"
    assert cuda.split(" | ")[1:4] == ["1.00", "5.00", "2"], "the means of 0.5 and 2.0, and of 0.5 / 0.1"
    assert len(steps.step("naive").splitlines()) == 3, "Triton has none"


def test_warp_specialized_is_compared_with_the_best_of_enough_others(monkeypatch):
    """By workload: 8 / 4 and 6 / 12 of large products in tf32; not where it, or all but two of the others, have no time."""
    others = [("persistent", 8.0), ("pipelined", 9.0), ("split_k", 9.0)]
    times = [
        [*others, ("warp_specialized", 4.0), ("warp_specialized", 9.0)],
        [("persistent", 7.0), ("persistent", 6.0), ("tiled", 9.0), ("warp_specialized", 12.0)],
        others,
        [*others[:2], ("warp_specialized", 1.0)],
    ]
    own = [
        SimpleNamespace(
            torch=("mm", 10.0), problem=None, times={"tritonkernels": [(design, {}, us, None) for design, us in row]}
        )
        for row in times
    ]

    def products(folder, wanted, precisions):
        return own if precisions == ("tf32",) and wanted(SimpleNamespace(flops=1e10)) else []

    monkeypatch.setattr(steps, "products", products)
    (row,) = steps.specialized("h100").splitlines()[2:]
    assert row == "| tf32, more | 1.44 | 1.44 | 1.00 | 0.50 | 2.00 | 1 of 2 |"


def test_tiles_that_fill_waves_are_added_to_enough_others(monkeypatch):
    """Only what fitted.py makes of the problem's size counts as such: 128 x 168 for 768 x 3584, 128 x 160 does not."""
    a, b = (torch.empty(*shape, dtype=torch.bfloat16, device="meta") for shape in ((768, 4096), (3584, 4096)))
    problem = prepare("matmul", a, b.T).problem
    own = [config for config in that_fill_waves(problem, Target.named("h100"), SPACE) if config["BN"] == 168][:3]
    other = dict(own[0]) | {"BN": 160}
    times = [("persistent", own[0], 8.0), ("persistent", own[1], 4.0), ("persistent", own[2], 9.0)]
    times += [("persistent", other, us) for us in (5.0, 6.0)] + [("split_k", {}, 7.0)]
    slower = [(design, config, 10.0 if config in own else us) for design, config, us in times]
    rows = [
        SimpleNamespace(torch=("mm", 10.0), problem=problem, times={"cuda_reference": [(*time, None) for time in row]})
        for row in (times, slower, times[1:])
    ]
    monkeypatch.setattr(steps, "products", lambda folder, wanted, of: rows if of == ("tf32",) and wanted(problem) else [])
    (row,) = steps.fitted("h100").splitlines()[2:]
    assert row == "| tf32, more | 2.00 | 2.24 | 1.12 | 1.00 | 1.25 | 1 of 2 |", "10 / 5 twice, and 10 / 4 and 10 / 5"


def test_clusters_are_compared_with_the_same_tile_alone(monkeypatch):
    """By tile and by how rows begin: 4 / 2 and 9 / 8, and 9 / 3 of other rows; a pair whose tile was not timed alone; other
    stages are another config, other BLOCKS are not."""
    big, low = {"BM": 128, "BN": 256, "STAGES": 4, "BLOCKS": 132}, {"BM": 192, "BN": 128, "STAGES": 4, "BLOCKS": 132}
    times = [
        [("persistent", big, 4.0), ("persistent", big | {"CLUSTER": 2}, 2.0), ("stream_k", low, 1.0)],
        [("persistent", big, 9.0), ("persistent", big | {"CLUSTER": 2}, 8.0), ("persistent", low | {"CLUSTER": 2}, 1.0)],
        [
            ("persistent", low, 6.0),
            ("persistent", low | {"CLUSTER": 2}, 5.0),
            ("persistent", low | {"STAGES": 3, "CLUSTER": 2}, 1.0),
        ],
        [("persistent", big, 9.0), ("persistent", big | {"CLUSTER": 4, "BLOCKS": 120}, 3.0)],
    ]
    problems = [
        prepare("matmul", *(torch.empty(n, n, dtype=torch.float16) for _ in range(2))).problem for n in (64, 64, 64, 72)
    ]
    own = [
        SimpleNamespace(times={"cuda_reference": [(*t, None) for t in row]}, problem=problem)
        for row, problem in zip(times, problems)
    ]
    monkeypatch.setattr(steps, "products", lambda folder: own)
    lines = [line.strip("| ").split(" | ") for line in steps.clusters("h100").splitlines()[2:]]
    assert lines == [
        ["128 x 256", "2 x 1", "0.67", "1.50", "2.00", "2", "-", "-", "0"],
        ["192 x 128", "2 x 1", "0.80", "1.20", "1.20", "1", "-", "-", "0"],
        ["128 x 256", "2 x 2", "0.50", "-", "-", "0", "3.00", "3.00", "1"],
    ]


def test_designs_of_planes_are_compared_where_all_were_timed(monkeypatch):
    """By kind of product: 10 / 5 and 10 / 20 of one design, and a product without times of another."""
    times = {"planes": 20.0, "fused_planes": 10.0, "wgmma_planes": 5.0}
    own = {
        "long": rows([*times.items()], [("planes", 10.0), ("fused_planes", 10.0), ("wgmma_planes", 20.0)], [("planes", 1.0)]),
        "large": rows([*times.items()]),
        "small": [],
    }
    sizes = {"long": (1, 8192), "large": (1e9, 64), "small": (1e6, 64)}

    def products(folder, wanted, precisions):
        assert precisions == ("tf32x3",)
        return next(own[name] for name, (flops, k) in sizes.items() if wanted(SimpleNamespace(flops=flops, k=k)))

    monkeypatch.setattr(steps, "products", products)
    lines = [line.strip("| ").split(" | ")[1:] for line in steps.planes("h100").splitlines()[2:]]
    assert lines == [["0.71", "1.00", "1.00", "2"], ["0.50", "1.00", "2.00", "1"]]


def test_designs_for_few_tiles_are_compared_with_split_k_where_both_ran(monkeypatch):
    own = rows([("split_k", 20.0), ("cluster_split_k", 10.0), ("naive", 1.0)], [("cluster_split_k", 2.5)])
    monkeypatch.setattr(steps, "products", lambda folder, wanted: own)
    lines = [line.strip("| ").split(" | ") for line in steps.few("h200").splitlines()[2:]]
    assert lines == [["CUDA", "`split_k`", "0.50", "1.00", "1"], ["CUDA", "`cluster_split_k`", "2.00", "2.00", "2"]]


@pytest.mark.parametrize(
    "batch, m, n, k, expected", [(1, 8, 66 * 128, 1024, True), (1, 8, 66 * 128 + 1, 1024, False), (2, 129, 1, 1023, False)]
)
def test_few_tiles(batch, m, n, k, expected):
    assert steps.of_few_tiles(SimpleNamespace(batch=batch, m=m, n=n, k=k)) is expected


def test_the_loops_are_those_of_the_records():
    code = records.read_rows(SWEEP / "code.json")
    (facts,) = (row for row in code if (row["op"], row["implementation"], row["design"]) == ("matmul", "cuda", "persistent"))
    (line,) = (line for line in steps.step("pipelined", "persistent").splitlines() if line.startswith("| CUDA"))
    products = sum(count for opcode, count in facts["hot_loop"].items() if opcode.startswith("HGMMA"))
    cells = line.strip("| ").split(" | ")
    assert cells[4] == str(facts["registers"]) and cells[6].startswith(f"{products} HGMMA")
    assert cells[7] == str(facts["hot_loop_instructions"])


def test_the_chart_has_every_random_product_of_the_class():
    ratios = []
    for row in steps.measured.swept(SWEEP, "matmul"):
        times = [us for design, _, us, _ in row.times.get("cuda_reference", ()) if design == "naive"]
        p = row.problem
        of_eights = not (p.m % 8 or p.n % 8 or p.k % 8) and min(p.m, p.n, p.k) >= 400
        is_plain = p.batch == 1 and not p.bias and p.activation is None and p.beta == 0
        if p.precision in ("fp16", "bf16") and p.flops >= 2e9 and of_eights and is_plain and row.torch and times:
            ratios.append(row.torch[1] / min(times))
    dots = steps.ladder(SWEEP).data["rows"]
    assert dots["naive"]["cuda"] == pytest.approx(ratios, rel=1e-4) and len(ratios) > 5
    assert dots["naive"]["triton"] == [] and dots["stream_k"]["triton"]


def test_without_records_there_is_no_chart(tmp_path):
    assert steps.ladder(tmp_path) is None


def test_a_cluster_asks_for_a_third_less(tmp_path, monkeypatch):
    config = {"BM": 256, "BN": 128}
    counts = dict.fromkeys(counters.COUNTERS, 2e9)
    calls = [config, config | {"CLUSTER": 2}, None]
    written = {"case": "4096x4096x4096 float16", **counts}
    environment = {"device": "X", "date": "2026-11-24T01", "torch": "2", "triton": "3", "cuda": "13", "commit": "abc"}
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "counters.json").write_text(
        json.dumps({"environment": environment, "records": [written | {"config": c} for c in calls]})
    )
    monkeypatch.setattr(steps.measured, "RESULTS", tmp_path)
    alone, pair, vendor = (line.strip("| ").split(" | ") for line in steps.sent("x").splitlines()[-3:])
    assert (
        alone[1:5] == ["256 x 128", "1", "1.61 GB", "2.00 GB"]
        and pair[2:4] == ["2", "1.07 GB"]
        and vendor[1:4] == ["cuBLAS", "-", "-"]
    )
