"""The CUDA design stream_k of matmul: which tiles are shared to the slice and by whom, the order in which parts are added, and
its machine code for Hopper. Sums of small integers are exact, so results must be equal."""

import pytest
import torch

from cuda_reference.launch import config_of
from cuda_reference.matmul.stream_k import DESIGN, cut
from perf.offline import sass
from tests import nvcc
from tests.covering import alone
from tests.designs.matmul import exact
from tests.designs.matmul.exact import OF_GROUPS, integers, of_four_parts, with_wgmma
from tests.designs.matmul.test_persistent_cuda import SLICES
from tests.harness import DEVICES, prepare, random, short, thorough, transposed
from tritonkernels.target import Target

BLOCKS, DEPTH = 3, 64  # elements of a slice of fp16
SMALL = config_of(BM=64, BN=64, CONSUMERS=1, STAGES=4, GROUP=8, BLOCKS=BLOCKS, WAVES=1, PARTS=8)
LOW, HIGH = SMALL | {"BN": 128, "STAGES": 8}, SMALL | {"BM": 256, "BN": 128, "CONSUMERS": 2}
PAIRS = {
    "of B": SMALL | {"BM": 128, "BN": 128, "CONSUMERS": 2, "STAGES": 6, "CLUSTER": 2, "BLOCKS": 2 * BLOCKS},
    "of A": HIGH | {"CLUSTER": 2, "BLOCKS": 2 * BLOCKS},
    "of four": SMALL | {"BM": 128, "BN": 128, "CONSUMERS": 2, "STAGES": 6, "CLUSTER": 4, "BLOCKS": 4 * BLOCKS},
    "of three": SMALL | {"BM": 192, "BN": 128, "CONSUMERS": 3, "CLUSTER": 2, "BLOCKS": 2 * BLOCKS},
}
on_devices = pytest.mark.parametrize("device", DEVICES)


def computed(config, a, b, **options):
    return exact.computed(DESIGN, config, a, b, **options)


@short(lambda device, tiles, k, waves: k > 0 or tiles in (1, 4))
@pytest.mark.parametrize("waves", (1, 2))
@pytest.mark.parametrize("k", (0, 64, 200, 800))
@pytest.mark.parametrize("tiles", (1, 2, BLOCKS, BLOCKS + 1, 2 * BLOCKS - 1, 2 * BLOCKS + 1))
@on_devices
def test_at_the_edges_of_waves(device, tiles, k, waves):
    """With 0, 1, 4 and 13 slices. All of the epilogue follows, once."""
    with_wgmma(device)
    a, b, c = (integers(*shape, device=device) for shape in ((9, k), (k, 64 * tiles - 3), (9, 64 * tiles - 3)))
    _, result = computed(SMALL | {"WAVES": waves}, a, b, c=c, beta=0.5, activation="relu")
    assert torch.equal(result.double().cpu(), (a.double() @ b.double() + c.double() / 2).relu().half().double().cpu())


@short(lambda device, rows, config: rows in (1, 17, 64) or config is HIGH)
@pytest.mark.parametrize("rows", (1, 16, 17, 48, 64))
@pytest.mark.parametrize("config", (SMALL, LOW, HIGH), ids=("small", "low", "high"))
@on_devices
def test_parts_of_few_rows(device, rows, config):
    """Warps without a row in the result exchange nothing, and those with one all of theirs."""
    with_wgmma(device)
    rows += (config is HIGH) * 128
    a, b = integers(rows, 900, device=device), integers(900, 200, device=device)
    launch, result = computed(config, a, b, out_dtype=torch.float32)
    assert launch.arguments[-1] == BLOCKS, "all share"
    assert torch.equal(result.double(), a.double() @ b.double())


@pytest.mark.parametrize("waves", (1, 2))
@pytest.mark.parametrize("batch, n", [(4, 45), (5, 129)])
@on_devices
def test_a_run_goes_from_one_matrix_of_a_batch_to_the_next(device, batch, n, waves):
    with_wgmma(device)
    a, b = integers(batch, 70, 520, device=device), integers(batch, 520, n, device=device)
    _, result = computed(SMALL | {"WAVES": waves}, a, b, out_dtype=torch.float32)
    assert torch.equal(result.double(), a.double() @ b.double())
    _, result = computed(SMALL | {"WAVES": waves}, a, b[:1].expand_as(b), out_dtype=torch.float32)
    assert torch.equal(result.double(), a.double() @ b[:1].double())


@short(lambda device, pair, k, parts: k in (0, 800) and (parts == 8 or pair == "of B"))
@pytest.mark.parametrize("parts", (8, 128))
@pytest.mark.parametrize("k", (0, 64, 200, 800))
@pytest.mark.parametrize("pair", PAIRS)
@on_devices
def test_pairs_share_runs(device, pair, k, parts):
    """Whole tiles and parts of them, one of which may lie outside of the result. All of the epilogue follows, once."""
    with_wgmma(device)
    for batch, m, n in ((1, 9, 300), (1, 300, 700), (2, 530, 100)):
        a, b, c = (integers(batch, *shape, device=device) for shape in ((m, k), (k, n), (m, n)))
        c = c.float()
        _, result = computed(PAIRS[pair] | {"PARTS": parts}, a, b, c=c, beta=0.5, activation="relu", out_dtype=torch.float32)
        assert torch.equal(result.double(), (a.double() @ b.double() + c.double() / 2).relu())


@pytest.mark.parametrize("before", (0, 4))
@on_devices
def test_parts_are_added_in_the_order_of_k(device, before):
    """For the only tile, and for one after a whole wave. The next call finds the counters at zero."""
    check_order_of_parts(device, {"BLOCKS": 4}, 4, before, *of_four_parts(4 * DEPTH, device=device))


@pytest.mark.parametrize("config", ({}, HIGH, *PAIRS.values()), ids=("small", "high", *PAIRS))
@pytest.mark.parametrize("own", OF_GROUPS.values(), ids=OF_GROUPS)
@on_devices
@alone("own")
def test_many_parts_are_added_in_groups(device, own, config):
    a, b = of_four_parts(4 * DEPTH, 28, own, device)
    check_order_of_parts(device, {**config, "BLOCKS": 28 * config.get("CLUSTER", 1), "PARTS": 128}, 28, 0, a, b)


def check_order_of_parts(device, config, sharers, before, a, b):
    with_wgmma(device)
    config = SMALL | config
    a, b = a.repeat(config["BM"], 1), b.repeat(config["BN"] * (before + 1), 1).t()
    launch, result = computed(config, a, b, out_dtype=torch.float32)
    assert launch.arguments[-1] == sharers and result[:, -64:].unique().tolist() == [2.0]
    assert not launch.arguments[-3].any()


def test_half_sums_are_added_in_float():
    """2048 + 1 is 2048 in fp16, and so is its sum with the next 1; the parts' sum is 2050."""
    a, b = torch.ones(8, 12 * DEPTH, dtype=torch.float16), torch.zeros(12 * DEPTH, 8, dtype=torch.float16)
    b[0], b[4 * DEPTH], b[8 * DEPTH] = 2048, 1, 1
    _, result = computed(SMALL, a, b, accumulate="fp16", out_dtype=torch.float32)
    assert result.unique().tolist() == [2050.0]


@pytest.mark.parametrize("order", ["1", "2", "3"])
def test_in_any_order(monkeypatch, order):
    exact.check_order(monkeypatch, order, "stream_k", {"BM": 64, "BN": 128})


@pytest.mark.parametrize("dtype", [torch.int8, torch.float8_e4m3fn], ids=str)
def test_bytes(dtype):
    """Exact sums in int32; of fp8 each slice has sums of its own, and the parts have theirs."""
    a, b = random(72, 1300).mul(3).round().to(dtype), transposed(random(1300, 136).mul(3).round()).to(dtype)
    out_dtype = torch.int32 if dtype == torch.int8 else torch.float32
    _, result = computed(SMALL, a, b, out_dtype=out_dtype)
    assert torch.equal(result.double(), a.double() @ b.double())


def problem_of(m, n, k, batch=1):
    a, b = (torch.empty(batch, *shape, dtype=torch.float16, device="meta") for shape in ((m, k), (k, n)))
    return prepare("matmul", a, b).problem


@pytest.mark.parametrize(
    "m, n, k, more, expected",
    [
        (64, 64, 64 * 100, {}, (0, 1, 8)),  # as many parts as may be
        (64, 64, 64 * 100, {"PARTS": 32}, (0, 1, 25)),  # of 4 slices each
        (64, 64, 64 * 3, {}, (0, 1, 1)),
        (64, 64 * 20, 13824, {}, (0, 20, 132)),
        (64, 64 * 10, 13824, {"PARTS": 128}, (0, 10, 130)),  # 13 of each tile
        (64, 64 * 10, 64 * 11, {"PARTS": 128}, (0, 10, 20)),
        (64, 64 * 20, 13824, {"PARTS": 128}, (0, 20, 120)),
        (128 * 3, 128 * 5, 13824, {"BM": 128, "BN": 128, "CLUSTER": 2}, (0, 10, 66)),
        (128 * 3, 128 * 5, 13824, {"BM": 128, "BN": 128, "CLUSTER": 2, "PARTS": 128}, (0, 10, 60)),
        (256 * 3, 128 * 5, 13824, {"BM": 256, "BN": 128, "CLUSTER": 2, "PARTS": 128}, (0, 9, 63)),
        (64, 64 * 132, 4096, {}, (132, 0, 0)),
        (64, 64 * 133, 4096, {}, (132, 1, 8)),
        (64, 64 * 133, 4096, {"WAVES": 2}, (0, 133, 132)),
        (64, 64 * 131, 64, {}, (0, 131, 131)),  # no tile is cut
        (64, 64 * 140, 0, {}, (140, 0, 0)),
        (64, 64 * 2, 0, {"PARTS": 128}, (2, 0, 0)),
    ],
)
def test_cut(m, n, k, more, expected):
    assert cut(problem_of(m, n, k), SMALL | {"BLOCKS": 132} | more, 1) == expected


@pytest.mark.parametrize("tiles", range(2, 17))
def test_parts_of_few_tiles_begin_together(tiles):
    """So that the blocks of neighbours are at the same k, and L2 has what they have in common."""
    problem = problem_of(64, 64 * tiles, 64 * 1000)
    whole, left, sharers = cut(problem, SMALL | {"BLOCKS": 132, "PARTS": 128}, 1)
    assert (whole, left) == (0, tiles) and sharers % tiles == 0 and 132 - tiles < sharers <= 132


@pytest.mark.parametrize("tiles", (1, 20, 131, 132, 133, 263, 264, 265, 1000))
def test_work_has_the_slices_of_the_busiest_block(tiles):
    target, problem = Target.named("h200"), problem_of(64, 64 * tiles, 4096)
    for config in DESIGN.configs(problem, target):
        whole, left, sharers = cut(problem, config, 1)
        slices = -(-whole * config.get("CLUSTER", 1) // config["BLOCKS"]) * 64 + (-(-left * 64 // sharers) if left else 0)
        assert DESIGN.work(problem, config, target)[0].flops == 2 * config["BM"] * config["BN"] * DEPTH * slices


def test_configs_are_different_cuts_that_fit():
    target = Target.named("h200")
    for problem in (problem_of(4096, 4096, 4096), problem_of(64, 1280, 13824), problem_of(64, 64, 2**16)):
        a, b = torch.empty(problem.m, problem.k, device="meta"), torch.empty(problem.k, problem.n, device="meta")
        call = prepare("matmul", a.half(), b.half())
        configs, cuts = list(DESIGN.configs(problem, target)), []
        for config in configs:
            (launch,) = DESIGN.launches(problem, config, *call.parts[0])
            assert launch.shared_bytes <= target.shared_per_block and max(launch.grid) <= 132
            cuts.append((config["BM"], config["BN"], config.get("CLUSTER"), *cut(problem, config, 1)))
        assert len(set(cuts)) == len(cuts) > 8


# (dtype, options, config, instruction, how many of them in a round)
CODE = {
    "fp16": (torch.float16, {}, {"BM": 128, "BN": 256}, "HGMMA.64x256x16.F32", 16),
    "fp16, low": (torch.float16, {}, {"BM": 64, "BN": 128}, "HGMMA.64x128x16.F32", 16),
    "fp16, three": (torch.float16, {}, {"BM": 192, "BN": 192}, "HGMMA.64x192x16.F32", 16),
    "fp16, a pair": (torch.float16, {}, {"BM": 128, "BN": 256, "CLUSTER": 2}, "HGMMA.64x256x16.F32", 16),
    "fp16 in fp16": (torch.float16, {"accumulate": "fp16"}, {"BM": 256}, "HGMMA.64x128x16.F16", 32),
    "bf16, gelu": (torch.bfloat16, {"activation": "gelu"}, {"BM": 128, "BN": 192}, "HGMMA.64x192x16.F32.BF16", 16),
    "tf32, gelu": (torch.float32, {"precision": "tf32", "activation": "gelu"}, {"BN": 256}, "HGMMA.64x256x8.F32.TF32", 16),
    "int8": (torch.int8, {}, {"BN": 256}, "IGMMA.64x256x32.S8.S8", 16),
    "fp8": (torch.float8_e4m3fn, {"out_dtype": torch.bfloat16}, {"BM": 128, "BN": 128}, "QGMMA.64x128x32.F32.E4M3.E4M3", 8),
}


@thorough
@nvcc.needed
@pytest.mark.parametrize("kind", CODE)
def test_machine_code(kind):
    """The loop is persistent's: no waits between the wgmmas of a slice, and no spills for what adds up parts. Of three
    consumers each thread has 160 registers, 96 of them sums: a run's bounds are on the stack, read once a tile."""
    dtype, options, sizes, instruction, count = CODE[kind]
    a, b = (torch.empty(4096, 4096, dtype=dtype, device="meta") for _ in range(2))
    call = prepare("matmul", a, b.t(), **options)
    config = next(c for c in DESIGN.configs(call.problem, Target.named("h200")) if sizes.items() <= c.items())
    (launch,) = DESIGN.launches(call.problem, config, *call.parts[0])
    (code,) = sass.read(nvcc.compiled("90a", [launch.source.header], [launch.expression]).cubin).values()
    loop = code.hot_loop()
    assert sass.count(loop, (instruction,)) == sass.count(loop, sass.TENSOR) == count
    slices = 2 if kind == "fp8" else SLICES  # of a round
    assert sass.count(loop, ("WARPGROUP.ARRIVE",)) == sass.count(loop, ("WARPGROUP.DEPBAR",)) == slices
    assert code.stack_bytes <= {"fp16, three": 24, "tf32, gelu": 8}.get(kind, 0) and sass.count(loop, ("LDL", "STL")) == 0
