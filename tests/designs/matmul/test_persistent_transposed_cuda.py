"""The CUDA design persistent where one operand of tf32 lies across K (transposed.cuh): it is not copied, and the transposed
product is right at the edges of tiles, with all that may follow, in any order of threads. Sums of small integers are exact."""

import re

import pytest
import torch

import cuda_reference
from cuda_reference.launch import config_of
from cuda_reference.matmul import cluster_split_k
from cuda_reference.matmul.persistent import DESIGN
from perf.offline import sass
from tests import nvcc
from tests.designs.matmul import exact
from tests.designs.matmul.exact import with_wgmma
from tests.designs.matmul.test_persistent_cuda import code_of
from tests.harness import DEVICES, offset_by_one, prepare, random, short, thorough, transposed
from tritonkernels.target import Target

SMALL = config_of(BM=64, BN=64, CONSUMERS=1, STAGES=4, GROUP=8, BLOCKS=3, SPLIT_K=1)
LONG = SMALL | {"BM": 128, "STAGES": 8}
TILES = {
    "small": SMALL,
    "long": LONG,
    "two": SMALL | {"BM": 128, "BN": 128, "CONSUMERS": 2, "STAGES": 6},
    "high": SMALL | {"BM": 256, "BN": 128, "CONSUMERS": 2},
    "three": SMALL | {"BM": 192, "BN": 192, "CONSUMERS": 3, "STAGES": 3},
    "pair of B": SMALL | {"BM": 128, "BN": 128, "CONSUMERS": 2, "STAGES": 6, "CLUSTER": 2, "BLOCKS": 4},
    "pair of A": SMALL | {"BM": 256, "BN": 128, "CONSUMERS": 2, "CLUSTER": 2, "BLOCKS": 4},
}
WIDE = SMALL | {"BM": 128, "BN": 256, "CONSUMERS": 2}  # 128 columns for each consumer
on_devices = pytest.mark.parametrize("device", DEVICES)
some_tiles = short(lambda device, tile: device == "cpu" and tile in ("small", "high", "pair of B"))


def integers(*shape, device="cpu"):
    return random(*shape, device=device).mul(3).round()


def computed(config, a, b, **options):
    """The result of a launch that takes an operand across K as it is."""
    launch, result = exact.computed(DESIGN, config, a, b, precision="tf32", **options)
    assert takes_one_across_k(launch), launch.expression
    return result


def takes_one_across_k(launch):
    """{A_BY_K}, {B_BY_K}, {PROMOTES} of the template."""
    return launch.name == "persistent" and ", true, false, false, matmul::" in launch.expression


def launches(config, a, b, design=DESIGN, **options):
    call = prepare("matmul", a, b, precision="tf32", **options)
    return list(design.launches(call.problem, config, *call.parts[0]))


def names(*args, **options):
    return [launch.name for launch in launches(*args, **options)]


def test_what_is_copied():
    a, b = random(96, 64), random(64, 128)
    for config in TILES.values():
        (launch,) = launches(config, a, b)
        assert takes_one_across_k(launch)
    align, launch = launches(SMALL, transposed(a), b)
    assert align.arguments[0].shape == (1, 96, 64) and takes_one_across_k(launch), "both lie across K, A is the smaller"
    align, launch = launches(SMALL, transposed(random(160, 64)), b)
    assert align.arguments[0].shape == (1, 128, 64) and takes_one_across_k(launch), "B is the smaller"
    align, launch = launches(SMALL, transposed(random(160, 64)), b, bias=random(128), c=random(160, 128), beta=1)
    assert align.arguments[0].shape == (1, 160, 64) and takes_one_across_k(launch), (
        "a bias cannot be added to rows together with C"
    )
    (launch,) = launches(SMALL, transposed(a), transposed(b))
    assert takes_one_across_k(launch), "A lies across K"
    assert names(WIDE, transposed(a), transposed(b)) == ["align", "persistent"]
    (launch,) = launches(SMALL, a, transposed(b))
    assert not takes_one_across_k(launch), "both lie along K"
    for unaligned in (offset_by_one(b), b[:, ::2], b[:1].expand_as(b)):
        align, launch = launches(SMALL, a, unaligned)
        assert align.arguments[0].shape == (1, 64, unaligned.shape[1]) and not takes_one_across_k(launch)
    assert names(WIDE, a, b) == ["align", "persistent"]
    assert names(SMALL | {"SPLIT_K": 2}, a, b, design=cluster_split_k.DESIGN) == ["align", "cluster_split_k"]


def test_an_operand_that_the_batch_shares_is_described_once():
    a, b = random(3, 96, 64), random(64, 128).expand(3, 64, 128)
    (launch,) = launches(SMALL, a, b)
    assert [tensor_map.tensor.shape[0] for tensor_map in launch.arguments[:3]] == [3, 1, 3]


@some_tiles
@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("sizes", [(8, 8, 64), (72, 56, 100), (1, 132, 4), (264, 300, 33), (328, 200, 520)], ids=str)
@on_devices
def test_at_the_edges_of_tiles(device, sizes, tile):
    """Boxes partly and wholly outside of operands and the result, several tiles a block, several rounds of the ring."""
    with_wgmma(device)
    m, n, k = sizes
    a, b = integers(m, -(-k // 4) * 4, device=device)[:, :k], integers(k, n, device=device)
    assert torch.equal(computed(TILES[tile], a, b, alpha=2).double(), 2 * (a.double() @ b.double()))


@on_devices
def test_operands_without_a_unit_stride(device):
    """They are copied, for either product."""
    with_wgmma(device)
    one, a, b = (integers(*shape, device=device) for shape in ((1, 1), (130, 64), (64, 100)))
    for left, right in (
        (one.expand(130, 64), transposed(b)),
        (one.expand(130, 64), one.expand(64, 100)),
        (transposed(a), one.expand(64, 100)),
        (transposed(a), integers(64, 400, device=device)[:, ::4]),
        (integers(130, 256, device=device)[:, ::4], transposed(b)),
    ):
        _, result = exact.computed(DESIGN, SMALL, left, right, precision="tf32")
        assert torch.equal(result.double(), left.double() @ right.double())


@some_tiles
@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("written", ["in boxes", "by pairs", "in columns", "by elements"])
@on_devices
def test_all_that_may_follow(device, written, tile):
    """Everything at its row and column, wherever the result is; nothing outside of it is written."""
    with_wgmma(device)
    a, b, c = (integers(*shape, device=device) for shape in ((2, 200, 36), (36, 260), (2, 200, 260)))
    bias = integers(260, device=device)
    first = {"in boxes": 16, "by pairs": 18, "in columns": 16, "by elements": 5}[written]
    buffer = torch.full((2, 204, 288), torch.nan, device=device)
    if written == "in columns":
        buffer = transposed(buffer)
    out = buffer[:, 2:202, first : first + 260]
    expected = a.double() @ b.double()
    options = {"c": c, "beta": -0.5, "bias": bias, "activation": "relu", "alpha": 1.5}
    for more, result in (
        (options, (1.5 * expected - 0.5 * c.double() + bias.double()).relu()),
        ({"c": transposed(c), "beta": 2}, expected + 2 * c.double()),
        ({}, expected),
    ):
        buffer.fill_(torch.nan)
        launch, _ = exact.computed(DESIGN, TILES[tile], a, b, precision="tf32", out=out, **more)
        assert takes_one_across_k(launch) and launch.expression.endswith(", true>" if written == "in boxes" else ", false>")
        assert torch.equal(out.double(), result)
        out.fill_(torch.nan)
        assert buffer.isnan().all(), "something outside of out was written"


@some_tiles
@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("out_layout", ["row", "col", "odd"])
@pytest.mark.parametrize("both", [False, True])
@on_devices
def test_a_across_k(device, both, out_layout, tile):
    """By the transposed product: alone, or with B across K, too, and smaller; with all that may follow."""
    with_wgmma(device)
    m, n, k = 264, 196, 72
    a, b = transposed(integers(2, m, k, device=device)), integers(k, n, device=device)
    b = (b if both else transposed(b)).expand(2, k, n)
    c, bias = integers(2, m, n, device=device), integers(n, device=device)
    buffer = torch.full((2, m + 4, 256), torch.nan, device=device)
    out = {
        "row": buffer[:, 2 : m + 2, 16 : n + 16],
        "col": transposed(buffer)[:, 2 : m + 2, 16 : n + 16],
        "odd": buffer[:, 2 : m + 2, 17 : n + 17],
    }[out_layout]
    expected = a.double() @ b.double()
    for options, result in (
        ({}, expected),
        ({"c": c, "beta": 2, "activation": "relu"}, (expected + 2 * c.double()).relu()),
        ({"bias": bias, "alpha": 1.5}, 1.5 * expected + bias.double()),
    ):
        buffer.fill_(torch.nan)
        assert torch.equal(computed(TILES[tile], a, b, out=out, **options).double(), result)
        out.fill_(torch.nan)
        assert buffer.isnan().all(), "something outside of out was written"


@some_tiles
@pytest.mark.parametrize("tile", TILES)
@on_devices
def test_special_values(device, tile):
    """An infinity or a NaN spoils what it is multiplied into, and no other element; what rounds to infinity, too."""
    with_wgmma(device)
    a, b = integers(70, 72, device=device), integers(72, 136, device=device)
    b[b == 0] = 1.0
    a[a == 0] = 1.0
    a[3, 5], a[66, 71], b[40, 7], b[71, 133], a[20, 0] = torch.inf, torch.nan, -torch.inf, torch.nan, 3.4028e38
    expected = a.double().nan_to_num(nan=torch.nan, posinf=torch.inf, neginf=-torch.inf)
    expected[20, 0] = torch.inf
    torch.testing.assert_close(computed(TILES[tile], a, b).double(), expected @ b.double(), rtol=0, atol=0, equal_nan=True)


@on_devices
def test_both_operands_are_rounded_to_nearest(device):
    with_wgmma(device)
    x, one = random(136, 136, device=device), torch.eye(136, device=device)
    for result in (computed(SMALL, x, one), computed(SMALL, one, x)):
        assert ((result - x).abs() <= 2.0**-11 * x.abs()).all() and not (result.view(torch.int32) & 0x1FFF).any()


@on_devices
def test_batches(device):
    with_wgmma(device)
    a, b = integers(3, 72, 328, device=device), integers(3, 328, 136, device=device)
    assert torch.equal(computed(SMALL, a, b).double(), a.double() @ b.double())
    assert torch.equal(computed(SMALL, a, b[:1].expand_as(b)).double(), a.double() @ b[:1].double())
    assert torch.equal(computed(SMALL, a[:1].expand_as(a), b).double(), a[:1].double() @ b.double())
    assert not cuda_reference.matmul(a * torch.nan, b, alpha=0, precision="tf32", design="persistent").any()


@short(lambda tile, order: order in ("1", "2") and tile in ("small", "pair of B"))
@pytest.mark.parametrize("order", ["1", "2", "3"])
@pytest.mark.parametrize("tile", TILES)
def test_any_order(monkeypatch, order, tile):
    """About half of the copies land at once, so that an early one would overwrite a slice that is still read."""
    a, b, c = integers(2, 200, 520), integers(2, 520, 264), integers(2, 200, 264)
    monkeypatch.setenv("SIMT_ORDER", order)
    result = computed(TILES[tile], a, b, c=c, beta=0.5, bias=c[0, 0])
    assert torch.equal(result.double(), a.double() @ b.double() + c.double() / 2 + c[0, 0].double())


@pytest.mark.parametrize("tile", ["small", "long"])
def test_accesses(tile):
    """Fragments and boxes of the result have no bank conflicts, and nothing races."""
    from cuda_reference.trace import trace

    (launch,) = launches(TILES[tile], random(128, 96), random(96, 128))
    (traced,) = trace(launch)
    assert traced.races == ()
    shared = [access for access in traced.accesses if access.width == 8 and access.requests > 100]
    assert sorted((access.kind, access.space) for access in shared) == [("read", "shared"), ("write", "shared")]
    assert all(access.units == access.ideal_units == access.requests for access in shared)


def test_the_model_knows_what_is_copied():
    a = torch.empty(4096, 4096, device="meta")
    target = Target.named("h200")

    def kernels(config, a, b, **options):
        call = prepare("matmul", a, b, precision="tf32", **options)
        assert (config["BM"], config["BN"]) in [(c["BM"], c["BN"]) for c in DESIGN.configs(call.problem, target)]
        return len(DESIGN.work(call.problem, config, target)), len(launches(config, a, b))

    assert kernels(TILES["high"], a, a) == (1, 1)
    assert kernels(WIDE, a, a) == (2, 2)
    assert kernels(TILES["high"], a.t(), a) == (2, 2)
    assert kernels(TILES["high"], a, a.t()) == (1, 1)
    assert kernels(TILES["high"], a.t(), a.t()) == (1, 1)
    assert kernels(WIDE, a.t(), a.t()) == (2, 2)
    assert kernels(TILES["high"], a[:1024].t(), a[:1024, :2048]) == (2, 2)
    assert kernels(TILES["high"], a, offset_by_one(a)) == (3, 2), "the problem does not say which of them is unaligned"
    assert cuda_reference.explain("matmul", a, a, precision="tf32", target="h200")["kernels"] == ["persistent"]


def test_a_tile_for_one_consumer_is_offered_only_where_it_has_all_columns():
    a, half = torch.empty(4096, 4096, device="meta"), torch.empty(4096, 4096, dtype=torch.float16, device="meta")

    def offered(a, b, **options):
        configs = DESIGN.configs(prepare("matmul", a, b, **options).problem, Target.named("h200"))
        return any((c["BM"], c["BN"], c["CONSUMERS"], c["STAGES"]) == (128, 64, 1, 8) for c in configs)

    assert offered(a, a, precision="tf32")
    assert not offered(a, a.t(), precision="tf32") and not offered(half, half)


# (tile, options) -> columns of an HGMMA, its registers of the launch
CODE = {
    "high": (TILES["high"], {}, 256),
    "high, gelu": (TILES["high"], {"activation": "gelu"}, 256),
    "three": (TILES["three"], {}, 192),
    "three, gelu": (TILES["three"], {"activation": "gelu"}, 192),
    "pair of A": (TILES["pair of A"], {}, 256),
    "two": (TILES["two"], {}, 128),
    "long": (LONG, {}, 128),
}


@thorough
@nvcc.needed
@pytest.mark.parametrize("kind", CODE)
def test_machine_code(kind):
    """Each half of a slice is one group of wgmmas that read their own registers, loaded 8 bytes at a time; no spills."""
    config, options, columns = CODE[kind]
    a = torch.empty(4096, 4096, device="meta")
    (launch,) = launches(config | {"BLOCKS": 132}, a, a, **options)
    code = code_of(launch)
    loop = code.hot_loop()
    products = [text for _, text in code.hot_instructions() if text.startswith("HGMMA")]
    instruction = rf"HGMMA.64x{columns}x8.F32.TF32 (R\d+), (R\d+), gdesc\[\w+\], \1"
    fragments = [int(re.match(instruction, text)[2][1:]) for text in products]
    assert len(fragments) == 4 and sass.count(loop, sass.TENSOR) == 4
    assert len({register for first in fragments for register in range(first, first + 4)}) == 16, (
        "none is loaded while it is read"
    )
    assert sass.count(loop, ("WARPGROUP.ARRIVE",)) == sass.count(loop, ("WARPGROUP.DEPBAR",)) == 2
    assert sass.count(loop, ("LDS.64",)) == sass.count(loop, sass.SHARED) == 8
    assert code.stack_bytes == 0 and sass.count(loop, sass.LOCAL) == 0
    assert loop.total() <= 110, f"{loop.total()} instructions: {loop}"
    assert options or len(code.instructions) <= 1500, "no addends and activations"
    opcodes = [text.split()[0] for _, text in code.instructions]
    boxes = 1 if options else config["BM"] // 32
    assert sum(opcode.startswith("UTMASTG.3D") for opcode in opcodes) == 2 * boxes
    consumers = config["CONSUMERS"]
    if consumers > 1:
        producer, consumer = {2: (40, 232), 3: (32, 160)}[consumers]
        assert code.registers * (consumers + 1) == producer + consumers * consumer, "or a consumer waits for ever"
