"""The table of GPUs: its figures fit together, a GPU is found by its driver's name, a target by what users write."""

import math
import pathlib
from types import SimpleNamespace

import pytest
import torch

from tests.harness import LIBRARIES, SMALL, built, prepare
from tritonkernels import OPS
from tritonkernels.errors import BackendError
from tritonkernels.target import KNOWN, Target

ROOT = pathlib.Path(__file__).parents[2]
GPUS = [target for target in KNOWN if target.is_gpu]
FP32_LANES = {70: 64, 75: 64, 80: 64, 0: 128}  # of an SM; 128 since sm_86 and of a compute unit
DRIVERS = {  # what the drivers call them
    "titan_v": ("NVIDIA TITAN V", "TITAN V"),
    "v100": ("Tesla V100-SXM2-16GB", "Tesla V100-PCIE-32GB", "Tesla V100-SXM3-32GB"),
    "v100s": ("Tesla V100S-PCIE-32GB",),
    "rtx_2080": ("NVIDIA GeForce RTX 2080", "GeForce RTX 2080"),
    "t4": ("Tesla T4", "NVIDIA T4"),
    "a100": ("NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-40GB", "NVIDIA A100 80GB PCIe", "A100-PCIE-40GB"),
    "rtx_3090": ("NVIDIA GeForce RTX 3090", "GeForce RTX 3090"),
    "rtx_3080": ("NVIDIA GeForce RTX 3080",),
    "rtx_a6000": ("NVIDIA RTX A6000", "RTX A6000"),
    "a40": ("NVIDIA A40", "NVIDIA A40-48Q"),
    "a10": ("NVIDIA A10", "NVIDIA A10-24Q"),
    "a10g": ("NVIDIA A10G",),
    "rtx_4090": ("NVIDIA GeForce RTX 4090",),
    "rtx_4080": ("NVIDIA GeForce RTX 4080",),
    "rtx_4080_super": ("NVIDIA GeForce RTX 4080 SUPER",),
    "rtx_6000_ada": ("NVIDIA RTX 6000 Ada Generation",),
    "l40s": ("NVIDIA L40S", "NVIDIA L40S-48Q"),
    "l40": ("NVIDIA L40",),
    "l4": ("NVIDIA L4",),
    "h200": ("NVIDIA H200", "NVIDIA H200 NVL"),
    "h100": ("NVIDIA H100 80GB HBM3", "NVIDIA H100 NVL"),
    "h100_pcie": ("NVIDIA H100 PCIe",),
    "gh200": ("NVIDIA GH200 480GB", "GH200 480GB"),
    "b200": ("NVIDIA B200",),
    "gb200": ("NVIDIA GB200",),
    "rtx_5090": ("NVIDIA GeForce RTX 5090",),
    "mi300x": ("AMD Instinct MI300X", "AMD Instinct MI300X OAM"),
    "mi325x": ("AMD Instinct MI325X",),
    "mi300a": ("AMD Instinct MI300A",),
}


DATA_SHEETS = {  # SMs, boost clock in MHz, GB/s of DRAM, MB of L2: the table once more, by other figures
    "titan_v": (80, 1455, 653, 4.5), "v100": (80, 1530, 900, 6), "v100s": (80, 1597, 1134, 6), "rtx_2080": (46, 1710, 448, 4),
    "t4": (40, 1590, 320, 4), "a100": (108, 1410, 2039, 40), "rtx_3090": (82, 1695, 936, 6), "rtx_3080": (68, 1710, 760, 5),
    "rtx_a6000": (84, 1800, 768, 6), "a40": (84, 1740, 696, 6), "a10": (72, 1695, 600, 6), "a10g": (80, 1710, 600, 6),
    "rtx_4090": (128, 2520, 1008, 72), "rtx_4080": (76, 2505, 717, 64), "rtx_4080_super": (80, 2550, 736, 64),
    "rtx_6000_ada": (142, 2505, 960, 96), "l40s": (142, 2520, 864, 96), "l40": (142, 2490, 864, 96), "l4": (58, 2040, 300, 48),
    "h200": (132, 1980, 4800, 60), "h100": (132, 1980, 3350, 50), "h100_pcie": (114, 1755, 2000, 50),
    "gh200": (132, 1980, 4000, 50), "b200": (148, 1965, 8000, 126), "gb200": (152, 2062, 8000, 126),
    "rtx_5090": (170, 2407, 1792, 96), "mi300x": (304, 2100, 5300, 4), "mi325x": (304, 2100, 6000, 4),
    "mi300a": (228, 2100, 5300, 4),
}  # fmt: skip
BY_ARCHITECTURE = {  # FLOP of fp16 of an SM a clock; KB of shared memory of an SM and of a block; threads and blocks of an SM
    70: (1024, 96, 96, 2048, 32), 75: (1024, 64, 64, 1024, 16), 80: (2048, 164, 163, 2048, 32), 86: (1024, 100, 99, 1536, 16),
    89: (1024, 100, 99, 1536, 24), 90: (4096, 228, 227, 2048, 32), 100: (8192, 228, 227, 2048, 32),
    120: (1024, 100, 99, 1536, 24), 0: (2048, 64, 64, 2048, 32),
}  # fmt: skip
GEFORCES = {"rtx_2080", "rtx_3090", "rtx_3080", "rtx_4090", "rtx_4080", "rtx_4080_super", "rtx_5090"}


@pytest.fixture
def live(monkeypatch):
    """live(name, sms, known): the Target of a GPU of that name and number of SMs, of a known one's architecture."""

    def of(name, sms, known):
        properties = SimpleNamespace(
            name=name, multi_processor_count=sms, gcnArchName=f"{known.gfx}:xnack-" if known.gfx else name
        )
        properties.major, properties.minor = divmod(known.arch, 10)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
        return Target.live(torch.device("cuda"))

    return of


@pytest.mark.parametrize("target", GPUS, ids=lambda target: target.name)
def test_figures_fit_together(target):
    """A typing error in a row gives a clock that no GPU has, or tensor cores that do no power of two of products a cycle."""
    assert 0.25e12 < target.dram_bandwidth < 10e12 and (target.l2_bandwidth or 1e15) > target.dram_bandwidth
    clock = target.peak("ieee") / (2 * target.sms * FP32_LANES.get(target.arch, 128))
    assert 1.3e9 < clock < 2.7e9
    for precision in target.peaks.keys() - {"ieee", "fp64", "b1"}:
        power = math.log2(target.peak(precision) / target.peak("ieee"))
        assert power > -0.1 and abs(power - round(power)) < 0.15, precision
    rates = [target.peak(precision) for precision in ("tf32", "fp16", "fp8", "int8", "int4", "b1")]
    assert rates[1] and sorted(filter(None, rates)) == [rate for rate in rates if rate]
    assert target.peak("bf16") == (target.peak("fp16") if not 0 < target.arch < 80 else None)
    assert target.peak("fp64") <= target.peak("ieee")


@pytest.mark.parametrize("target", GPUS, ids=lambda target: target.name)
def test_figures_are_those_of_the_data_sheet_and_the_architecture(target):
    """A peak is SMs x clock x FLOP a clock. With sums in fp32, GeForces and two more have half of the tensor cores' rate."""
    sms, megahertz, bandwidth, l2 = DATA_SHEETS[target.name]
    flop, shared, of_block, threads, blocks = BY_ARCHITECTURE[target.arch]
    registers, lanes = (65536, 32) if target.arch else (131072, 64)
    assert (target.sms, round(target.dram_bandwidth / 1e9), target.l2_bytes) == (sms, bandwidth, l2 * 2**20)
    assert (target.shared_per_sm, target.shared_per_block) == (shared * 1024, of_block * 1024)
    assert (target.threads_per_sm, target.blocks_per_sm) == (threads, blocks)
    assert (target.registers_per_sm, target.warp_size) == (registers, lanes)
    per_second = sms * megahertz * 1e6
    assert target.peak("ieee") == pytest.approx(per_second * 2 * FP32_LANES.get(target.arch, 128), rel=0.015)
    half_rate = target.name in GEFORCES | {"a10g", "l40"}
    clocks = target.peak("fp16") / (per_second * flop / (1 + half_rate))
    assert 0.91 < clocks < 1.015, "tensor cores may clock lower"


@pytest.mark.parametrize("target", GPUS, ids=lambda target: target.name)
def test_precisions_are_multiples_of_each_other(target):
    geforce = 1 + (target.name in GEFORCES)  # int8 has its full rate
    for precision, other, times in (
        ("tf32", "fp16", 1 / 2),
        ("fp8", "fp16", 2),
        ("int8", "fp16", 2 * geforce),
        ("int4", "int8", 1 if target.arch == 90 else 2),
        ("b1", "int4", 4),
    ):
        if precision in target.peaks:
            assert target.peak(precision) == pytest.approx(times * target.peak(other), rel=0.025), precision
    expected = {
        "tf32": target.arch >= 80, "fp8": target.arch >= 89, "int8": target.arch >= 75, "int4": 75 <= target.arch <= 90,
        "b1": target.arch == 80,
    }  # fmt: skip
    assert target.vendor == "amd" or {name: name in target.peaks for name in expected} == expected
    share = {70: 1 / 2, 75: 1 / 32, 80: 1, 90: 1, 100: 1 / 2, 0: 1}.get(target.arch, 1 / 64)  # by tensor cores, where they can
    assert target.peak("fp64") == pytest.approx(share * target.peak("ieee"), rel=0.02)


def test_split_modes_are_several_products():
    h200 = Target.named("h200")
    products = {
        "tf32x3": 3 / 494,
        "fp16x3": 3 / 989,
        "bf16x6": 6 / 989,
        "bf16x9": 9 / 989,
        "uint8": 1 / 1979,
        "uint4": 1 / 1979,
    }
    for precision, share in products.items():
        assert h200.peak(precision) == pytest.approx(1e12 / share)


def test_a_gpu_is_known_by_its_driver_s_name(live):
    assert list(DRIVERS) == [target.name for target in GPUS]
    for known in GPUS:
        for name in DRIVERS[known.name]:
            found = live(name, known.sms, known)
            rates = (found.peaks, found.dram_bandwidth, found.l2_bandwidth, found.shared_per_block, found.sms)
            assert rates == (known.peaks, known.dram_bandwidth, known.l2_bandwidth, known.shared_per_block, known.sms), name


@pytest.mark.parametrize(
    "name, arch",
    [
        ("NVIDIA T400", "sm_75"),
        ("NVIDIA T4G", "sm_75"),
        ("NVIDIA A30", "sm_80"),
        ("NVIDIA A100X", "sm_80"),
        ("NVIDIA A16", "sm_86"),
        ("NVIDIA RTX A4000", "sm_86"),
        ("NVIDIA RTX 4000 Ada Generation", "sm_89"),
        ("NVIDIA L20", "sm_89"),
        ("NVIDIA H20", "sm_90"),
        ("NVIDIA H200", "sm_80"),
    ],
)
def test_no_gpu_is_taken_for_another(live, name, arch):
    """With a similar name, or another architecture: it has the limits of its architecture, and no rates."""
    alike = Target.named(arch)
    found = live(name, 56, alike)
    assert (found.dram_bandwidth, found.l2_bandwidth, found.peaks) == (0, 0, {})
    assert (found.isa, found.sms, found.blocks_per_sm) == (arch, 56, alike.blocks_per_sm)


@pytest.mark.parametrize(
    "name, sms, like",
    [
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 76, "rtx_4090"),
        ("NVIDIA GeForce RTX 4080 Laptop GPU", 58, "rtx_4080"),
        ("NVIDIA GeForce RTX 3080 Ti", 80, "rtx_3080"),
        ("NVIDIA GeForce RTX 2080 Ti", 68, "rtx_2080"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 14, "a100"),
        ("AMD Instinct MI300X", 38, "mi300x"),
    ],
)
def test_a_variant_has_its_share_of_the_rates(live, name, sms, like):
    known = Target.named(like)
    found, share = live(name, sms, known), sms / known.sms
    assert found.peak("fp16") == pytest.approx(share * known.peak("fp16"))
    assert found.dram_bandwidth == pytest.approx(share * known.dram_bandwidth)


@pytest.mark.parametrize(
    "name, wanted",
    [
        *((spelling, "rtx_4090") for spelling in ("rtx4090", "RTX 4090", "rtx_4090", "RTX-4090", "NVIDIA GeForce RTX 4090")),
        *((spelling, "rtx_3090") for spelling in ("sm_86", "sm86", "SM 86", "8.6", "86")),
        ("A100", "a100"),
        ("NVIDIA A10", "a10"),
        ("A10G", "a10g"),
        ("Tesla T4", "t4"),
        ("L40S", "l40s"),
        ("nvidia l4", "l4"),
        ("RTX 4080 SUPER", "rtx_4080_super"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx_6000_ada"),
        ("H100", "h100"),
        ("H100 PCIe", "h100_pcie"),
        ("10.0", "b200"),
        ("sm_120", "rtx_5090"),
        ("GFX942", "mi300x"),
        ("AMD Instinct MI300X", "mi300x"),
        ("MI300A", "mi300a"),
        ("Interpreter", "interpreter"),
        ("SIMT", "simt"),
    ],
)
def test_names_are_forgiving(name, wanted):
    assert Target.named(name).name == wanted


def test_the_docs_list_every_gpu():
    text = (ROOT / "docs" / "running.md").read_text().split("<!-- targets -->")[1].split("<!-- /targets -->")[0]
    assert [Target.named(name) for name in text.split(",")] == GPUS


def test_every_target_has_a_name_of_its_own():
    assert all(Target.named(target.name) is target for target in KNOWN)
    assert all(Target.named(target.isa).isa == target.isa for target in GPUS)


@pytest.mark.parametrize(
    "name, meant",
    [
        ("h2000", "h200"),
        ("h20", "h200"),
        ("rtx 4900", "rtx_4090"),
        ("RTX 4090 Ti", "rtx_4090"),
        ("RTX 4080 SUPER Ti", "rtx_4080_super"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("sm_91", "sm_90"),
        ("mi300", "mi300x"),
        ("intrepreter", "interpreter"),
    ],
)
def test_a_slip_gets_a_suggestion(name, meant):
    with pytest.raises(
        BackendError, match=rf"unknown target '{name}'; known: titan_v, sm_70, .*gfx942.*; did you mean '{meant}'\?$"
    ):
        Target.named(name)


@pytest.mark.parametrize("name", ("", "  ", "nvidia", "cpu", "gpu", "0", "cuda:0"))
def test_a_stranger_gets_none(name):
    with pytest.raises(
        BackendError, match=rf"unknown target '{name}'; known: titan_v, .*rtx_4080_super, .*simt; pass one of these$"
    ):
        Target.named(name)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_every_known_gpu_gets_a_default(library, op):
    """A float32 call of each operation: chosen, not compiled."""
    problem = prepare(op, *built(SMALL[op], lambda *shape: torch.empty(shape, device="meta"))).problem
    served = [target for target in GPUS if library.misses(target) is None]
    assert len(served) == len(GPUS) - 3 * (library.package == "cuda_reference"), "all but AMD's"
    for target in served:
        design, config = library.choose(problem, target)
        assert design.refuses(problem, target) is None and config in list(design.configs(problem, target)), target.name
