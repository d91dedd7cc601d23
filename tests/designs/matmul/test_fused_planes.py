"""The design fused_planes of both packages: what it computes is what `planes` would, without copies of the operands."""

import importlib
import math

import pytest
import torch

from tests.designs.matmul.exact import check_order, computed, of_four_parts
from tests.designs.matmul.test_planes import BOTH, FUSED, check_infinities_and_nan, special_as_in_float64
from tests.harness import (
    DEVICES,
    LIBRARIES,
    available_on,
    bits,
    padded,
    prepare,
    random,
    run_checked,
    short,
    small_integers,
    thorough,
)
from tritonkernels.errors import UnsupportedError
from tritonkernels.target import Target

ON = pytest.mark.parametrize("device", DEVICES)
OF_MODES = pytest.mark.parametrize("precision", FUSED)
CUDA = next(library for library in LIBRARIES if library.package == "cuda_reference")
SLICE = 64  # a whole number of slices of every config


def design_of(library, name="fused_planes"):
    return next(design for design in library.designs("matmul") if design.name == name)


def configs_of(library, device, a, b, **options):
    problem = prepare("matmul", a, b, **options).problem
    return [*design_of(library).configs(problem, library.target(torch.device(device)))]


def numbers_of(config):
    return config if isinstance(config, dict) else config.kwargs


@BOTH
@ON
@OF_MODES
@short(lambda precision, k: (precision, k) in (("tf32x3", 0), ("bf16x6", 65)))
@pytest.mark.parametrize("k", [0, 8, 40, 65, 200, 300])
def test_every_config_adds_up_all_of_k(library, device, precision, k):
    """Exactly, of integers: also those that leave the last split without a slice."""
    available_on(library, device)
    for m, n in ((72, 136), (72, 20), (19, 136)):
        a, b = small_integers(m, k, device=device), small_integers(k, n, device=device)
        for config in configs_of(library, device, a, b, precision=precision):
            _, result = computed(design_of(library), config, a, b, precision=precision)
            assert torch.equal(result.double(), a.double() @ b.double()), numbers_of(config)


LAYOUTS = {
    "NN": (lambda t: t, lambda t: t),
    "NT": (lambda t: t, lambda t: t.mT.contiguous().mT),
    "TN": (lambda t: t.mT.contiguous().mT, lambda t: t),
    "TT": (lambda t: t.mT.contiguous().mT, lambda t: t.mT.contiguous().mT),
}


@BOTH
@ON
@OF_MODES
@short(lambda precision, layout: (precision == "tf32x3") == (layout in ("NT", "TN")) and precision != "bf16x9")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_operands_are_read_as_they_lie(library, device, precision, layout):
    """By one launch, along K or across it, of the whole batch or shared by it, with all that may follow."""
    available_on(library, device)
    of_a, of_b = LAYOUTS[layout]
    a, b = of_a(random(3, 68, 148, device=device)), of_b(random(148, 76, device=device))
    c, bias = random(3, 68, 76, device=device), random(76, device=device)
    options = {"alpha": -1.5, "beta": 0.5, "c": c, "bias": bias, "activation": "gelu", "precision": precision}
    for config in ({"SPLIT_K": 1}, {"SPLIT_K": 2}):
        first, again = (run_checked(library, "matmul", "fused_planes", a, b, config=config, **options)[0] for _ in "ab")
        assert torch.equal(bits(first), bits(again))
    call, design = prepare("matmul", a, b, **options), design_of(library)
    config = next(iter(design.configs(call.problem, library.target(a.device))))
    assert len([*design.launches(call.problem, config, *call.parts[0])]) == 1


@BOTH
@ON
@OF_MODES
def test_operands_of_any_strides(library, device, precision):
    """CUDA copies those of which cp.async cannot read rows, Triton none."""
    available_on(library, device)
    a, b = padded(random(33, 51, device=device)), random(51, 37, device=device)[:, ::2]
    run_checked(library, "matmul", "fused_planes", a, b, precision=precision)
    run_checked(library, "matmul", "fused_planes", a[:, :1].expand(-1, 51), b, precision=precision)


@BOTH
@ON
@OF_MODES
def test_splits_are_added_in_the_order_of_k(library, device, precision):
    """The next call finds the counters at zero."""
    available_on(library, device)
    a, b = (t.float() for t in of_four_parts(SLICE, device=device))
    a, b = a.repeat(70, 1), b.repeat(40, 1).t()
    config = next(c for c in configs_of(library, device, a, b, precision=precision) if numbers_of(c)["SPLIT_K"] == 4)
    launch, result = computed(design_of(library), config, a, b, precision=precision)
    counters = launch.values["counters"] if library.package == "tritonkernels" else launch.arguments[6]
    assert result.unique().tolist() == [2.0] and launch.grid[1] == 4 and not counters.any()


@thorough
@pytest.mark.parametrize("order", ["1", "2"])
@pytest.mark.parametrize("config", [{"BM": 64, "BN": 64, "SPLIT_K": 1}, {"BM": 64, "BN": 64, "SPLIT_K": 4}], ids=str)
def test_any_order_of_blocks(monkeypatch, order, config):
    check_order(monkeypatch, order, "fused_planes", config, torch.float32, precision="tf32x3")


@BOTH
@ON
@OF_MODES
def test_infinities_of_one_split(library, device, precision):
    check_infinities_and_nan(library, device, "fused_planes", precision, {"SPLIT_K": 2})


@BOTH
@ON
@OF_MODES
def test_an_infinity_at_any_place(library, device, precision):
    """Once in each 8 of k, in another row each time, times tiny numbers alone: of which no plane may be 0 then."""
    available_on(library, device)
    at = torch.arange(32, device=device)
    for infinite in (math.inf, -math.inf):
        a, b = random(32, 256, device=device), random(256, 32, device=device)
        a[at, at * 8 + at % 8], b[at * 8 + at % 8] = infinite, 2.0**-149
        for one, other in ((a, b), (b.T, a.T)):
            result, _ = run_checked(library, "matmul", "fused_planes", one, other, precision=precision)
            assert special_as_in_float64(result, one, other) == 32 * 32


@ON
def test_the_bits_of_planes(device):
    """With tf32x3 in CUDA, whose fragments hold the same k."""
    available_on(CUDA, device)
    a, b = random(140, 300, device=device), random(300, 150, device=device)
    a[3, 7], a[9, 280] = math.inf, 2.0**-140
    results = [
        run_checked(CUDA, "matmul", name, a, b, config={"SPLIT_K": 1}, precision="tf32x3")[0]
        for name in ("planes", "fused_planes")
    ]
    assert torch.equal(*map(bits, results))


@BOTH
def test_it_has_no_shifted_planes(library):
    a = torch.empty(40, 40, device="meta")
    package = importlib.import_module(library.package)
    with pytest.raises(UnsupportedError, match="fp16x3 shifts rows by their largest elements, which no slice of them knows"):
        package.explain("matmul", a, a, precision="fp16x3", design="fused_planes", target="h200")
    with pytest.raises(UnsupportedError, match="it multiplies float32 as tf32x3, bf16x6, bf16x9, not tf32"):
        package.explain("matmul", a, a, precision="tf32", design="fused_planes", target="h200")


@BOTH
@OF_MODES
@pytest.mark.parametrize("name", ("a100", "rtx_4090", "h200", "b200", "rtx_5090"))
def test_the_model_counts_no_copies(library, precision, name):
    """One kernel for operands as they lie, by which few rows of it are faster than by `planes`; thin tiles for them."""
    target = Target.named(name)
    problem = prepare("matmul", *(torch.empty(*s, device="meta") for s in ((4096, 64), (64, 32))), precision=precision).problem
    for config in design_of(library).configs(problem, target):
        assert len(design_of(library).work(problem, config, target)) == 1
    widths = {numbers_of(c).get("BN") or numbers_of(c)["BLOCK_N"] for c in design_of(library).configs(problem, target)}
    assert 32 in widths
