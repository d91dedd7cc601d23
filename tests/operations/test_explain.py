"""explain, designs and doctor: they say what a call does, also for GPUs that are not present."""

import dataclasses
import functools
import json

import pytest
import torch

import cuda_reference
import tritonkernels
from tests import cases
from tests.harness import SMALL, built, gradient_call, prepare
from tritonkernels import backend
from tritonkernels.choice import efficiency
from tritonkernels.design import as_dict
from tritonkernels.errors import ArgumentError, BackendError, DeviceError, ShapeError, UnknownDesignError, UnsupportedError
from tritonkernels.launch import TritonLaunch
from tritonkernels.target import KNOWN, Target

DEVICE = backend.device_type()
PACKAGES = pytest.mark.parametrize("package", (tritonkernels, cuda_reference), ids=lambda p: p.__name__)


@PACKAGES
def test_designs_are_listed_simplest_first(package):
    names = [d.name for d in package.designs("gemm")]
    assert names.index("naive") < names.index("tiled") < names.index("rasterized")
    for op in tritonkernels.OPS:
        for design in package.designs(op):
            assert design.summary and design.mirrors and "\n" not in design.summary
    with pytest.raises(ArgumentError, match=r"'conv2d', .*'gemm', 'gemv', 'matmul'"):
        package.designs("gem")


@PACKAGES
def test_a_design_prints_as_one_line(package):
    found = package.designs("matmul")
    design = found[0]
    assert str(design) == repr(design) == f"{design.name}, a {design.kind}: {design.summary} ({design.mirrors})"
    lines = str(found).splitlines()
    assert [line.split()[0] for line in lines] == [d.name for d in found] and design.summary in lines[0]


@PACKAGES
def test_a_design_is_accepted_where_its_name_is(package, monkeypatch):
    a = torch.randn(4, 4, device=DEVICE)
    design = package.designs("gemm")[0]
    assert package.explain("gemm", a, a, design=design) == package.explain("gemm", a, a, design=design.name)
    assert package.configs("gemm", a, a, design=design) == package.configs("gemm", a, a, design=design.name)
    named = package.gemm(a, a, design=design.name)
    for call in (package.gemm, torch.compile(package.gemm, fullgraph=True, backend="aot_eager")):
        assert torch.equal(call(a, a, design=design), named)
    assert torch.equal(package.gemm(a.clone().requires_grad_(), a, design=design), named)
    other = package.designs("matmul")[-1]
    with pytest.raises(UnknownDesignError, match=repr(other.name)):
        package.gemm(a, a, design=other)
    keep = "a call by name has been repeated already, so there is a plan"
    monkeypatch.setattr(package.LIBRARY.plans, "keep", lambda key, plan: pytest.fail(keep))
    package.gemm(a, a, design=design)


@pytest.mark.parametrize("op", tritonkernels.OPS)
def test_twins_have_the_same_signature(op):
    import inspect

    assert inspect.signature(getattr(tritonkernels, op)) == inspect.signature(getattr(cuda_reference, op))


def test_explain_names_what_the_call_launches(monkeypatch):
    a, b = torch.randn(300, 40, device=DEVICE), torch.randn(40, 500, device=DEVICE)
    report = tritonkernels.explain("gemm", a, b, design="naive")
    launched = []
    monkeypatch.setattr(TritonLaunch, "run", lambda launch: launched.append(launch))
    tritonkernels.gemm(a, b, design="naive")
    assert [launch.grid for launch in launched] == report["grid"]
    assert {k: v for k, v in launched[0].config.all_kwargs().items() if v is not None} == report["config"]
    assert (
        report["design"] == "naive"
        and report["problem"]["m"] == 300
        and report["bytes"] == 4 * (300 * 40 + 40 * 500 + 300 * 500)
    )


@PACKAGES
def test_explain_predicts_limits_on_a_gpu_that_is_not_there(package):
    """The seeds' example: 4096^3 in FP32 on a 10.1 TFLOP/s RTX 2080 takes at least 13.6 ms, limited by compute."""
    a = torch.empty(4096, 4096, device="meta")
    report = package.explain("gemm", a, a, target="rtx_2080")
    assert report["limits"]["bound_by"] == "compute"
    assert report["limits"]["compute_s"] == pytest.approx((2 * 4096**3 + 4096**2) / 10.1e12)
    assert report["limits"]["memory_s"] == pytest.approx(3 * 4 * 4096**2 / 448e9)
    x = torch.empty(4096, device="meta")
    assert package.explain("gemv", a, x, target="sm_90")["limits"]["bound_by"] == "memory"
    assert package.explain("gemv", a, x, target="sm_90")["target"] == "h200"


def test_a_split_mode_s_limit_is_that_of_its_planes():
    a, byte = (torch.empty(4096, 4096, dtype=dtype, device="meta") for dtype in (torch.float32, torch.uint8))

    def compute_s(a, precision):
        return tritonkernels.explain("matmul", a, a, precision=precision, target="h200")["limits"]["compute_s"]

    assert compute_s(a, "fp16x3") == pytest.approx(3 * 2 * 4096**3 / 989e12)
    assert compute_s(a, "bf16x9") == pytest.approx(3 * compute_s(a, "fp16x3"))
    assert compute_s(byte, "uint8") == pytest.approx(2 * 4096**3 / 1979e12)


@PACKAGES
def test_the_ranking_says_why(package):
    a = torch.empty(4096, 4096, device="meta")
    report = package.explain("gemm", a, a, target="h200")
    best, *others = report["ranking"]
    assert (best["design"], best["config"]) == (report["design"], report["config"]) and len(others) == 9
    assert best["seconds"] == report["predicted"]["seconds"] >= report["limits"]["compute_s"]
    assert [row["seconds"] for row in (best, *others)] == sorted(row["seconds"] for row in (best, *others))
    assert {row["records"] for row in (best, *others)} == {"timed"}, "every config of gemm was"
    assert best["bound_by"] in ("compute", "cache") and report["chosen_by"] == "model"
    printed = str(report).partition("ranking\n")[2].splitlines()
    assert len(printed) == 10 and printed[0].split()[1:4] == [best["bound_by"], "timed", best["design"]]
    assert "ranking" not in package.explain("gemm", a, a, design="tiled", target="h200"), "there was no choice"


def test_a_design_that_was_never_timed_in_a_precision_is_said_to_be(monkeypatch):
    figures = efficiency.sustained("h200")
    left = {key: own for key, own in figures.items() if key != "tritonkernels matmul.pipelined fp16"}
    monkeypatch.setattr(efficiency, "sustained", lambda name: left)
    a = torch.empty(1000, 1000, dtype=torch.bfloat16, device="meta")
    report = tritonkernels.explain("matmul", a, a, design="pipelined", target="h200")
    assert report["predicted"]["records"] == "never timed"
    of_designs = {row["design"]: row["records"] for row in tritonkernels.explain("matmul", a, a, target="h200")["ranking"]}
    assert of_designs["persistent"] == "timed" and of_designs.get("pipelined", "never timed") == "never timed"


@PACKAGES
def test_few_tiles_with_much_k_are_split(package):
    a, b = torch.empty(256, 65536, device="meta"), torch.empty(65536, 256, device="meta")
    report = package.explain("gemm", a, b, target="h200")  # 4 tiles for 132 SMs
    assert report["design"] in ("split_k", "stream_k") or report["config"]["SPLIT_K"] > 1


def test_explain_predicts_waves_and_occupancy():
    a = torch.empty(4096, 4096, device="meta")
    tile = {"BLOCK_M": 128, "BLOCK_N": 128}
    predicted = tritonkernels.explain("gemm", a, a, design="rasterized", config=tile, target="h200")["predicted"]
    assert predicted["blocks"] == 32 * 32 and predicted["intensity"] == 32
    assert predicted["waves"]["full"] >= 1 and 0 < predicted["occupancy"]["fraction"] <= 1


def test_config_follows_the_problem_s_size():
    def tile(size):
        a = torch.empty(size, size, device="meta")
        config = tritonkernels.explain("gemm", a, a, target="h200")["config"]
        return config["BLOCK_M"] * config["BLOCK_N"]

    assert tile(64) < min(tile(1024), tile(8192))


@PACKAGES
@pytest.mark.parametrize("shape", [(0, 1, 1), (1, 0, 1)])
def test_nothing_is_launched_for_an_empty_result(package, shape):
    m, n, k = shape
    a, b = torch.zeros(m, k, device=DEVICE), torch.zeros(k, n, device=DEVICE)
    problem, target = prepare("gemm", a, b).problem, package.LIBRARY.target(a.device)
    willing = [design.name for design in package.designs("gemm") if design.refuses(problem, target) is None]
    assert len(willing) > 2
    for design in willing:
        assert package.explain("gemm", a, b, design=design)["grid"] == []


def operands_of(op):
    """(args, kwargs) of calls of every shape, empty ones too, on tensors without memory."""
    empty = functools.partial(torch.empty, device="meta")
    if op == "conv2d":
        for image, weight, kwargs in cases.CONVOLUTIONS.values():
            yield (empty(image), empty(weight)), kwargs
    elif op.startswith("conv2d"):
        for name in cases.CONVOLUTIONS:
            yield gradient_call(op, name, lambda *shape: empty(shape))
    elif op == "gemv":
        for m, n in cases.GEMV_SIZES + cases.EMPTY_GEMVS:
            yield (empty(m, n), empty(n)), {}
            yield (empty(n, m).t(), empty(n)), {}
    else:
        dtype = torch.float16 if op == "matmul" else torch.float32
        for m, n, k in cases.GEMM_SIZES + cases.EMPTY_GEMMS:
            yield (empty(m, k, dtype=dtype), empty(k, n, dtype=dtype)), {}


@PACKAGES
@pytest.mark.parametrize("op", tritonkernels.OPS)
def test_every_config_for_a_gpu_has_its_launches(package, op, everything):
    """Without a GPU calls use other configs, so here the launches of the GPU's configs are made, but not run. `make test` has
    every 64th."""
    target, seen = Target.named("h200"), 0
    for args, kwargs in operands_of(op):
        problem = prepare(op, *args, **kwargs).problem
        for design in package.designs(op):
            if design.refuses(problem, target) is None:
                configs = [as_dict(config) for config in design.configs(problem, target)]
                assert configs, (design.name, problem)
                for config in configs[:: 1 if everything else 64]:
                    package.explain(op, *args, design=design.name, config=config, target=target, **kwargs)
                    seen += 1
    assert seen


def test_explain_prints_and_raises_what_the_call_raises():
    a = torch.randn(3, 4, device=DEVICE)
    text = str(tritonkernels.explain("gemm", a, a.t()))
    assert "rasterized" in text and "contender" in text and "BLOCK_M" in text
    with pytest.raises(ShapeError):
        tritonkernels.explain("gemm", a, a)
    with pytest.raises(UnknownDesignError):
        tritonkernels.explain("gemm", a, a.t(), design="none")
    with pytest.raises(BackendError, match="h200"):
        tritonkernels.explain("gemm", a, a.t(), target="h2000")


@PACKAGES
def test_an_explicit_config_is_used(package):
    a = torch.randn(3, 4, device=DEVICE)
    every = [package.explain("gemm", a, a.t(), design="rasterized", config=c)["config"] for c in configs(package, a)]
    assert len(every) > 1 and all(dict(c) == e for c, e in zip(configs(package, a), every))


def configs(package, a):
    problem = tritonkernels.gemm.__globals__["prepare"](a, a.t()).problem
    (rasterized,) = (d for d in package.designs("gemm") if d.name == "rasterized")
    return [as_dict(c) for c in rasterized.configs(problem, package.LIBRARY.target(a.device))]


@PACKAGES
@pytest.mark.parametrize("op", tritonkernels.OPS)
@pytest.mark.parametrize("target", ("h200", None))
def test_configs_are_those_that_a_call_accepts(package, op, target):
    """For a GPU that is not there, and for the present machine; the first is the default."""
    operands = built(SMALL[op], lambda *shape: torch.empty(shape, device="meta" if target else DEVICE))
    report = package.explain(op, *operands, target=target)
    found = package.configs(op, *operands, target=target)
    assert found[0] == report["config"] and json.loads(json.dumps(found)) == found
    assert found == package.configs(op, *operands, design=report["design"], target=target)
    for config in found:
        assert package.explain(op, *operands, config=config, target=target)["config"] == config


@PACKAGES
def test_configs_of_a_design_and_errors(package):
    a = torch.empty(512, 512, device="meta")
    naive, tiles = (package.configs("gemm", a, a, design=design, target="h200") for design in ("naive", "rasterized"))
    assert len(tiles) > 1 and tiles != naive and not any(config in naive for config in tiles)
    with pytest.raises(ShapeError):
        package.configs("gemm", a, a[:3], target="h200")
    with pytest.raises(ArgumentError, match="'gemm', 'gemv'"):
        package.configs("gem", a, a, target="h200")
    with pytest.raises(UnknownDesignError):
        package.configs("gemm", a, a, design="none", target="h200")
    with pytest.raises(UnsupportedError, match="rtx_2080"):
        package.configs("matmul", a.bfloat16(), a.bfloat16(), design="pipelined", target="rtx_2080")
    with pytest.raises(BackendError, match="did you mean 'h200'"):
        package.configs("gemm", a, a, target="h2000")
    with pytest.raises(DeviceError):
        package.configs("gemm", a, a)


def test_doctor_shows_versions_and_backend():
    report = tritonkernels.doctor()
    assert report["torch"] == torch.__version__ and report["backend"] == backend.name()
    assert "simt" in cuda_reference.doctor()


def test_known_targets_are_complete():
    """Except for L2's bandwidth, which vendors do not publish."""
    for target in KNOWN:
        if target.is_gpu:
            but = ("l2_bandwidth", "arch", "gfx", "measured")
            assert all(getattr(target, f.name) for f in dataclasses.fields(target) if f.name not in but), target.name
            assert bool(target.arch) != bool(target.gfx) and Target.named(target.name) is target
