"""Tiles of the CUDA design persistent of other rows than multiples of 64, by the transposed product (swapped.cuh), and of more
columns than one wgmma has. Sums of small integers are exact."""

import itertools
import math

import pytest
import torch

from cuda_reference.launch import LIBRARY, config_of
from cuda_reference.matmul.parts import wgmma_tiles
from cuda_reference.matmul.parts.wgmma_tiles import shared_bytes, sharers_of_slices
from cuda_reference.matmul.persistent import DESIGN
from perf.offline import sass
from tests import nvcc
from tests.designs.matmul import exact
from tests.designs.matmul.exact import with_wgmma
from tests.designs.matmul.test_persistent_cuda import SLICES, code_of
from tests.harness import DEVICES, prepare, random, short, transposed
from tritonkernels.target import Target


def _tile(bm, bn, consumers, stages, swapped, share_a=1, share_b=1):
    cluster = share_a * share_b
    config = config_of(BM=bm, BN=bn, CONSUMERS=consumers, STAGES=stages, GROUP=8, BLOCKS=3 * cluster, SPLIT_K=1)
    shared = {"CLUSTER": cluster, "SHARE_A": share_a} if cluster > 1 else {}
    return config | shared | ({"SWAPPED": True} if swapped else {})


TILES = {
    "88 x 64": _tile(88, 64, 1, 8, True),
    "96 x 64": _tile(96, 64, 1, 8, True),
    "192 x 64": _tile(192, 64, 1, 6, True),
    "168 x 128": _tile(168, 128, 2, 5, True),
    "168 x 128 in pairs": _tile(168, 128, 2, 5, True, 1, 2),
    "136 x 192": _tile(136, 192, 3, 4, True),
    "320 x 128": _tile(320, 128, 2, 3, True),
    "64 x 72": _tile(64, 72, 1, 8, False),
    "64 x 256": _tile(64, 256, 1, 5, False),
    "128 x 168": _tile(128, 168, 2, 5, False),
    "128 x 168 in pairs": _tile(128, 168, 2, 5, False, 2, 1),
    "192 x 104": _tile(192, 104, 3, 5, False),
    "128 x 320": _tile(128, 320, 2, 3, False),
    "128 x 304 in 1 x 2": _tile(128, 304, 2, 3, False, 1, 2),
    "304 x 128 in 1 x 2": _tile(304, 128, 2, 3, True, 1, 2),
    "144 x 128 in 2 x 4": _tile(144, 128, 2, 5, True, 2, 4),
    "64 x 96 in 2 x 4": _tile(64, 96, 1, 9, False, 2, 4),
    "64 x 80 in 2 x 2": _tile(64, 80, 1, 8, False, 2, 2),
}
SWAPPED = {name: tile for name, tile in TILES.items() if "SWAPPED" in tile}
OF_TF32 = [name for name in TILES if TILES[name]["BM"] + TILES[name]["BN"] < 400]
SOME = ("88 x 64", "168 x 128", "128 x 168 in pairs", "128 x 320", "128 x 304 in 1 x 2", "144 x 128 in 2 x 4")
on_devices = pytest.mark.parametrize("device", DEVICES)
some_tiles = short(lambda device, tile: device == "cpu" and tile in SOME)


def integers(*shape, device="cpu", dtype=torch.float16):
    return random(*shape, device=device).mul(3).round().to(dtype)


def computed(tile, *operands, **options):
    launch, result = exact.computed(DESIGN, TILES[tile], *operands, **options)
    assert launch.name == "persistent"
    return result


@some_tiles
@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("sizes", [(8, 8, 64), (1, 136, 8), (72, 200, 100), (264, 328, 520), (500, 72, 33)], ids=str)
@on_devices
def test_at_the_edges_of_tiles(device, sizes, tile):
    """Boxes partly and wholly outside of operands and the result, several tiles a block, several rounds of the ring."""
    with_wgmma(device)
    m, n, k = sizes
    a, b = integers(m, -(-k // 8) * 8, device=device)[:, :k], transposed(integers(k, n, device=device))
    for out_dtype in (torch.float16, torch.float32):
        assert torch.equal(computed(tile, a, b, alpha=2, out_dtype=out_dtype).double(), 2 * (a.double() @ b.double()))


@short(
    lambda device, tile, layout_a, layout_b: device == "cpu" and tile in SOME[: None if layout_a == layout_b == "row" else 3]
)
@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("layout_b", ["row", "col"])
@pytest.mark.parametrize("layout_a", ["row", "col"])
@on_devices
def test_layouts(device, layout_a, layout_b, tile):
    """In batches; what lies across K is taken as it lies, also by tiles that are no whole boxes."""
    with_wgmma(device)
    a, b = integers(2, 328, 200, device=device), integers(2, 200, 328, device=device)
    a, b = (transposed(t) if layout == "col" else t for t, layout in ((a, layout_a), (b, layout_b)))
    call = prepare("matmul", a, b)
    (launch,) = DESIGN.launches(call.problem, TILES[tile], *call.parts[0])
    assert launch.shared_bytes <= Target.named("h200").shared_per_block
    assert torch.equal(computed(tile, a, b).double(), (a.double() @ b.double()).half().double())
    assert torch.equal(computed(tile, a, b[:1].expand_as(b)).double(), (a.double() @ b[:1].double()).half().double())


@on_devices
def test_a_ring_that_is_too_deep_for_boxes_across_k_gets_copies_along_it(device):
    """As calls of other operations choose it, whose problem says that a filter lies along K, and it is transposed."""
    with_wgmma(device)
    a, b = transposed(integers(136, 200, device=device)), integers(200, 136, device=device)
    tile = TILES["88 x 64"] | {"STAGES": 11}
    call = prepare("matmul", a.contiguous(), transposed(b))
    (launch,) = DESIGN.launches(call.problem, tile, *call.parts[0])
    call = prepare("matmul", a, b)
    *copies, launch = DESIGN.launches(call.problem, tile, *call.parts[0])
    assert len(copies) == 2 and launch.shared_bytes <= Target.named("h200").shared_per_block
    for each in (*copies, launch):
        each.run()
    assert torch.equal(call.result.double(), (a.double() @ b.double()).half().double())


def test_the_stride_of_a_single_matrix_does_not_say_how_it_lies():
    """The filter of a convolution by one tap, cut out of a larger one: TMA reads it, across K, whatever its batch's stride."""
    weight = torch.empty(512, 1000, dtype=torch.float16)[:, :996].T[..., None, None]
    call, target = prepare("conv2d", torch.empty(1, 512, 40, 32, dtype=torch.float16), weight), Target.named("h200")
    design = next(each for each in LIBRARY.designs("conv2d") if each.name == "matmul.persistent")
    used = [
        [launch.shared_bytes for launch in design.launches(call.problem, config, *call.parts[0])]
        for config in design.configs(call.problem, target)
    ]
    assert len(used) > 20 and all(max(bytes_of) <= target.shared_per_block for bytes_of in used)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("precision, sizes", [("fp16", (32, 64, 96, 20, 8)), ("tf32", (4, 40, 96, 112, 112))])
def test_every_config_takes_a_filter_that_lies_otherwise_than_its_problem_says(precision, sizes, channels_last):
    """The gradient of an input by one tap: A or B lies across K."""
    (n, k, c, *pixels), dtype = sizes, torch.float16 if precision == "fp16" else torch.float32
    grad_output, weight = torch.empty(n, k, *pixels, dtype=dtype), torch.empty(k, c, 1, 1, dtype=dtype)
    grad_output = grad_output.to(memory_format=torch.channels_last if channels_last else torch.contiguous_format)
    call, target = prepare("conv2d_input", (n, c, *pixels), weight, grad_output, precision=precision), Target.named("h200")
    design, copied = next(each for each in LIBRARY.designs("conv2d_input") if each.name == "matmul.persistent"), set()
    for config in design.configs(call.problem, target):
        launches = list(design.launches(call.problem, config, *call.parts[0]))
        product = launches[-1 if config["SPLIT_K"] == 1 else -2]
        assert product.shared_bytes <= target.shared_per_block
        swapped, in_turn = product.expression.split(", ")[9:11]
        assert (swapped, in_turn) != ("true", "true"), "persistent.cuh has none"
        copied.add(launches.index(product))
    assert precision == "tf32" or (0 in copied and len(copied) > 1), "only where it does not fit"


@short(lambda device, tile, out_dtype: device == "cpu" and tile in (SOME if out_dtype == torch.float16 else SOME[:2]))
@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("out_dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("written", ["in boxes", "by pairs", "in columns", "by elements"])
@on_devices
def test_all_that_may_follow(device, written, out_dtype, tile):
    """Everything at its row and column, wherever the result is; nothing outside of it is written."""
    with_wgmma(device)
    a, b, c = (integers(*shape, device=device) for shape in ((2, 200, 40), (40, 264), (2, 200, 264)))
    b, c, bias = transposed(b), c.to(out_dtype), integers(264, device=device).to(out_dtype)
    first = {"in boxes": 16, "by pairs": 18, "in columns": 16, "by elements": 5}[written]
    buffer = torch.full((2, 204, 288), torch.nan, device=device, dtype=out_dtype)
    if written == "in columns":
        buffer = transposed(buffer)
    out = buffer[:, 2:202, first : first + 264]
    expected = a.double() @ b.double()
    for options, result in (
        (
            {"c": c, "beta": -0.5, "bias": bias, "activation": "relu", "alpha": 1.5},
            (1.5 * expected - 0.5 * c.double() + bias.double()).relu(),
        ),
        ({"bias": bias}, expected + bias.double()),
        ({}, expected),
    ):
        buffer.fill_(torch.nan)
        launch, _ = exact.computed(DESIGN, TILES[tile], a, b, out=out, out_dtype=out_dtype, **options)
        assert launch.expression.endswith(", true>" if written == "in boxes" else ", false>")
        assert torch.equal(out.double(), result.to(out_dtype).double())
        out.fill_(torch.nan)
        assert buffer.isnan().all(), "something outside of out was written"


@some_tiles
@pytest.mark.parametrize("tile", SWAPPED)
@pytest.mark.parametrize("first", [16, 5], ids=["in boxes", "by elements"])
@on_devices
def test_the_result_may_be_c(device, first, tile, monkeypatch):
    """Which is added once to rows that two boxes have."""
    with_wgmma(device)
    monkeypatch.setenv("SIMT_ORDER", "1")  # some boxes are written before the next is filled
    a, b = integers(2, 200, 40, device=device), transposed(integers(40, 264, device=device))
    c = integers(2, 204, 288, device=device)[:, 2:202, first : first + 264]
    expected = 1.5 * (a.double() @ b.double()) - 0.5 * c.double()
    launch, result = exact.over_c(DESIGN, TILES[tile], a, b, c, alpha=1.5, beta=-0.5)
    assert launch.expression.endswith(", true>" if first == 16 else ", false>")
    assert torch.equal(result.double(), expected.half().double())


@short(lambda device, tile: device == "cpu" and tile in SOME)
@pytest.mark.parametrize("tile", OF_TF32)
@pytest.mark.parametrize("along_k", [False, True])
@on_devices
def test_tf32(device, along_k, tile):
    """A B across K comes from registers where a consumer has 64 columns: in tiles of any number of rows."""
    with_wgmma(device)
    a, b = integers(2, 264, 72, device=device, dtype=torch.float32), integers(2, 72, 196, device=device, dtype=torch.float32)
    b = transposed(b) if along_k else b
    if along_k or tile in ("88 x 64", "96 x 64", "192 x 64", "168 x 128"):
        bias = b[0, 0]
        result = computed(tile, a, b, precision="tf32", bias=bias, activation="relu")
        assert torch.equal(result.double(), (a.double() @ b.double() + bias.double()).relu())


@short(lambda device, tile: device == "cpu" and tile in SOME)
@pytest.mark.parametrize("tile", TILES)
@on_devices
def test_bytes(device, tile):
    """int8, and fp8 with fast sums and the scale of a matrix; with sums that are promoted three sets have room at 96 rows."""
    with_wgmma(device)
    a, b = (integers(*shape, device=device, dtype=torch.int8) for shape in ((264, 144), (336, 144)))
    expected = a.double() @ b.double().T
    if tile in ("96 x 64", "192 x 64", "320 x 128", "64 x 256", "128 x 320"):
        assert torch.equal(computed(tile, a, b.T).double(), expected)
    if TILES[tile]["CONSUMERS"] == 3:
        return
    a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
    for accumulate in ["fast", "fp32"] if tile in ("88 x 64", "96 x 64", "64 x 72") else ["fast"]:
        options = {"scale_a": torch.tensor([2.0], device=device), "scale_b": torch.tensor([0.5], device=device)}
        result = computed(tile, a, b.T, accumulate=accumulate, out_dtype=torch.float32, **options)
        assert torch.equal(result.double(), expected)


@short(lambda tile, order: order == "1" and tile in SOME)
@pytest.mark.parametrize("order", ["1", "2", "3"])
@pytest.mark.parametrize("tile", TILES)
def test_any_order(monkeypatch, order, tile):
    """About half of the copies land at once, so that an early one would overwrite a slice that is still read."""
    a, b, bias = integers(2, 200, 520), transposed(integers(2, 520, 264)), integers(264).float()
    monkeypatch.setenv("SIMT_ORDER", order)
    result = computed(tile, a, b, bias=bias, out_dtype=torch.float32)
    assert torch.equal(result.double(), a.double() @ b.double() + bias.double())


@pytest.mark.parametrize("out_dtype", [torch.float16, torch.float32], ids=str)
def test_accesses(out_dtype):
    """Boxes of the result have no bank conflicts, and nothing races."""
    from cuda_reference.trace import trace

    call = prepare("matmul", integers(192, 128), transposed(integers(128, 128)), out_dtype=out_dtype)
    (launch,) = DESIGN.launches(call.problem, TILES["88 x 64"], *call.parts[0])
    (traced,) = trace(launch)
    assert traced.races == ()
    writes = [
        access for access in traced.accesses if (access.kind, access.space) == ("write", "shared") and access.requests > 40
    ]
    assert writes and all(access.units == access.ideal_units for access in writes)


def spans(m, n, dtype=torch.bfloat16, layouts=("row", "col"), batch=(), **options):
    """{(SWAPPED, consumers, (tiles of a cluster along the span, across it)): spans} of what is offered on an H200."""
    a, b = (torch.empty(*batch, *shape, dtype=dtype, device="meta") for shape in ((m, 1024), (1024, n)))
    a, b = (transposed(t) if layout == "col" else t for t, layout in zip((a, b), layouts))
    problem, found = prepare("matmul", a, b, **options).problem, {}
    for c in wgmma_tiles.that_fill_waves(problem, Target.named("h200")):
        swapped = "SWAPPED" in c
        share_a, share_b = sharers_of_slices(c)
        shared = (share_b, share_a) if swapped else (share_a, share_b)
        found.setdefault((swapped, c["CONSUMERS"], shared), []).append(c["BM"] if swapped else c["BN"])
    return found


def test_spans_of_whole_waves():
    """What cuBLAS takes: 22 x 6 tiles of 768 x 3584, 33 x 28 of 3584 x 5504, in seven waves, 16 x 6 of 1024 x 528."""
    assert 168 in spans(768, 3584)[False, 2, (1, 1)] and 168 in spans(768, 3584)[False, 2, (2, 1)]
    assert 168 in spans(3584, 5504)[False, 2, (1, 1)]
    assert spans(1024, 528)[False, 1, (1, 1)][0] == 72 and spans(1024, 528)[False, 1, (2, 4)]
    assert 168 in spans(384, 3584, batch=(2,))[False, 2, (1, 1)]
    in_clusters = spans(1432, 1432, layouts=("row", "row"))
    assert in_clusters[True, 2, (2, 2)] == [144] and in_clusters[True, 2, (2, 4)] == [160], (
        "a quarter of 144 is no whole eights"
    )


@pytest.mark.parametrize("m, n", [(768, 3584), (1432, 1432), (200, 11008), (3000, 1000), (3000, 3000), (5640, 5640)])
def test_no_other_span_takes_less(m, n):
    """Among all multiples of 8: fewer rounds of walkers, each as long as the tile's span and what every tile costs. Above
    256 both halves are multiples of 8; what a pair shares is the longer side."""

    def steps(span, length, lines, along, across):
        tiles = math.ceil(math.ceil(length / span) / along) * math.ceil(lines / across)
        return math.ceil(tiles / (132 // (along * across))) * (span + 16)

    for (swapped, consumers, (along, across)), offered in spans(m, n).items():
        if along > 1 < across:
            assert len(offered) == 1
            continue
        length, other = (m, n) if swapped else (n, m)
        side = 64 * consumers
        of = length, math.ceil(other / side), along, across
        most = wgmma_tiles.MOST_SPAN[consumers] if across == 1 else wgmma_tiles.OF_PAIRS[consumers]
        assert all(span <= 256 or (span % 16 == 0 and across == 2) for span in offered)
        others = [span for span in range(64, most + 1, 8) if span % 64]
        others = [span for span in others if across == 1 or (span > side and span % 16 == 0)]
        assert steps(offered[0], *of) <= min(steps(span, *of) for span in others)


def test_halves_of_a_wide_tile_are_what_wgmma_multiplies_by():
    """Any eights in bf16, sixteens in int8."""
    assert spans(3000, 2992)[False, 2, (1, 2)][0] == 272 and spans(3000, 2992, torch.int8)[False, 2, (1, 2)][0] == 288


def test_which_problems_have_them():
    def other_than_64(layouts):
        return {swapped for (swapped, *_), of in spans(1000, 3000, layouts=layouts).items() if any(span % 64 for span in of)}

    assert other_than_64(("row", "col")) == {True, False}
    assert other_than_64(("row", "row")) == {True} and other_than_64(("col", "col")) == {False}, "boxes across K have 64"
    assert other_than_64(("col", "row")) == {True, False}, "where neither direction has whole boxes"
    half, single = (torch.empty(1000, 1000, dtype=dtype, device="meta") for dtype in (torch.bfloat16, torch.float32))
    assert spans(1000, 1000, bias=half[0]) == spans(1000, 1000)
    assert not spans(1000, 1000, c=half) and not spans(1000, 1001), "C may be the result's memory; TMA does not write it"
    assert not spans(1000, 1000, torch.float16, accumulate="fp16")
    assert spans(1000, 1000, single.dtype, precision="tf32")
    assert not spans(1000, 1000, single.dtype, ("row", "row"), precision="tf32")


def test_they_fit():
    """In shared memory, as deep a ring as fits, up to 12."""
    for (m, n), by_k in itertools.product(((768, 3584), (1432, 1432), (5640, 5640), (320, 4480)), (True, False)):
        a, b = (torch.empty(*shape, dtype=torch.bfloat16, device="meta") for shape in ((m, 1024), (1024, n)))
        a, b = (a, transposed(b)) if by_k else (transposed(a), b)
        for config in wgmma_tiles.that_fill_waves(prepare("matmul", a, b).problem, Target.named("h200")):
            lines = config["BM"] + config["BN"] if by_k else -(-config["BM"] // 64) * 64 + -(-config["BN"] // 64) * 64
            assert wgmma_tiles.lines_of_slices(config, 2, by_k, by_k) == lines
            assert shared_bytes(config, lines=lines) <= Target.named("h200").shared_per_block
            deeper = config | {"STAGES": config["STAGES"] + 1}
            two = shared_bytes(config, lines=lines) == shared_bytes(config, 2, lines)
            assert config["STAGES"] == 12 or shared_bytes(deeper, 2 if two else 1, lines) > wgmma_tiles.MOST_BYTES


# tile -> the instruction, how many per slice
CODE = {
    "88 x 64": ("HGMMA.64x88x16.F32", 4),
    "168 x 128": ("HGMMA.64x168x16.F32", 4),
    "320 x 128": ("HGMMA.64x160x16.F32", 8),
    "128 x 168 in pairs": ("HGMMA.64x168x16.F32", 4),
    "128 x 320": ("HGMMA.64x160x16.F32", 8),
    "128 x 304 in 1 x 2": ("HGMMA.64x152x16.F32", 8),
    "304 x 128 in 1 x 2": ("HGMMA.64x152x16.F32", 8),
}


@nvcc.needed
@short(lambda tile, options: tile == "88 x 64" and not options)
@pytest.mark.parametrize("options", [{}, {"activation": "gelu"}, {"out_dtype": torch.float32}], ids=str)
@pytest.mark.parametrize("tile", CODE)
def test_machine_code(tile, options):
    """No waits between the wgmmas of a slice, no spills; results of 16 bits are turned around by stmatrix."""
    instruction, count = CODE[tile]
    a = torch.empty(4096, 4096, dtype=torch.float16, device="meta")
    call = prepare("matmul", a, a.T, **options)
    (launch,) = DESIGN.launches(call.problem, TILES[tile] | {"BLOCKS": 132}, *call.parts[0])
    code = code_of(launch)
    loop = code.hot_loop()
    count *= SLICES
    assert sass.count(loop, (instruction,)) == sass.count(loop, sass.TENSOR) == count
    assert sass.count(loop, ("WARPGROUP.ARRIVE",)) == sass.count(loop, ("WARPGROUP.DEPBAR",)) == SLICES
    assert code.stack_bytes == 0 and loop.total() <= 60 * SLICES, f"{loop.total()} instructions: {loop}"
    stores = [text.split()[0] for _, text in code.instructions if text.startswith("STSM")]
    in_halves = "out_dtype" not in options
    assert bool(stores) == in_halves
    if "SWAPPED" in TILES[tile] and in_halves:
        assert all(".MT88" in opcode for opcode in stores), stores
