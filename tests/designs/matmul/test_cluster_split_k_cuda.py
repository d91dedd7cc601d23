"""The CUDA design cluster_split_k of matmul: who gets which sums, in which order they are added, its machine code for Hopper.

Sums of small integers are exact, so results must be equal.
"""

import pytest
import torch

from cuda_reference.launch import config_of
from cuda_reference.matmul.cluster_split_k import DESIGN
from perf.offline import sass
from tests import nvcc
from tests.designs.matmul import exact
from tests.designs.matmul.exact import integers, with_wgmma
from tests.designs.matmul.test_persistent_cuda import SLICES
from tests.harness import DEVICES, prepare, random, short, thorough, transposed
from tritonkernels.target import Target

DEPTH = 64  # elements of a slice of fp16
SMALL = config_of(BM=64, BN=64, CONSUMERS=1, STAGES=8, GROUP=8, SPLIT_K=4)
WIDE, HIGH = SMALL | {"BN": 128, "STAGES": 7}, SMALL | {"BM": 128, "CONSUMERS": 2, "STAGES": 7}
BIG = HIGH | {"BN": 128, "STAGES": 4}
on_devices = pytest.mark.parametrize("device", DEVICES)


def computed(config, a, b, **options):
    return exact.computed(DESIGN, config, a, b, **options)


@short(lambda device, rows, splits: rows in (1, 5, 33, 64) or splits in (3, 4))
@pytest.mark.parametrize("splits", (2, 3, 4, 8))
@pytest.mark.parametrize("rows", (1, 2, 3, 5, 8, 17, 33, 63, 64, 65))
@on_devices
def test_each_block_finishes_some_rows(device, rows, splits):
    """Fewer rows than blocks, and rows that they cannot share evenly. All of the epilogue follows, once."""
    with_wgmma(device)
    a, b, c = (integers(*shape, device=device) for shape in ((rows, 900), (900, 75), (rows, 75)))
    more = {"alpha": 2.0, "c": c.float(), "beta": 0.5, "activation": "relu", "out_dtype": torch.float32}
    launch, result = computed(SMALL | {"SPLIT_K": splits}, a, b, **more)
    assert launch.grid == (-(-rows // 64) * 2 * splits,)
    assert torch.equal(result.double(), (2 * a.double() @ b.double() + c.double() / 2).relu())


@short(lambda device, k, config: config is SMALL or k == 700)
@pytest.mark.parametrize("k", (0, 8, 64, 130, 256, 700, 2500))
@pytest.mark.parametrize("config", (SMALL, WIDE, HIGH, BIG), ids=("small", "wide", "high", "big"))
@on_devices
def test_ranges_of_k(device, k, config):
    """With fewer slices than splits, and of several rounds of the ring; tiles that end outside of the result."""
    with_wgmma(device)
    a, b = integers(2, 150, k, device=device), integers(2, k, 140, device=device)
    _, result = computed(config, a, b)
    assert torch.equal(result.double(), (a.double() @ b.double()).half().double())
    _, result = computed(config, a, b[:1].expand_as(b), out_dtype=torch.float32)
    assert torch.equal(result.double(), a.double() @ b[:1].double())


@pytest.mark.parametrize("config", (SMALL, BIG), ids=("small", "big"))
@on_devices
def test_sums_are_added_in_the_order_of_k(device, config):
    """1 is lost in 2^26, which goes before 2 comes."""
    with_wgmma(device)
    a, b = (torch.zeros(4 * DEPTH, dtype=torch.float16, device=device) for _ in range(2))
    a[::DEPTH] = torch.tensor([1.0, 2.0**13, -(2.0**13), 2.0])
    b[::DEPTH] = torch.tensor([1.0, 2.0**13, 2.0**13, 1.0])
    _, result = computed(config, a.repeat(140, 1), b.repeat(130, 1).t(), out_dtype=torch.float32)
    assert result.unique().tolist() == [2.0]


def test_half_sums_are_added_in_float():
    """2048 + 1 is 2048 in fp16."""
    a, b = torch.ones(8, 4 * DEPTH, dtype=torch.float16), torch.zeros(4 * DEPTH, 8, dtype=torch.float16)
    b[0], b[DEPTH], b[2 * DEPTH] = 2048, 1, 1
    _, result = computed(SMALL, a, b, accumulate="fp16", out_dtype=torch.float32)
    assert result.unique().tolist() == [2050.0]


@short(lambda order: order == "1")
@pytest.mark.parametrize("order", ["1", "2", "3"])
def test_in_any_order(monkeypatch, order):
    exact.check_order(monkeypatch, order, "cluster_split_k", {"BM": 128, "SPLIT_K": 8})


@pytest.mark.parametrize("dtype", [torch.int8, torch.float8_e4m3fn], ids=str)
@on_devices
def test_bytes(device, dtype):
    """Exact sums in int32; of fp8 each slice has sums of its own."""
    with_wgmma(device)
    a = random(72, 1296, device=device).mul(3).round().to(dtype)
    b = transposed(random(1296, 136, device=device).mul(3).round()).to(dtype)
    out_dtype = torch.int32 if dtype == torch.int8 else torch.float32
    _, result = computed(SMALL, a, b, out_dtype=out_dtype)
    assert torch.equal(result.double(), a.double() @ b.double())


def configs(m, n, k, target="h200", **options):
    a, b = torch.empty(m, k, device="meta").half(), torch.empty(k, n, device="meta").half()
    call = prepare("matmul", a, b, **options)
    return call, list(DESIGN.configs(call.problem, Target.named(target)))


def test_configs_fill_the_gpu_twice_at_most():
    """And each of more than 2 splits has a slice."""
    call, found = configs(64, 1280, 13824)
    assert {config["SPLIT_K"] for config in found} == {2, 3, 4, 6, 8}
    for config in found:
        (launch,) = DESIGN.launches(call.problem, config, *call.parts[0])
        assert launch.shared_bytes <= Target.named("h200").shared_per_block and launch.grid[0] <= 264
        assert launch.grid[0] % config["SPLIT_K"] == 0
        (work,) = DESIGN.work(call.problem, config, Target.named("h200"))
        assert (work.blocks, work.threads) == (launch.grid[0], launch.block[0])
    for shape, splits in (((64, 64, 3 * DEPTH), {2, 3}), ((64, 64, DEPTH), {2}), ((4096, 4096, 4096), {2})):
        assert {config["SPLIT_K"] for config in configs(*shape)[1]} == splits


def test_refusals():
    half = configs(64, 64, 512)[0].problem
    assert DESIGN.refuses(half, Target.named("h200")) is None
    assert DESIGN.refuses(half, Target.named("a100")) == "it needs wgmma, which only sm_90 has; a100 is sm_80"


# (dtype, options, config, instruction, how many instructions the kernel has at most)
CODE = {
    "fp16": (torch.float16, {}, SMALL, "HGMMA.64x64x16.F32", 1200),
    "fp16, big, gelu": (torch.float16, {"activation": "gelu"}, BIG, "HGMMA.64x128x16.F32", 2000),
    "tf32": (torch.float32, {"precision": "tf32"}, HIGH, "HGMMA.64x64x8.F32.TF32", 1100),
    "int8": (torch.int8, {}, WIDE, "IGMMA.64x128x32.S8.S8", 1300),
}


@thorough
@nvcc.needed
@pytest.mark.parametrize("kind", CODE)
def test_machine_code(kind):
    """The loop is persistent's; one fence is between the sums and those who read them."""
    dtype, options, config, instruction, most = CODE[kind]
    a, b = (torch.empty(256, 4096, dtype=dtype, device="meta") for _ in range(2))
    call = prepare("matmul", a, b.t(), **options)
    (launch,) = DESIGN.launches(call.problem, config, *call.parts[0])
    built = nvcc.compiled("90a", ["matmul/cluster_split_k.cuh"], [launch.expression])
    (code,) = sass.read(built.cubin).values()
    loop, opcodes = code.hot_loop(), [text.split()[0] for _, text in code.instructions]
    assert sass.count(loop, (instruction,)) == sass.count(loop, sass.TENSOR) == 4 * SLICES
    assert sass.count(loop, ("WARPGROUP.ARRIVE",)) == SLICES
    assert code.stack_bytes == 0 and len(code.instructions) <= most
    assert opcodes.count("MEMBAR.ALL.GPU") == 2, "of producers and consumers"
