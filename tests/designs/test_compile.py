"""Legality without a GPU: every config of every Triton design compiles within shared memory, every .cuh compiles with nvcc if
it is installed, and neither spills, except for FEW_WORDS.

`make test` compiles Triton's smallest kernels of each design for the first ordinary call that it takes, for sm_90. Of CUDA's
kernels it has those whose fences and instructions other tests look for.
"""

import functools
import json
import subprocess

import pytest
import torch

from cuda_reference.toolchain import with_its_own
from perf.offline import representative_calls, sass, unusual_calls
from tests import nvcc
from tests.compiler import printed
from tests.harness import SMALL, built, designs, prepare, short, suited, taken, thorough
from tritonkernels.target import Target

ARCHITECTURES = ("sm_90", "sm_80", "sm_100", "sm_120")
FEW_WORDS = 8  # bytes of spills allowed outside the hot loop: ptxas accepts them to fit one more block on an SM
FEW_WORDS_WIDE = 64  # with 64-bit offsets, which cost registers
EVERY = [*designs(compiled=True), *designs(compiled=True, kind="lesson")]
TRITON_DESIGNS = [p for p in EVERY if p.values[0].package == "tritonkernels"]
CUDA_DESIGNS = [p for p in EVERY if p.values[0].package == "cuda_reference"]


def refuses_all(library, op, design, target):
    chosen = {d.name: d for d in library.designs(op)}[design]
    return all(chosen.refuses(call.problem, target) for call in representative_calls(op))


# Prints the resources of all configs, or of the smallest for the first call.
SURVEY = """
import json, sys
from perf.offline.__main__ import survey
from tritonkernels.target import Target

op, design, architecture, everything = sys.argv[1:]
print(json.dumps([*survey(op, design, Target.named(architecture), not everything)]))
"""


@pytest.mark.long
@short(lambda architecture: architecture == "sm_90")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("library, op, design", TRITON_DESIGNS)
def test_every_triton_config_compiles_within_limits(library, op, design, architecture, everything):
    target = Target.named(architecture)
    rows = json.loads(printed(SURVEY, op, design, architecture, "everything" if everything else ""))
    assert rows or refuses_all(library, op, design, target), "a design must offer configs"
    for row in rows:
        assert row["target"] == target.name and row["hot_loop_spills"] == 0, f"spills in the hot loop: {row}"
        assert row["stack_bytes"] <= (FEW_WORDS_WIDE if row["problem"]["wide"] else FEW_WORDS), f"spills: {row}"
        assert row["shared_bytes"] <= target.shared_per_block, f"shared memory above {target.shared_per_block}: {row}"


def test_the_compiled_calls_cover_precisions_offsets_and_epilogues():
    """The calls that are compiled must include 64-bit offsets, every precision and an epilogue."""
    problems = [call.problem for calls in (representative_calls, unusual_calls) for call in calls("matmul")]
    design = {d.name: d for d in TRITON_DESIGNS[0].values[0].designs("matmul")}["pipelined"]
    rows = [p.describe() for p in problems if design.refuses(p, Target.named("sm_90")) is None]
    held = {"fp16", "bf16", "ieee", "tf32", "int8", "fp64", "fp8", "uint8", "int4", "b1_xor"}
    assert {row["precision"] for row in rows} == held
    assert {row["accumulate"] for row in rows} == {"fp32", "fp16", "fp64", "int32", "fast"}
    assert any(row["activation"] and row["beta"] for row in rows)
    assert {row["wide"] for row in rows} == {True, False}


@functools.cache
def nvcc_architectures():
    listed = subprocess.run(["nvcc", "--list-gpu-arch"], capture_output=True, text=True, check=True).stdout
    known = [a for a in (*(name.removeprefix("sm_") for name in ARCHITECTURES), "75") if f"compute_{a}" in listed]
    return [with_its_own(int(a)) for a in known]  # as a build on such a GPU has it


def check_spills(architecture, headers, expressions):
    """None spills in its hot loop, nor more than a few words outside."""
    cubin = nvcc.compiled(architecture, headers, expressions, "-Werror", "all-warnings").cubin
    stacks = [stack for _, stack, _ in sass.resource_usage(cubin).values()]
    assert len(stacks) >= len(expressions) and max(stacks) <= FEW_WORDS, stacks
    for code in sass.read(cubin).values() if any(stacks) else ():
        assert sass.count(code.hot_loop(), sass.LOCAL) == 0, f"spills in the hot loop of {code.name}"


@nvcc.needed
def test_what_is_kept_is_compiled_again_when_a_header_changes(monkeypatch, tmp_path):
    monkeypatch.setenv("TRITONKERNELS_CACHE", str(tmp_path / "cache"))
    units = []
    monkeypatch.setattr(nvcc, "_compile", lambda unit, _: units.append(unit) or {"cubin": "07", "ptx": "", "said": ""})
    header, part = tmp_path / "kernel.cuh", tmp_path / "part.cuh"
    header.write_text('#include "part.cuh"\n')
    for content in ("", "", "// another"):
        part.write_text(content)
        assert nvcc.compiled("90a", [header], ["kernel"]).cubin == b"\7"
    assert len(units) == 2
    nvcc.compiled("80", [header], ["kernel"])
    nvcc.compiled("80", [header], ["kernel"], "-G")
    assert len(units) == 4


def stands_alone(library, op, design):
    """One of Hopper's lessons: names in its header are names in that of the next, so that no unit has two of them."""
    lessons = {rung.name for rung in library.operation(op).own if rung.kind == "lesson"}
    return op == "matmul" and design in lessons - {"tiled"}


@nvcc.needed
@pytest.mark.long
@thorough
def test_the_default_kernel_of_every_cuda_design_compiles_without_spills():
    launches = [launch for p in CUDA_DESIGNS if not stands_alone(*p.values) for launch in first_launches(*p.values)]
    headers, expressions = (list(dict.fromkeys(x)) for x in zip(*((x.source.header, x.expression) for x in launches)))
    check_spills("90a", headers, expressions)


@nvcc.needed
@pytest.mark.long
@thorough
@pytest.mark.parametrize("library, op, design", CUDA_DESIGNS)
def test_every_cuda_kernel_compiles_without_spills(library, op, design):
    """For the GPUs that the design takes the call on."""
    sources = {launch.source for launch in first_launches(library, op, design)}
    expressions = [expression for source in sources for expression in source.expressions]
    chosen, problem = {d.name: d for d in library.designs(op)}[design], small_call(library, op, design).problem
    taking = [a for a in nvcc_architectures() if chosen.refuses(problem, Target.named(f"sm_{a.rstrip('a')}")) is None]
    assert taking
    for architecture in taking:
        check_spills(architecture, [source.header for source in sources], expressions)


def small_call(library, op, design):
    dtype, options = taken(library, op, design)
    shapes, _ = suited(library, op, design, SMALL[op])
    return prepare(op, *built(shapes, functools.partial(torch.empty, dtype=dtype)), **options)


def first_launches(library, op, design):
    """The launches of the default config on a small call, without those of another operation."""
    call = small_call(library, op, design)
    chosen = {d.name: d for d in library.designs(op)}[design]
    config = next(iter(chosen.configs(call.problem, Target.named("h200"))))
    launches = list(chosen.launches(call.problem, config, *call.parts[0]))
    return launches[:1] if op == "conv2d_input" else launches
