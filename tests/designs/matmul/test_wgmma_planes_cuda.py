"""The CUDA design wgmma_planes: every layout, edge and cut of tiles exactly, of small integers; special values; its accesses to
shared memory and its machine code for Hopper."""

import math

import pytest
import torch

import cuda_reference
from cuda_reference.launch import LIBRARY, config_of
from cuda_reference.matmul.wgmma_planes import DESIGN
from perf.offline import sass
from tests import nvcc
from tests.designs.matmul.exact import OF_GROUPS, check_order, of_four_parts, with_wgmma
from tests.designs.matmul.exact import computed as computed_by
from tests.designs.matmul.test_fused_planes import LAYOUTS
from tests.designs.matmul.test_planes import check_infinities_and_nan, special_as_in_float64
from tests.harness import DEVICES, bits, padded, prepare, random, run_checked, short, small_integers
from tritonkernels.errors import UnsupportedError
from tritonkernels.target import Target

ON = pytest.mark.parametrize("device", DEVICES)
DEPTH = 32  # numbers of a slice
SMALL = config_of(BM=64, BN=64, STAGES=3, GROUP=8, BLOCKS=3, WAVES=1, PARTS=8)
TILES = {
    "small": SMALL,
    "two": SMALL | {"BM": 128, "STAGES": 6},
    "three": SMALL | {"BM": 192, "STAGES": 5},
    "wide": SMALL | {"BN": 128, "STAGES": 5},
    "square": SMALL | {"BM": 128, "BN": 128, "STAGES": 4},
}
OF_TILES = pytest.mark.parametrize("tile", TILES)
FEW = ("small", "two")  # one consumer, two of them
few_tiles = short(lambda tile: tile in FEW)
X3 = {"precision": "tf32x3"}


def computed(config, a, b, **options):
    return computed_by(DESIGN, config, a, b, **X3, **options)


@ON
@OF_TILES
@short(lambda tile, k, layout: (k in (8, 300) and (tile in FEW or layout == "NN")) or (tile, layout, k) == ("small", "TT", 65))
@pytest.mark.parametrize("k", [0, 1, 8, 31, 33, 65, 300])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_of_k_in_every_layout(device, tile, k, layout):
    """At the edges of tiles, some of which blocks share."""
    with_wgmma(device)
    of_a, of_b = LAYOUTS[layout]
    for m, n in ((72, 136), (260, 20), (19, 196)):
        a, b = of_a(small_integers(m, k, device=device)), of_b(small_integers(k, n, device=device))
        _, result = computed(TILES[tile], a, b)
        assert torch.equal(result.double(), a.double() @ b.double())


@ON
@OF_TILES
@short(lambda tile, layout: tile == "small" or layout == "TN")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_operands_are_read_as_they_lie(device, tile, layout):
    """By one launch, of the whole batch or shared by it, with all that may follow."""
    with_wgmma(device)
    of_a, of_b = LAYOUTS[layout]
    a, b = of_a(random(3, 68, 148, device=device)), of_b(random(148, 76, device=device))
    options = {"alpha": -1.5, "beta": 0.5, "c": random(3, 68, 76, device=device), "bias": random(76, device=device)}
    options |= {"activation": "gelu", "config": {name: TILES[tile][name] for name in ("BM", "BN")}, **X3}
    first, again = (run_checked(LIBRARY, "matmul", "wgmma_planes", a, b, **options)[0] for _ in "ab")
    assert torch.equal(bits(first), bits(again))
    call = prepare("matmul", a, b, **X3)
    assert len([*DESIGN.launches(call.problem, TILES[tile], *call.parts[0])]) == 1


@ON
def test_operands_of_any_strides(device):
    """Operands that TMA cannot read are copied."""
    with_wgmma(device)
    a, b = padded(random(33, 51, device=device)), random(51, 37, device=device)[:, ::2]
    run_checked(LIBRARY, "matmul", "wgmma_planes", a, b, **X3)
    run_checked(LIBRARY, "matmul", "wgmma_planes", a[:, :1].expand(-1, 51), b, **X3)


@ON
@OF_TILES
@few_tiles
def test_special_values(device, tile):
    """Infinities, NaN and tiny numbers in either operand: once in each 8 of k, in another row each time."""
    with_wgmma(device)
    config = {name: TILES[tile][name] for name in ("BM", "BN")}
    check_infinities_and_nan(LIBRARY, device, "wgmma_planes", "tf32x3", config)
    at = torch.arange(32, device=device)
    for infinite in (math.inf, -math.inf):
        a, b = random(32, 256, device=device), random(256, 32, device=device)
        a[at, at * 8 + at % 8], b[at * 8 + at % 8] = infinite, 2.0**-149
        for one, other in ((a, b), (b.T, a.T)):
            result, _ = run_checked(LIBRARY, "matmul", "wgmma_planes", one, other, config=config, **X3)
            assert special_as_in_float64(result, one, other) == 32 * 32


@ON
@OF_TILES
@few_tiles
@pytest.mark.parametrize("own", OF_GROUPS.values(), ids=OF_GROUPS)
def test_parts_are_added_in_the_order_of_k(device, tile, own):
    """The next call finds the counters at zero."""
    with_wgmma(device)
    config = TILES[tile] | {"BLOCKS": 28, "PARTS": 128}
    a, b = (t.float() for t in of_four_parts(4 * DEPTH, 28, own, device))
    a, b = a.repeat(config["BM"], 1), b.repeat(config["BN"], 1).t()
    launch, result = computed(config, a, b)
    assert launch.arguments[-1] == 28 and result.unique().tolist() == [2.0]
    assert not launch.arguments[-3].any()


@OF_TILES
@short(lambda order, tile: order == "1" and tile in FEW)
@pytest.mark.parametrize("order", ["1", "2"])
def test_any_order_of_threads(monkeypatch, order, tile):
    config = {name: TILES[tile][name] for name in ("BM", "BN")}
    check_order(monkeypatch, order, "wgmma_planes", config, torch.float32, **X3)


@ON
def test_it_is_as_exact_as_planes(device):
    """Their sums differ in the order of additions alone."""
    with_wgmma(device)
    a, b = random(72, 4096, device=device), random(4096, 40, device=device)
    exact = a.double() @ b.double()

    def error(name):
        result, _ = run_checked(LIBRARY, "matmul", name, a, b, **X3)
        return (result - exact).norm() / exact.norm()

    assert error("wgmma_planes") <= 1.5 * error("planes")


def test_what_it_refuses():
    a = torch.empty(40, 40, device="meta")
    for target, options, why in (
        ("h200", {"precision": "fp16x3"}, "it multiplies float32 as tf32x3, not fp16x3"),
        ("a100", X3, "it needs wgmma, which only sm_90 has"),
        ("b200", X3, "it needs wgmma, which only sm_90 has"),
    ):
        with pytest.raises(UnsupportedError, match=why):
            cuda_reference.explain("matmul", a, a, design="wgmma_planes", target=target, **options)


@OF_TILES
@short(lambda tile, layout: tile == "square" or (tile, layout) == ("small", "TT"))
@pytest.mark.parametrize("layout", LAYOUTS)
def test_accesses(tile, layout):
    """No bank is asked twice for fragments and planes, whichever way operands lie. Nothing races, of one tile and a slice in
    each stage; of a B that is turned in its place the trace cannot say so, as it knows no barriers of a warpgroup."""
    from cuda_reference.trace import trace

    (of_a, of_b), (rows, columns) = LAYOUTS[layout], tile_of(TILES[tile])
    call = prepare("matmul", of_a(random(rows, 96)), of_b(random(96, columns)), **X3)
    (launch,) = DESIGN.launches(call.problem, TILES[tile], *call.parts[0])
    (traced,) = trace(launch)
    assert traced.races == () or layout in ("NN", "TN")
    shared = [access for access in traced.accesses if access.space == "shared" and access.width >= 4 and access.requests > 8]
    assert {access.kind for access in shared} == {"read", "write"}
    assert [str(access) for access in shared if access.units != access.ideal_units] == []


# Of 64 rows: the wgmmas of 32 of k, the groups of them, and what a thread may read and write of its stack in a slice
CODE = {"small": (12, 4, 2), "two": (12, 2, 0), "three": (12, 4, 3), "wide": (12, 4, 24), "square": (12, 4, 24)}


@nvcc.needed
@OF_TILES
@short(lambda tile, layout: (tile, layout) == ("three", "NT"))
@pytest.mark.parametrize("layout", LAYOUTS)
def test_machine_code(tile, layout):
    """wgmmas run while the next fragments are split: ptxas has not made them wait."""
    of_a, of_b = LAYOUTS[layout]
    a, b = of_a(torch.empty(4096, 4096, device="meta")), of_b(torch.empty(4096, 4096, device="meta"))
    call = prepare("matmul", a, b, **X3)
    config = next(c for c in DESIGN.configs(call.problem, Target.named("h200")) if tile_of(c) == tile_of(TILES[tile]))
    (launch,) = DESIGN.launches(call.problem, config, *call.parts[0])
    assert launch.shared_bytes <= Target.named("h200").shared_per_block
    (code,) = sass.read(nvcc.compiled("90a", [launch.source.header], [launch.expression]).cubin).values()
    loop, (wgmmas, groups, on_stack) = code.hot_loop(), CODE[tile]
    instruction = f"HGMMA.64x{config['BN']}x8.F32.TF32"
    assert sass.count(loop, (instruction,)) == sass.count(loop, sass.TENSOR) == wgmmas
    assert sass.count(loop, ("WARPGROUP.ARRIVE",)) == sass.count(loop, ("WARPGROUP.DEPBAR",)) == groups
    if (tile, layout[0]) == ("three", "T"):  # an A across K takes more registers than three consumers have
        on_stack = 8
    assert sass.count(loop, ("LDL", "STL")) <= on_stack


def tile_of(config):
    return config["BM"], config["BN"]


def test_the_model_counts_no_copies():
    """One kernel for operands as they lie, in one wave of shared tiles."""
    target = Target.named("h200")
    problem = prepare("matmul", *(torch.empty(*s, device="meta") for s in ((128, 65536), (65536, 128))), **X3).problem
    works = [DESIGN.work(problem, config, target) for config in DESIGN.configs(problem, target)]
    assert {len(work) for work in works} == {1} and max(work[0].blocks for work in works) > 250
