"""The CUDA design split_k of matmul: its splits, the order in which they are added, its accesses, its machine code."""

import re

import pytest
import torch

from cuda_reference.launch import LIBRARY
from cuda_reference.matmul.split_k import DESIGN
from cuda_reference.toolchain import with_its_own
from perf.offline import sass
from tests import nvcc
from tests.designs.matmul.exact import OF_GROUPS, of_four_parts
from tests.harness import DEVICES, available_on, bits, prepare, random, run_checked, thorough, transposed
from tritonkernels.target import Target

LAYOUTS = {"row": lambda t: t, "col": transposed}
MMA, WGMMA, THIN = {"WGMMA": False, "BM": 64}, {"WGMMA": True, "BM": 64, "BN": 64}, {"BM": 16}
on_devices = pytest.mark.parametrize("device", DEVICES)


def launches(a, b, config, **options):
    """Launches of a config, which need not be one of those that the problem has."""
    call = prepare("matmul", a, b, **options)
    other = prepare("matmul", torch.empty(a.shape, dtype=a.dtype), torch.empty(b.mT.shape, dtype=b.dtype).mT, **options).problem
    tile = config.items() - {("SPLIT_K", config.get("SPLIT_K"))}
    (chosen, *_) = (c for c in DESIGN.configs(other, Target.named("simt")) if tile <= c.items())
    return list(DESIGN.launches(call.problem, chosen | config, *call.parts[0])), call.result


def computed(a, b, config, **options):
    launched, result = launches(a, b, config, **options)
    result.fill_(torch.nan if result.dtype.is_floating_point else 77)
    for launch in launched:
        launch.run()
    return launched, result


@pytest.mark.parametrize("k", (8, 64, 72, 200, 320, 1000))
@pytest.mark.parametrize("layout_a", LAYOUTS)
@pytest.mark.parametrize("layout_b", LAYOUTS)
@pytest.mark.parametrize("config", (MMA, WGMMA, THIN), ids=("mma", "wgmma", "thin"))
def test_no_split_is_empty(config, layout_a, layout_b, k):
    """With 1, 1, 2, 4, 5 and 16 slices. wgmma takes copies of operands that lie across K."""
    a = LAYOUTS[layout_a](random(16 if config is THIN else 72, k).mul(4).round().half())
    b = LAYOUTS[layout_b](random(k, 136).mul(4).round().half())
    launched, result = computed(a, b, config | {"SPLIT_K": 4}, out_dtype=torch.float32)
    assert launched[-1].grid[1] == {8: 1, 64: 1, 72: 2, 200: 4, 320: 3, 1000: 4}[k]
    assert len(launched) == 1 + (config is WGMMA) * ((layout_a == "col") + (layout_b == "row"))
    assert torch.equal(result.double(), a.double() @ b.double())


@pytest.mark.parametrize("order", ["1", "2"])
def test_no_stage_is_refilled_while_wgmma_reads_it(monkeypatch, order):
    """About half of the copies land at once here, and all products when they are waited for."""
    monkeypatch.setenv("SIMT_ORDER", order)
    a, b = random(64, 1280).mul(4).round().half(), transposed(random(1280, 64).mul(4).round().half())
    _, result = computed(a, b, WGMMA | {"SPLIT_K": 2}, out_dtype=torch.float32)
    assert torch.equal(result.double(), a.double() @ b.double())


@pytest.mark.parametrize("config", (MMA, WGMMA), ids=("mma", "wgmma"))
@on_devices
def test_splits_are_added_in_the_order_of_k(device, config):
    """The next call finds the counters at zero."""
    check_order_of_parts(device, config | {"SPLIT_K": 4}, 2, *of_four_parts(64, device=device))


@pytest.mark.parametrize("own", OF_GROUPS.values(), ids=OF_GROUPS)
@pytest.mark.parametrize("config", (MMA, WGMMA), ids=("mma", "wgmma"))
@on_devices
def test_many_splits_are_added_in_groups(device, config, own):
    check_order_of_parts(device, config | {"SPLIT_K": 28}, 2 * (1 + 4), *of_four_parts(64, 28, own, device))


def check_order_of_parts(device, config, count, a, b):
    """For two tiles."""
    available_on(LIBRARY, device)
    if device == "cuda" and config["WGMMA"] and LIBRARY.target(a.device).arch != 90:
        pytest.skip("no wgmma")
    (launch,), result = computed(a.repeat(70, 1), b.repeat(40, 1).t(), config, out_dtype=torch.float32)
    counters = launch.arguments[6]
    assert result.unique().tolist() == [2.0] and len(counters) == count and not counters.any()


def test_half_sums_are_added_in_float():
    """2048 + 1 is 2048 in fp16."""
    a, b = torch.ones(8, 128, dtype=torch.float16), torch.zeros(128, 8, dtype=torch.float16)
    b[0], b[64] = 2048, 1
    for config in (MMA, WGMMA):
        _, result = computed(a, b, config | {"SPLIT_K": 2}, accumulate="fp16", out_dtype=torch.float32)
        assert result.unique().tolist() == [2049.0]


def test_every_matrix_of_a_batch_has_its_own_sums():
    a, b, c = (
        random(3, 70, 200, dtype=torch.float16),
        random(200, 70, dtype=torch.float16),
        random(3, 70, 70, dtype=torch.float16),
    )
    options = {"c": c, "beta": 0.5, "bias": random(70, dtype=torch.float16), "activation": "silu"}
    first, _ = run_checked(LIBRARY, "matmul", "split_k", a, b, config={"SPLIT_K": 2}, **options)
    again, _ = run_checked(LIBRARY, "matmul", "split_k", a, b, config={"SPLIT_K": 2}, **options)
    assert torch.equal(bits(first), bits(again))


@pytest.mark.parametrize("config", (MMA, WGMMA), ids=("mma", "wgmma"))
def test_accesses(config):
    """No races; slices and partial sums without bank conflicts or half-used sectors."""
    from cuda_reference.trace import trace

    a, b = random(64, 320, dtype=torch.float16), transposed(random(320, 64, dtype=torch.float16))
    launched, _ = launches(a, b, config | {"SPLIT_K": 2})
    (traced,) = trace(*launched)
    assert traced.races == ()
    wide = [access for access in traced.accesses if access.requests > 1]
    assert [str(access) for access in wide if access.units != access.ideal_units] == []


def test_configs_fit_the_target():
    call = prepare("matmul", *(torch.empty(4096, 4096, dtype=torch.float16, device="meta").t() for _ in range(2)))
    for name in ("a100", "rtx_4090", "h200", "rtx_5090"):
        target = Target.named(name)
        for config in DESIGN.configs(call.problem, target):
            (launch,) = DESIGN.launches(call.problem, config, *call.parts[0])
            assert launch.shared_bytes + 1024 <= target.shared_per_block and not config["WGMMA"]


def test_wgmma_where_operands_lie_along_k():
    def kinds(dtype, b_layout, target="h200", **options):
        a, b = (torch.empty(128, 128, dtype=dtype, device="meta") for _ in range(2))
        problem = prepare("matmul", a, LAYOUTS[b_layout](b), **options).problem
        found = {config["WGMMA"] for config in DESIGN.configs(problem, Target.named(target)) if config["BM"] > 32}
        return found  # tiles of 32 x 32, for small results, are too low for a warpgroup

    assert kinds(torch.float16, "col") == {True} and kinds(torch.float16, "row") == {False}
    assert kinds(torch.int8, "row") == {True} and kinds(torch.float32, "col", precision="tf32") == {False}
    assert kinds(torch.float16, "col", "a100") == {False}


# (dtype, options, instruction)
CODE = {
    "fp16": (torch.float16, {}, {True: "HGMMA", False: "HMMA.16816.F32"}),
    "fp16 in fp16": (torch.float16, {"accumulate": "fp16"}, {True: "HGMMA", False: "HMMA.16816.F16"}),
    "tf32": (torch.float32, {"precision": "tf32"}, {False: "HMMA.1688.F32.TF32"}),
    "int8": (torch.int8, {}, {True: "IGMMA", False: "IMMA.16832.S8.S8"}),
}


@thorough
@nvcc.needed
@pytest.mark.parametrize("kind, architecture", [*((kind, 90) for kind in CODE), ("fp16", 80), ("tf32", 80)])
def test_machine_code(kind, architecture):
    """For every tile: its instruction, no spills, slices copied by cp.async, one barrier
    per slice."""
    dtype, options, instructions = CODE[kind]
    kernels = []
    for rows, columns in ((128, 128), (16, 128), (128, 16)):
        a, b = (torch.empty(size, 4096, dtype=dtype, device="meta") for size in (rows, columns))
        call = prepare("matmul", a, b.t(), **options)
        for config in DESIGN.configs(call.problem, Target.named(f"sm_{architecture}")):
            (launch,) = DESIGN.launches(call.problem, config, *call.parts[0])
            kernels.append(launch.expression)
    kernels = list(dict.fromkeys(kernels))
    codes = sass.read(nvcc.compiled(with_its_own(architecture), ["matmul/split_k.cuh"], kernels).cubin).values()
    assert len(codes) == len(kernels) >= 2
    for code in codes:
        loop, by_wgmma = code.hot_loop(), re.search("Lb([01])", code.name)[1] == "1"
        assert code.stack_bytes == 0, code.name
        assert sass.count(loop, (instructions[by_wgmma],)) == sass.count(loop, sass.TENSOR) >= 4, f"{code.name}: {loop}"
        assert not by_wgmma or loop["WARPGROUP.ARRIVE"] == 1, f"a product waits for another: {code.name}: {loop}"
        assert sass.count(loop, ("LDGSTS",)) and sass.count(loop, ("BAR.SYNC",)) == 1, f"{code.name}: {loop}"
