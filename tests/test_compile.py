"""Legality without a GPU: every config of every Triton design compiles within shared memory, every .cuh compiles with nvcc
where there is one, and neither spills, but for the few words of which FEW_WORDS tells.

The first config for every architecture, and each of the rest for one of them, as of the unusual calls for one beside the
first; with --every-config, all for each.
"""

import functools
import json
import shutil
import subprocess
from pathlib import Path

import pytest

import cuda_reference
from cuda_reference.toolchain import with_its_own
from perf import sass
from perf.offline import representative_calls, share, unusual_calls
from tritonkernels.target import Target

from .compiler import printed
from .harness import designs

ARCHITECTURES = ("sm_90", "sm_80", "sm_100", "sm_120")
FEW_WORDS = 8  # bytes that may wait in local memory outside the hot loop: ptxas gives them up to fit one more block on an SM
FEW_WORDS_WIDE = 64  # where offsets have 64 bits, which cost registers
TRITON_DESIGNS = [p for p in designs(compiled=True) if p.values[0].package == "tritonkernels"]
CUDA_SOURCES = [p for p in designs() if p.values[0].package == "cuda_reference"]


@pytest.fixture(scope="module")
def part(pytestconfig):
    """part(index, count): what is compiled for one of so many architectures, as "number/parts"."""
    return lambda index, count: "1/1" if pytestconfig.getoption("every_config") else f"{index + 1}/{count}"


def refuses_all(library, op, design, target):
    chosen = {d.name: d for d in library.designs(op)}[design]
    return all(chosen.refuses(call.problem, target) for call in representative_calls(op))


@pytest.mark.long
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("library, op, design", TRITON_DESIGNS)
def test_every_triton_config_compiles_within_limits(library, op, design, architecture, part):
    target, wanted = Target.named(architecture), part(ARCHITECTURES.index(architecture), len(ARCHITECTURES))
    told = printed("import sys; from perf.offline import main; main(*sys.argv[1:])", op, design, f"{architecture}:{wanted}")
    rows = [json.loads(line) for line in told.splitlines()]
    assert rows or refuses_all(library, op, design, target), "a design must offer configs"
    for row in rows:
        assert row["target"] == target.name and row["hot_loop_spills"] == 0, f"spills in the hot loop: {row}"
        assert row["stack_bytes"] <= (FEW_WORDS_WIDE if row["problem"]["wide"] else FEW_WORDS), f"spills: {row}"
        assert row["shared_bytes"] <= target.shared_per_block, f"shared memory above {target.shared_per_block}: {row}"


def test_the_compiler_is_told_what_the_kernel_needs():
    """The survey must see 64-bit offsets, every precision and ragged sizes, or it proves less than it says."""
    problems = [call.problem for calls in (representative_calls, unusual_calls) for call in calls("matmul")]
    design = {d.name: d for d in TRITON_DESIGNS[0].values[0].designs("matmul")}["tensor_core"]
    rows = [p.describe() for p in problems if design.refuses(p, Target.named("sm_90")) is None]
    held = {"fp16", "bf16", "ieee", "tf32", "int8", "fp64", "fp8", "uint8", "int4", "b1_xor"}
    assert {row["precision"] for row in rows} == held
    assert {row["accumulate"] for row in rows} == {"fp32", "fp16", "fp64", "int32"}
    assert any(row["activation"] and row["beta"] for row in rows)
    assert {row["wide"] for row in rows} == {True, False}


@functools.cache
def nvcc_architectures():
    listed = subprocess.run(["nvcc", "--list-gpu-arch"], capture_output=True, text=True, check=True).stdout
    known = [a for a in (*(name.removeprefix("sm_") for name in ARCHITECTURES), "75") if f"compute_{a}" in listed]
    return [with_its_own(int(a)) for a in known]  # as a build on such a GPU has it


@pytest.mark.long
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc on this machine")
@pytest.mark.parametrize("library, op, design", CUDA_SOURCES)
def test_every_cuda_kernel_compiles_without_spills(library, op, design, tmp_path, part):
    chosen = {d.name: d for d in library.designs(op)}[design]
    sources = sources_of(library, op, chosen)
    expressions = [expression for source in sources for expression in source.expressions]
    includes = "".join(f'#include "{source.header}"\n' for source in sources)
    unit = tmp_path / "unit.cu"
    root = Path(cuda_reference.__file__).parent
    for i, architecture in enumerate(nvcc_architectures()):
        wanted = share(expressions, *map(int, part(i, len(nvcc_architectures())).split("/")))
        uses = "".join(f"auto kernel_{n} = &{expression};\n" for n, expression in enumerate(wanted))
        unit.write_text(includes + uses)
        command = ["nvcc", "-std=c++17", "-cubin", f"-arch=sm_{architecture}", "-Werror", "all-warnings"]
        run = subprocess.run([*command, "-I", root, unit, "-o", tmp_path / "unit.cubin"], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        cubin = (tmp_path / "unit.cubin").read_bytes()
        stacks = [stack for _, stack, _ in sass.resource_usage(cubin).values()]
        assert len(stacks) >= len(wanted) and max(stacks) <= FEW_WORDS, run.stderr
        for code in sass.read(cubin).values() if any(stacks) else ():
            assert sass.count(code.hot_loop(), sass.LOCAL) == 0, f"spills in the hot loop of {code.name}"


def sources_of(library, op, design):
    """The Sources behind a CUDA design, read off the launches of a call; its own, where it goes on to another operation's."""
    import torch

    from .harness import SMALL, built, prepare, suited, taken

    dtype, options = taken(library, op, design.name)
    shapes, _ = suited(library, op, design.name, SMALL[op])
    call = prepare(op, *built(shapes, functools.partial(torch.empty, dtype=dtype)), **options)
    config = next(iter(design.configs(call.problem, Target.named("h200"))))
    sources = [launch.source for launch in design.launches(call.problem, config, *call.parts[0])]
    return set(sources[:1]) if op == "conv2d_input" else set(sources)
