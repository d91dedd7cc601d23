"""GPUs of other vendors and sizes: what is read off them, and that every one gets a design that runs there, or a sentence."""

import dataclasses
import json
import random

import pytest
import torch

import cuda_reference
import tritonkernels
from tests import cases
from tests.compiler import printed
from tests.harness import LIBRARIES, designs, prepare, thorough
from tritonkernels import OPS
from tritonkernels.design import as_dict
from tritonkernels.errors import BackendError, UnsupportedError
from tritonkernels.target import KNOWN, Target

H200 = Target.named("h200")
ARCHITECTURES = ("gfx942", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
# As torch describes them; a build for CUDA has the GPU's name for gcnArchName, one for ROCm no shared memory
OF_ALL = {"max_threads_per_multi_processor": 2048, "regs_per_multiprocessor": 65536}
MI300 = {"name": "AMD Instinct MI300X", "major": 9, "minor": 4, "gcnArchName": "gfx942:sramecc+:xnack-", "warp_size": 64}
MI300 |= OF_ALL | {"multi_processor_count": 304, "L2_cache_size": 2**22}
OTHER = {"name": "NVIDIA X1", "major": 11, "minor": 0, "gcnArchName": "NVIDIA X1", "warp_size": 32, "L2_cache_size": 2**25}
OTHER |= OF_ALL | {
    "multi_processor_count": 20,
    "shared_memory_per_multiprocessor": 2**17,
    "shared_memory_per_block_optin": 2**16,
}


def test_an_mi300_is_no_sm_94(live):
    mi300 = live(MI300)
    assert (mi300.vendor, mi300.isa, mi300.arch, mi300.warp_size, mi300.sms) == ("amd", "gfx942", 0, 64, 304)
    assert mi300.shared_per_block == 65536 and mi300.peak("fp16") == Target.named("mi300x").peak("fp16") > 1e15
    relative = live(MI300 | {"name": "AMD Radeon", "gcnArchName": "gfx1100", "warp_size": 32})
    assert (relative.isa, relative.warp_size, relative.peak("fp16"), relative.dram_bandwidth) == ("gfx1100", 32, None, 0)


def test_an_nvidia_gpu_is_what_its_driver_says(live):
    other = live(OTHER)
    assert (other.vendor, other.isa, other.arch, other.gfx, other.warp_size) == ("nvidia", "sm_110", 110, "", 32)
    assert (other.sms, other.shared_per_block, other.peak("fp16")) == (20, 65536, None)
    h200 = live(OTHER | {"name": "NVIDIA H200", "major": 9, "multi_processor_count": 132})
    assert h200.peaks == H200.peaks and h200.shared_per_block == 65536


def test_targets_are_found_by_architecture():
    found = [Target.named(name).name for name in ("gfx942", "sm_86", "sm_89", "sm_90")]
    assert found == ["mi300x", "rtx_3090", "rtx_4090", "h200"]
    for unknown in ("", "sm_0", "sm_94", "gfx9"):
        with pytest.raises(BackendError, match=r"known: titan_v, sm_70, .*gfx942"):
            Target.named(unknown)
    assert not any(t.is_gpu or t.isa for t in map(Target.named, ("interpreter", "simt")))


def a_problem(op, rng):
    """A problem of random dtype, precision, layout and size, on tensors without memory."""

    def size():
        return rng.choice((0, 1, 3, 16, 64, 100, 129, 512, 1000, 4096, 20000))

    def matrix(*shape, dtype=torch.float32):
        t = torch.empty(shape, dtype=dtype, device="meta")
        return t.mT.contiguous().mT if rng.random() < 0.4 and len(shape) > 1 else t

    floats = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    if op == "gemm":
        m, n, k = size(), size(), size()
        return prepare(op, matrix(m, k), matrix(k, n))
    if op == "gemv":
        m, n, dtype = size(), size(), rng.choice(floats[:3])
        return prepare(op, matrix(m, n, dtype=dtype), matrix(n, dtype=dtype))
    if op == "matmul":
        dtype, options = rng.choice(cases.PRECISIONS + cases.MORE_PRECISIONS)
        batch, m, n, k = rng.choice((1, 5)), size(), size(), size()
        return prepare(op, matrix(batch, m, k, dtype=dtype), matrix(k, n, dtype=dtype), **options)
    dtype, format = rng.choice(floats), rng.choice((torch.contiguous_format, torch.channels_last))
    groups, taps, pixels = rng.choice((1, 1, 4, 32)), rng.choice((1, 1, 3, 5)), rng.choice((7, 14, 56, 200))
    c, k = groups * rng.choice((1, 4, 16)), groups * rng.choice((1, 4, 16))
    image, filters = (rng.choice((1, 32)), c, pixels, pixels), (k, c // groups, taps, taps)
    how = {"stride": rng.choice((1, 1, 2)), "padding": rng.choice((0, taps // 2)), "groups": groups}
    x, weight = torch.empty(image, dtype=dtype, device="meta").to(memory_format=format), matrix(*filters, dtype=dtype)
    tf32 = {"precision": "tf32"} if dtype == torch.float32 and rng.random() < 0.3 else {}
    forward = prepare("conv2d", x, weight, **how, **tf32)
    grad = torch.empty(forward.result.shape, dtype=dtype, device="meta").to(memory_format=format)
    return {
        "conv2d": lambda: forward,
        "conv2d_input": lambda: prepare(op, image, weight, grad, **how),
        "conv2d_weight": lambda: prepare(op, x, filters, grad, **how),
        "conv2d_bias": lambda: prepare(op, grad),
    }[op]()


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_every_problem_gets_a_legal_choice_or_a_sentence(library, op, live, everything):
    """On the GPUs of the table, one that is not in it, an MI300 and one with next to no shared memory."""
    small = dataclasses.replace(H200, name="small", shared_per_sm=4096, shared_per_block=4096)
    targets = [live(MI300), live(OTHER), small, *(t for t in KNOWN if t.is_gpu)]
    rng, chosen_for = random.Random(0), dict.fromkeys((t.name for t in targets), 0)
    for _ in range(30 if everything else 10):
        call = a_problem(op, rng)
        for target in targets:
            try:
                design, config = library.choose(call.problem, target)
            except UnsupportedError as error:
                assert f"on {target.name}: " in str(error) and "None" not in str(error)
                continue
            chosen_for[target.name] += 1
            assert target.vendor == "nvidia" or library.package == "tritonkernels"
            assert design.refuses(call.problem, target) is None
            for launch in design.launches(call.problem, config, *call.parts[0]) if call.result.numel() else ():
                block = launch.block[0] if hasattr(launch, "block") else launch.config.num_warps * target.warp_size
                assert 0 < block <= 1024 and min(launch.grid) > 0, (design.name, target.name, as_dict(config))
    served = {name for name, count in chosen_for.items() if count}
    assert served >= {t.name for t in targets if t.vendor == "nvidia" and t is not small}
    assert (live(MI300).name in served) == (library.package == "tritonkernels")


def test_nvidia_only_designs_refuse_an_amd_gpu():
    """Designs with Gluon's layouts, TMA or cp.async refuse; all others are portable Triton."""
    a = torch.empty(512, 512, dtype=torch.float16, device="meta")
    problems = {"gemm": prepare("gemm", a.float(), a.float()).problem, "matmul": prepare("matmul", a, a).problem}
    own = {"warp_tiled", "vectorized", "conflict_free", "z_order", "double_buffered", "async_copy"}
    own |= {"cuda_cores", "dmma", "persistent", "warp_specialized", "wgmma", "tma", "specialized", "tile_loop", "in_turn"}
    for op, problem in problems.items():
        for design in tritonkernels.designs(op):
            if "." in design.name:
                continue
            refusal = design.refuses(problem, Target.named("gfx942"))
            if design.name in own:
                assert "mi300x is gfx942" in refusal, design.name
            elif not design.name.endswith("planes"):
                assert refusal is None, (design.name, refusal)


@pytest.mark.parametrize("target", ("mi300x", "h200"))
def test_every_lane_of_a_warp_has_its_part_of_a_row(target):
    """A gemv's tile has a vector for each lane, whether warps have 32 or 64, and no block has too many threads."""
    target = Target.named(target)
    for a in (torch.empty(300, 20000, device="meta"), torch.empty(20000, 9728, device="meta").t()):
        problem = prepare("gemv", a, a[0]).problem
        for design in (design for design in tritonkernels.designs("gemv") if not design.is_lesson):
            for config in design.configs(problem, target):
                numbers, threads = config.kwargs, config.num_warps * target.warp_size
                vectors = numbers.get("BLOCK_M", 1) * numbers.get("DEPTH", 1) * (numbers.get("LANES") or numbers["BLOCK_N"])
                assert threads <= min(1024, vectors), (design.name, numbers)


def test_cuda_kernels_refuse_other_vendors():
    a = torch.empty(16, 16, device="meta")
    with pytest.raises(UnsupportedError, match=r"cuda_reference cannot compute anything on mi300x: .* this one is gfx942"):
        cuda_reference.explain("gemm", a, a, target="gfx942")


def test_a_design_without_a_config_that_fits_refuses():
    a = torch.empty(512, 512, device="meta")
    small = dataclasses.replace(H200, name="small", shared_per_block=1024)
    with pytest.raises(UnsupportedError, match="planes: none of planes's configs fits small"):
        tritonkernels.explain("matmul", a, a, precision="fp16x3", design="planes", target=small)
    with pytest.raises(UnsupportedError, match=r"pipelined: none of .*; persistent: "):
        tritonkernels.explain("matmul", a.half(), a.half(), target=small)


def test_options_of_ptxas_are_not_passed_to_another_compiler(monkeypatch):
    """Triton refuses an option that its compiler does not know."""
    HIPOptions = pytest.importorskip("triton.backends.amd.compiler").HIPOptions
    target, a, x = Target.named("gfx942"), torch.empty(512, 512, device="meta"), torch.empty(512, device="meta")
    call = prepare("gemv", a, x)
    design, config = tritonkernels.launch.LIBRARY.choose(call.problem, target)
    (launch,) = design.launches(call.problem, config, *call.parts[0])
    assert launch.options["maxnreg"]
    monkeypatch.setattr(torch.version, "hip", "6.4", raising=False)
    assert set(launch.options) <= {field.name for field in dataclasses.fields(HIPOptions)}


# Prints [operation, design, bytes of shared memory] of each kernel that is compiled for argv[1]: of the first representative
# call what is chosen, or with "all" of every call the first config of every design that takes it.
COMPILE = """
import json, sys
from perf import offline
from tritonkernels.launch import LIBRARY
from tritonkernels import OPS
from tritonkernels.target import Target

target, every = Target.named(sys.argv[1]), sys.argv[2] == "all"
for op in OPS:
    calls = [*offline.representative_calls(op), *offline.unusual_calls(op)]
    for call in calls if every else calls[:1]:
        willing = [d for d in LIBRARY.designs(op) if d.refuses(call.problem, target) is None]
        for design in willing if every else [LIBRARY.choose(call.problem, target)[0]]:
            for config in [*design.configs(call.problem, target)][:1]:
                for launch in design.launches(call.problem, config, *call.parts[0]):
                    kernel = offline.compile_launch(launch, target)
                    print(json.dumps([op, design.name, kernel.metadata.shared]))
"""


def compiled(architecture, what):
    found = [json.loads(line) for line in printed(COMPILE, architecture, what).splitlines()]
    assert {op for op, _, _ in found} == set(OPS)
    assert all(shared <= Target.named(architecture).shared_per_block for _, _, shared in found), found
    return found


@thorough  # of sm_90 test_compile.py has more
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_what_is_chosen_compiles(architecture):
    compiled(architecture, "chosen")


@pytest.mark.long
@pytest.mark.timeout(1200)
@thorough
@pytest.mark.parametrize("architecture", ("gfx942", "sm_86", "sm_89"))  # tests/designs/test_compile.py has the others
def test_every_design_compiles(architecture):
    found = {(op, design) for op, design, _ in compiled(architecture, "all")}
    every = {p.values[1:] for p in designs(compiled=True) if p.values[0] is tritonkernels.launch.LIBRARY}
    gluon = ("warp_tiled", "vectorized", "conflict_free", "z_order", "double_buffered", "async_copy")
    nvidia_s = {("gemm", d) for d in gluon}
    nvidia_s |= {("matmul", "cuda_cores"), ("matmul", "dmma")}
    assert every - found <= {
        ("matmul", "persistent"),
        ("matmul", "warp_specialized"),
        *(nvidia_s if architecture == "gfx942" else ()),
    }
