"""The CUDA design persistent_planes: edges of tiles and of the kernel that joins, batches that share an operand, what follows,
special values, how exact it is, and its machine code for Hopper."""

import math

import pytest
import torch

import cuda_reference
from cuda_reference.launch import LIBRARY
from cuda_reference.matmul.persistent_planes import DESIGN
from perf.offline import sass
from tests import nvcc
from tests.designs.matmul.exact import with_wgmma
from tests.designs.matmul.test_fused_planes import LAYOUTS
from tests.designs.matmul.test_planes import special_as_in_float64
from tests.harness import DEVICES, padded, prepare, random, run_checked, short, small_integers
from tritonkernels.errors import UnsupportedError
from tritonkernels.target import Target

ON = pytest.mark.parametrize("device", DEVICES)
X3 = {"precision": "fp16x3"}
TILES = {
    "small": {"BM": 64, "BN": 64, "CONSUMERS": 1},
    "square": {"BM": 128, "BN": 128, "CONSUMERS": 2, "CLUSTER": 1},
    "pair": {"BM": 128, "BN": 128, "CONSUMERS": 2, "CLUSTER": 2},
    "wide": {"BM": 128, "BN": 128, "CONSUMERS": 2, "WIDE": True},
    "wide pair": {"BM": 128, "BN": 128, "CONSUMERS": 2, "CLUSTER": 2, "WIDE": True},
}
OF_TILES = pytest.mark.parametrize("tile", TILES)


def checked(device, a, b, tile="small", **options):
    with_wgmma(device)
    config = {name: number for name, number in TILES[tile].items() if name != "CLUSTER" or number > 1}
    return run_checked(LIBRARY, "matmul", "persistent_planes", a, b, config=config, **X3, **options)[0]


@ON
@OF_TILES
@short(lambda tile, k, layout: (tile, layout) == ("small", "NN") or (k, layout) == (130, "TT"))
@pytest.mark.parametrize("k", [0, 1, 63, 64, 65, 130])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_small_integers_are_exact(device, tile, k, layout):
    """Corrections are zero then, and the high planes hold the numbers."""
    of_a, of_b = LAYOUTS[layout]
    for m, n in ((72, 133), (129, 20), (1, 66)):
        a, b = of_a(small_integers(m, k, device=device)), of_b(small_integers(k, n, device=device))
        assert torch.equal(checked(device, a, b, tile).double(), a.double() @ b.double())


@ON
@OF_TILES
@short(lambda tile, shared: tile == "small" or shared == "b")
@pytest.mark.parametrize("shared", ["a", "b", "none"])
def test_batches_and_what_follows(device, tile, shared):
    a = random(*([] if shared == "a" else [3]), 68, 148, device=device)
    b = random(*([] if shared == "b" else [3]), 148, 78, device=device)
    options = {"alpha": -1.5, "beta": 0.5, "c": padded(random(3, 68, 78, device=device)), "bias": random(78, device=device)}
    checked(device, a, b, tile, **options, activation="gelu")
    checked(device, padded(a), b[..., ::2], tile)


@ON
def test_special_values(device):
    """Infinities and NaN reach what float64 has them reach, also from a low plane of zero."""
    for value in (math.inf, -math.inf, math.nan):
        a, b = random(70, 130, device=device), random(130, 40, device=device)
        a[3, 5], b[100, 7] = value, value
        assert special_as_in_float64(checked(device, a, b), a, b) == 40 + 69


@ON
def test_corrections_count(device):
    """It is as exact as planes, and a thousand times as exact as products of high planes."""
    a, b = random(72, 4096, device=device), random(4096, 40, device=device)
    exact = a.double() @ b.double()

    def error(result):
        return (result - exact).norm() / exact.norm()

    planes, _ = run_checked(LIBRARY, "matmul", "planes", a, b, **X3)
    for tile in ("small", "wide"):
        assert error(checked(device, a, b, tile)) <= 1.5 * error(planes)
    assert error(a.half().double() @ b.half().double()) > 500 * error(planes)


def test_what_it_refuses():
    a = torch.empty(40, 40, device="meta")
    for target, options, why in (
        ("h200", {"precision": "bf16x6"}, "it multiplies float32 as fp16x3 or fp32, not bf16x6"),
        ("a100", X3, "it needs wgmma, which only sm_90 has"),
        ("b200", X3, "it needs wgmma, which only sm_90 has"),
    ):
        with pytest.raises(UnsupportedError, match=why):
            cuda_reference.explain("matmul", a, a, design="persistent_planes", target=target, **options)


def test_what_the_corrections_cannot_count_is_refused():
    """They are products of twice K."""
    for k, fits in ((2**30 - 2**15, True), (2**30 - 2**15 + 1, False)):
        problem = prepare("matmul", torch.empty(1, k, device="meta"), torch.empty(k, 4, device="meta"), **X3).problem
        assert (DESIGN.refuses(problem, Target.named("h200")) is None) == fits


def test_nothing_is_built_for_operands_that_lie_otherwise():
    """Planes always lie along K."""
    call = prepare("matmul", torch.empty(300, 200), torch.empty(200, 100), **X3)
    config = next(c for c in DESIGN.configs(call.problem, Target.named("h200")) if (c["BM"], c["BN"]) == (128, 128))
    *_, corrections, main, _ = DESIGN.launches(call.problem, config, *call.parts[0])
    assert corrections.source.expressions == main.source.expressions == (main.expression,)


def test_configs_leave_registers_for_three_sums():
    call = prepare("matmul", torch.empty(3000, 2000, device="meta"), torch.empty(2000, 1000, device="meta"), **X3)
    configs = [*DESIGN.configs(call.problem, Target.named("h200"))]
    assert {(c["BM"], c["BN"]) for c in configs} >= {(128, 128), (64, 64), (128, 64)}
    assert all(c["BM"] * c["BN"] <= 64 * 128 * c["CONSUMERS"] and c["CONSUMERS"] < 3 for c in configs)


@nvcc.needed
def test_machine_code():
    """Both products are by one kernel, without spills; what is joined is read and written by 128 bits."""
    call = prepare("matmul", torch.empty(300, 200, device="meta"), torch.empty(200, 100, device="meta"), **X3)
    config = next(c for c in DESIGN.configs(call.problem, Target.named("h200")) if (c["BM"], c["BN"]) == (128, 128))
    *_, corrections, main, joined = DESIGN.launches(call.problem, config, *call.parts[0])
    assert corrections.expression == main.expression and "true, matmul::NO_SCALES, true, true" in main.expression
    *_, wide, _, _ = DESIGN.launches(call.problem, config | {"WIDE": True}, *call.parts[0])
    assert "128, 256, 2" in wide.expression and "false, matmul::NO_SCALES, true, true" in wide.expression
    for launch, code in ((main, "HGMMA"), (joined, "LDG.E.128")):
        source = launch.source
        (read,) = sass.read(nvcc.compiled("90a", [source.header], [launch.expression]).cubin).values()
        texts = [text for _, text in read.instructions]
        assert not read.stack_bytes and sum(code in text for text in texts) >= 2, source.header
    assert any("STG.E.128" in text for text in texts)
