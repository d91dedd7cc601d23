"""Legality without a GPU: every config of every Triton design compiles for four architectures within shared memory; every .cuh
compiles with nvcc where there is one; and neither spills, but for the few words of which FEW_WORDS tells."""

import functools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cuda_reference
from cuda_reference.toolchain import with_its_own
from perf import sass
from perf.offline import representative_calls
from tritonkernels.target import Target

from .harness import designs

ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120")
FEW_WORDS = 8  # bytes that may wait in local memory outside the hot loop: ptxas gives them up to fit one more block on an SM
FEW_WORDS_WIDE = 64  # where offsets have 64 bits, which cost registers
TRITON_DESIGNS = [p for p in designs(compiled=True) if p.values[0].package == "tritonkernels"]
CUDA_SOURCES = [p for p in designs() if p.values[0].package == "cuda_reference"]


def survey(op, design, *architectures):
    """In a process of its own: in this one the kernels are decorated for the interpreter."""
    command = [sys.executable, "-m", "perf.offline", op, design, *architectures]
    environment = {**os.environ, "TRITONKERNELS_BACKEND": "gpu", "TRITON_INTERPRET": "0"}
    run = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=Path(__file__).parents[1])
    assert run.returncode == 0, run.stderr[-3000:]
    return [json.loads(line) for line in run.stdout.splitlines()]


def refuses_all(library, op, design, architecture):
    chosen = {d.name: d for d in library.designs(op)}[design]
    return all(chosen.refuses(call.problem, Target.named(architecture)) for call in representative_calls(op))


@pytest.mark.parametrize("library, op, design", TRITON_DESIGNS)
def test_every_triton_config_compiles_within_limits(library, op, design):
    rows = survey(op, design, *ARCHITECTURES)
    for architecture in ARCHITECTURES:
        offered = any(row["target"] == Target.named(architecture).name for row in rows)
        assert offered or refuses_all(library, op, design, architecture), "a design must offer configs"
    for row in rows:
        limit = Target.named(row["target"]).shared_per_block
        assert row["hot_loop_spills"] == 0, f"spills in the hot loop: {row}"
        assert row["stack_bytes"] <= (FEW_WORDS_WIDE if row["problem"]["wide"] else FEW_WORDS), f"spills: {row}"
        assert row["shared_bytes"] <= limit, f"shared memory above {limit}: {row}"


def test_the_compiler_is_told_what_the_kernel_needs():
    """The survey must see 64-bit offsets, every precision and ragged sizes, or it proves less than it says."""
    rows = survey("matmul", "tensor_core", "sm_90")
    held = {"fp16", "bf16", "ieee", "tf32", "int8", "fp64", "fp8", "uint8", "int4", "b1_xor"}
    assert {row["problem"]["precision"] for row in rows} == held
    assert {row["problem"]["accumulate"] for row in rows} == {"fp32", "fp16", "fp64", "int32"}
    assert any(row["problem"]["activation"] and row["problem"]["beta"] for row in rows)
    assert {row["problem"]["wide"] for row in rows} == {True, False}


@functools.cache
def nvcc_architectures():
    listed = subprocess.run(["nvcc", "--list-gpu-arch"], capture_output=True, text=True, check=True).stdout
    known = [a for a in ("75", *(name.removeprefix("sm_") for name in ARCHITECTURES)) if f"compute_{a}" in listed]
    return [with_its_own(int(a)) for a in known]  # as a build on such a GPU has it


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc on this machine")
@pytest.mark.parametrize("library, op, design", CUDA_SOURCES)
def test_every_cuda_kernel_compiles_without_spills(library, op, design, tmp_path):
    chosen = {d.name: d for d in library.designs(op)}[design]
    sources = sources_of(library, op, chosen)
    expressions = [expression for source in sources for expression in source.expressions]
    includes = "".join(f'#include "{source.header}"\n' for source in sources)
    uses = "".join(f"auto kernel_{i} = &{expression};\n" for i, expression in enumerate(expressions))
    unit = tmp_path / "unit.cu"
    unit.write_text(includes + uses)
    root = Path(cuda_reference.__file__).parent
    for architecture in nvcc_architectures():
        command = ["nvcc", "-std=c++17", "-cubin", f"-arch=sm_{architecture}", "-Werror", "all-warnings"]
        run = subprocess.run([*command, "-I", root, unit, "-o", tmp_path / "unit.cubin"], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        cubin = (tmp_path / "unit.cubin").read_bytes()
        stacks = [stack for _, stack, _ in sass.resource_usage(cubin).values()]
        assert len(stacks) >= len(expressions) and max(stacks) <= FEW_WORDS, run.stderr
        for code in sass.read(cubin).values() if any(stacks) else ():
            assert sass.count(code.hot_loop(), sass.LOCAL) == 0, f"spills in the hot loop of {code.name}"


def sources_of(library, op, design):
    """The Sources behind a CUDA design, read off the launches of a call."""
    import torch

    from .harness import SMALL, prepare, taken

    dtype, options = taken(library, op, design.name)
    call = prepare(op, *(torch.empty(shape, dtype=dtype) for shape in SMALL[op]), **options)
    config = next(iter(design.configs(call.problem, Target.named("h200"))))
    return {launch.source for launch in design.launches(call.problem, config, *call.parts[0])}
