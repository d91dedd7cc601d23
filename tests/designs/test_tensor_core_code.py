"""Triton's tensor-core designs in machine code: each type uses the instruction of its architecture, and on Hopper no product
waits for the previous one (as some did with Triton 3.6.0)."""

import json
import re

import pytest

from tests.compiler import printed
from tests.harness import thorough
from tritonkernels.numerics import FP8_SLICE

# Prints [design, precision, layout of B, opcodes, hot loop] for the "first" or "all" (argv[2]) configs of each call.
COMPILE = """
import itertools, json, sys, torch
from perf.offline import sass
from perf.offline import compile_launch
from tritonkernels.launch import LIBRARY
from tritonkernels.matmul import prepare
from tritonkernels.target import Target

target, most = Target.named(sys.argv[1]), {"first": 1, "all": None}[sys.argv[2]]
kinds = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn, "int8": torch.int8, "tf32": torch.float32,
         "fp64": torch.float64, "fp8 fast": torch.float8_e4m3fn}
for name in sys.argv[3:]:
    (design,) = (d for d in LIBRARY.designs("matmul") if d.name == name)
    for precision, dtype in kinds.items():
        for layout in ("row", "col") if precision == "fp16" else ("col",):
            a, b = (torch.empty(4096, 4096, dtype=dtype, device="meta") for _ in range(2))
            options = {"precision": precision}
            if precision == "fp8 fast":
                b, options = b.to(torch.float8_e5m2), {"accumulate": "fast"}
            call = prepare(a, b if layout == "row" else b.t(), **options)
            if design.refuses(call.problem, target):
                continue
            for config in itertools.islice(design.configs(call.problem, target), most):
                launches = design.launches(call.problem, config, *call.parts[0])
                *_, launch = (x for x in launches if {"a", "b"} <= x.values.keys())
                (code,) = sass.read(compile_launch(launch, target).asm["cubin"]).values()
                opcodes = sorted({text.split()[0] for _, text in code.instructions})
                print(json.dumps([name, precision, layout, opcodes, code.hot_loop()]), flush=True)
"""

# Prints [design, how it accumulates, the products of fp8 in its TTGIR] of each design that takes them.
COMPILE_FP8 = """
import json, torch
from perf.offline import compile_launch
from tritonkernels.launch import LIBRARY
from tritonkernels.matmul import prepare
from tritonkernels.target import Target

target, matrix = Target.named("sm_90"), torch.empty(4096, 4096, dtype=torch.float8_e4m3fn, device="meta")
for accumulate in (None, "fast"):
    call = prepare(matrix, matrix.t(), precision="fp8", accumulate=accumulate)
    for design in (d for d in LIBRARY.designs("matmul") if d.refuses(call.problem, target) is None):
        config = next(iter(design.configs(call.problem, target)))
        *_, launch = (x for x in design.launches(call.problem, config, *call.parts[0]) if {"a", "b"} <= x.values.keys())
        lines = compile_launch(launch, target).asm["ttgir"].splitlines()
        print(json.dumps([design.name, accumulate, [line for line in lines if "warp_group_dot %" in line]]), flush=True)
"""

# Prints [design, precision, matrix instructions, bytes of scratch, bytes of shared memory] of each kernel for an MI300.
COMPILE_FOR_AMD = """
import json, re, sys, torch
from perf.offline import compile_launch
from tritonkernels.launch import LIBRARY
from tritonkernels.matmul import prepare
from tritonkernels.target import Target

target = Target.named("gfx942")
kinds = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn, "int8": torch.int8, "tf32": torch.float32,
         "fp64": torch.float64, "ieee": torch.float32, "fp16x3": torch.float32}
for name, *precisions in map(str.split, sys.argv[1:]):
    (design,) = (d for d in LIBRARY.designs("matmul") if d.name == name)
    for precision in precisions:
        a, b = (torch.empty(4096, 4096, dtype=kinds[precision], device="meta") for _ in range(2))
        call = prepare(a, b, precision=precision)
        if design.refuses(call.problem, target):
            continue
        config = next(iter(design.configs(call.problem, target)))
        for launch in design.launches(call.problem, config, *call.parts[0]):
            kernel = compile_launch(launch, target)
            code = kernel.asm["amdgcn"]
            scratch = int(re.search(r"private_segment_fixed_size: *(\\d+)", code).group(1))
            products = sorted(set(re.findall(r"v_mfma_(\\w+)", code)))
            print(json.dumps([name, precision, products, scratch, kernel.metadata.shared]), flush=True)
"""
PRODUCTS_OF_AMD = {"fp16": "f32_32x32x8_f16", "bf16": "f32_32x32x8_bf16", "int8": "i32_32x32x16_i8", "tf32": "f32_32x32x4_xf32",
                   "fp64": "f64_16x16x4_f64", "ieee": "f32_32x32x2_f32", "fp16x3": "f32_32x32x8_f16"}  # fmt: skip

INSTRUCTIONS = {
    "sm_80": {"fp16": "HMMA.16816.F32", "bf16": "HMMA.16816.F32.BF16", "int8": "IMMA.16832.S8.S8", "tf32": "HMMA.1688.F32.TF32",
              "fp64": "DMMA"},
    "sm_90": {"fp16": "HGMMA", "bf16": "HGMMA", "fp8": "QGMMA", "fp8 fast": "QGMMA", "int8": "IGMMA", "tf32": "HGMMA",
              "fp64": "DMMA"},
    "sm_100": {"fp16": "UTCHMMA", "bf16": "UTCHMMA", "fp8": "UTCQMMA", "fp8 fast": "UTCQMMA", "int8": "IMMA.16832.S8.S8",
               "tf32": "UTCHMMA", "fp64": "DFMA"},  # no DMMA from Triton there
    "sm_120": {"fp16": "HMMA.16816.F32", "bf16": "HMMA.16816.F32.BF16", "fp8": "QMMA", "fp8 fast": "QMMA",
               "int8": "IMMA.16832.S8.S8", "tf32": "HMMA.1688.F32.TF32", "fp64": "DFMA"},  # its DMMA is not worth using
}  # fmt: skip


def machine_code(program, *arguments):
    return [json.loads(line) for line in printed(program, *arguments).splitlines()]


@thorough
@pytest.mark.parametrize("architecture", INSTRUCTIONS)
def test_each_type_has_its_instruction(architecture):
    found = machine_code(COMPILE, architecture, "first", "pipelined")
    assert {row[1] for row in found} == set(INSTRUCTIONS[architecture])
    for _, precision, layout, opcodes, _ in found:
        assert any(opcode.startswith(INSTRUCTIONS[architecture][precision]) for opcode in opcodes), (precision, layout)


@thorough
@pytest.mark.parametrize(
    "which, designs",
    [("all", ["persistent", "warp_specialized"]), ("first", ["pipelined"]), ("first", ["split_k"])],
)
def test_no_product_on_hopper_waits_for_the_one_before(which, designs):
    """All products of a slice are between one WARPGROUP.ARRIVE and one wait; serialised ones have both for each product."""
    found = [row for row in machine_code(COMPILE, "sm_90", which, *designs) if row[1] != "fp64"]
    assert {design for design, *_ in found} == set(designs) and len(found) >= 6 * len(designs)
    for design, precision, layout, _, loop in found:
        products = sum(n for opcode, n in loop.items() if opcode.startswith(("HGMMA", "QGMMA", "IGMMA")))
        assert products >= 2 and loop["WARPGROUP.ARRIVE"] <= products / 2, (design, precision, layout, loop)


def test_sums_of_fp8_leave_the_tensor_cores_of_hopper_after_a_slice():
    """There they have few bits. So after numerics.FP8_SLICE products they are added in fp32, by Triton or by the design, whose
    next product then begins at 0; unless the caller asks for fast ones."""
    found = machine_code(COMPILE_FP8)
    designs = {"pipelined", "persistent", "warp_specialized", "split_k"}
    assert {design for design, accumulate, _ in found if accumulate is None} == designs
    for design, accumulate, products in found:
        limits, begin_anew = set(), set()
        for product in products:
            limits.add(int(re.search(r"maxNumImpreciseAcc = (\d+)", product)[1]))
            operand = re.search(r": !ttg.memdesc<\d+x(\d+)x", product)[1]
            begin_anew.add(re.search(r"%false\w* {", product) is not None and int(operand) <= FP8_SLICE)
        assert products and (max(limits) <= FP8_SLICE or begin_anew == {True}) == (accumulate is None), (design, accumulate)


@thorough
def test_the_portable_designs_are_matrix_instructions_on_amd_too():
    every = " ".join(["fp8", *PRODUCTS_OF_AMD])
    found = machine_code(COMPILE_FOR_AMD, f"pipelined {every}", "split_k fp16 int8", "planes fp16x3")
    assert {row[1] for row in found} == set(PRODUCTS_OF_AMD), "gfx942 has another fp8 format: refused"
    multiplied = [(design, precision) for design, precision, products, _, _ in found if products]
    assert len(multiplied) == len(set(multiplied)) == len(PRODUCTS_OF_AMD) + 2, "one kernel of each call computes products"
    for design, precision, products, scratch, shared in found:
        assert products in ([], [PRODUCTS_OF_AMD[precision]]), (design, precision)
        assert scratch == 0 and shared <= 65536, (design, precision)
