"""The CUDA designs with nvcuda::wmma: every combination of types and shapes in every layout, and its machine code."""

import itertools

import pytest
import torch

from cuda_reference.launch import LIBRARY
from cuda_reference.matmul.parts.operands import OPERANDS
from cuda_reference.trace import trace
from perf.offline import sass
from tests import nvcc
from tests.harness import offset_by_one, prepare, random, run_checked, thorough, transposed
from tritonkernels.errors import UnsupportedError
from tritonkernels.problem import PACKED
from tritonkernels.target import Target

DTYPES = {
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "tf32": torch.float32,
    "fp64": torch.float64,
    "int8": torch.int8,
    **dict.fromkeys(("uint8", *PACKED), torch.uint8),
}
CASES = [(precision, sums) for precision, operand in OPERANDS.items() for sums in operand.sums]
DESIGNS = ("naive", "tiled")
CPU = Target.named("simt")


def design(name):
    return {d.name: d for d in LIBRARY.designs("matmul")}[name]


def call(precision, sums, m=80, n=112, k=144, layouts=("row", "col")):
    """Operands whose rows are whole 16-byte vectors, and whose sizes are no multiples of a tile."""
    k //= PACKED.get(precision, 1)
    layout = {"row": torch.Tensor.contiguous, "col": transposed}
    a, b = (random(*shape, dtype=DTYPES[precision]) for shape in ((m, k), (k, n)))
    return (layout[layouts[0]](a), layout[layouts[1]](b)), {"precision": precision, "accumulate": sums}


def takes(name, precision, sums=None):
    """`tiled` is a lesson, which takes 16-bit operands and sums in fp32."""
    (args, kwargs) = call(precision, sums)
    return design(name).refuses(prepare("matmul", *args, **kwargs).problem, CPU) is None


def test_there_are_twenty_combinations():
    """As the CUDA guide counts them, with XOR and AND of bits as one."""
    assert sum(len(operand.shapes) * len(operand.sums) for operand in OPERANDS.values()) == 20 + 1


@pytest.mark.parametrize("name, precision, sums", [(name, *case) for name in DESIGNS for case in CASES if takes(name, *case)])
def test_every_combination_in_every_layout(name, precision, sums, everything):
    """`make test` has each operand in each layout, but two of the four pairs."""
    every = [*itertools.product(("row", "col"), repeat=2)]
    for layouts in every if everything else every[1:3]:
        args, kwargs = call(precision, sums, layouts=layouts)
        problem = prepare("matmul", *args, **kwargs).problem
        for config in design(name).configs(problem, CPU):
            run_checked(LIBRARY, "matmul", name, *args, config=config, **kwargs)


def launch_of(name, args, kwargs):
    prepared = prepare("matmul", *args, **kwargs)
    config = next(iter(design(name).configs(prepared.problem, CPU)))
    return next(iter(design(name).launches(prepared.problem, config, *prepared.parts[0])))


@pytest.mark.parametrize("precision", ("fp16", pytest.param("bf16", marks=thorough)))
def test_chunks_only_where_strides_allow(precision):
    """tiled copies 16 bytes at a time where rows, or columns, are whole chunks and begin at one, else single elements."""
    (a, b), kwargs = call(precision, None)
    odd_pitch, apart = random(80, 145, dtype=a.dtype)[:, :144], random(80, 288, dtype=a.dtype)[:, ::2]
    shifted = random(80, 152, dtype=a.dtype)[:, 1:145]
    wide = random(80, 1, dtype=a.dtype)  # layout_of calls one column "row", whatever its stride
    for operands, whole in (
        ((a, b), True),
        ((a.contiguous(), b.contiguous()), True),
        ((offset_by_one(a), b), False),
        ((a, transposed(offset_by_one(b.T.contiguous()).T)), True),
        ((a[:, :-1], b[:-1]), False),
        ((odd_pitch, b), False),
        ((apart, b), False),
        ((shifted, b), False),
        ((wide, b[:1]), False),
    ):
        (found,) = trace(launch_of("tiled", operands, kwargs))
        widths = {access.width for access in found.accesses if (access.space, access.kind) == ("global", "read")}
        assert (widths == {16}) == whole, widths
        run_checked(LIBRARY, "matmul", "tiled", *operands, **kwargs)


@pytest.mark.parametrize("name", DESIGNS)
def test_no_races_over_several_slices(name):
    """No order of whole threads shows that a slice, or a fragment, is overwritten too early: a warp's lanes wait for each
    other at each product."""
    (found,) = trace(launch_of(name, *call("fp16", "fp32", m=20, n=24, k=100)))
    assert [str(race) for race in found.races] == []


def test_what_needs_which_architecture():
    args, kwargs = call("bf16", None)
    problem = prepare("matmul", *args, **kwargs).problem
    for name in DESIGNS:
        assert design(name).refuses(problem, Target.named("rtx_2080")) == "bf16 needs sm_80, rtx_2080 is sm_75"
        assert design(name).refuses(problem, Target.named("a100")) is None
    with pytest.raises(UnsupportedError, match="it has no ieee"):
        LIBRARY.run(prepare("matmul", torch.zeros(2, 2), torch.zeros(2, 2)), "naive")


# On sm_90, 4-bit operands are widened to bytes, and XOR takes three products of AND.
INSTRUCTIONS = {
    **dict.fromkeys(("fp16", "bf16", "tf32"), ("HMMA", "HMMA")),
    "fp64": ("DMMA", "DMMA"),
    **dict.fromkeys(("int8", "uint8"), ("IMMA", "IMMA")),
    **dict.fromkeys(("int4", "uint4"), ("IMMA.8832", "IMMA.8816")),
    "b1_xor": ("BMMA.88128.XOR", "BMMA.88128.AND"),
    "b1_and": ("BMMA.88128.AND", "BMMA.88128.AND"),
}


@thorough
@nvcc.needed
@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("name, precision", [(n, p) for n in DESIGNS for p in OPERANDS if takes(n, p)])
def test_every_instance_is_the_instruction_and_spills_nothing(name, precision, arch):
    source = launch_of(name, *call(precision, None)).source
    cubin = nvcc.compiled(arch, [source.header], source.expressions, "-Werror", "all-warnings").cubin
    usage = sass.resource_usage(cubin).values()
    assert len(usage) == len(source.expressions)
    assert {stack_bytes for _, stack_bytes, _ in usage} == {0}
    assert max(shared_bytes for *_, shared_bytes in usage) <= 48 * 1024
    wanted = INSTRUCTIONS[precision][arch == 90]
    for code in sass.read(cubin).values():
        opcodes = {text.split()[0] for _, text in code.instructions}
        assert any(opcode.startswith(wanted) for opcode in opcodes), (code.name, wanted, sorted(opcodes))
