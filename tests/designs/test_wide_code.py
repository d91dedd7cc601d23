"""64-bit offsets in the compiler's representation: in a kernel compiled with WIDE, no 32-bit product reaches a pointer."""

import json
import re

import pytest

from tests.compiler import printed
from tests.harness import names, short
from tritonkernels import OPS
from tritonkernels.launch import LIBRARY

# Operands with strides so large that offsets need 64 bits, and none of 1: the compiler drops a product with a stride of 1.
COMPILE = """
import functools, json, sys, torch
from perf.offline import compile_launch
from tritonkernels.launch import LIBRARY
from tritonkernels.target import Target
from tests.harness import Size, built, names, prepare, suited, taken

def far(*shape, dtype, apart=1):
    strides = [(2**30 + 8 * i) * apart**i for i in range(len(shape))]
    return torch.empty(1, dtype=dtype, device="meta").as_strided(shape, strides)

def is_wide(launch):  # else it is on a workspace, which is small; matmul's kernels have WIDE in a struct
    wide = launch.values.get("WIDE", getattr(launch.values.get("how"), "WIDE", True))
    return getattr(wide, "value", wide)

def ttir(op, name):
    dtype, precision = taken(LIBRARY, op, name)
    geometry = {"groups": 2, "stride": 2, "padding": 1, "dilation": 3}
    options = {"conv2d": geometry, "conv2d_input": geometry, "conv2d_weight": geometry, "conv2d_bias": {}, "matmul": precision}
    suitable, more = suited(LIBRARY, op, name, shapes[op], **options.get(op, {"beta": 0.5}))
    args = built(suitable, functools.partial(far, dtype=dtype))
    call = prepare(op, *args, **more)
    assert call.problem.wide
    design = {d.name: d for d in LIBRARY.designs(op)}[name]
    target = Target.named("h200")
    config = next(iter(design.configs(call.problem, target)))
    out = far(*call.parts[0][-1].shape, dtype=dtype, apart=512)  # of elements that share no memory
    launches = design.launches(call.problem, config, *call.parts[0][:-1], out)
    launches = [launch for launch in launches if is_wide(launch)]
    stages = [compile_launch(launch, target).asm for launch in launches]
    return [asm.get("ttir") or asm["ttgir"] for asm in stages]  # Gluon has no ttir

n = int(sys.argv[2])  # images
shapes = {"gemm": ((70, 70), (70, 70), (70, 70)), "gemv": ((3, 70, 70), (3, 70), (70,)),
          "conv2d": ((4, 8, 30, 30), (8, 4, 5, 3), (8,)), "matmul": ((3, 70, 70), (3, 70, 70)),
          "conv2d_input": (Size((4, 8, 30, 30)), (8, 4, 5, 3), (4, 8, 10, 13)),
          "conv2d_weight": ((n, 8, 30, 30), Size((8, 4, 5, 3)), (n, 8, 10, 13)), "conv2d_bias": ((n, n, 300, 300),)}
op = sys.argv[1]
print(json.dumps({name: ttir(op, name) for name in names(LIBRARY, op)}))
"""

CARRIES = ("tt.splat", "tt.broadcast", "tt.expand_dims", "arith.addi", "arith.subi", "arith.extsi", "arith.index_cast")


def narrow_products(ttir):
    """32-bit products that the offset of a tt.addptr is computed from."""
    definitions = {}
    for line in ttir.splitlines():
        if match := re.match(r"\s*(%[\w#:]+) = \"?([\w.]+)\"?(.*)", line):
            definitions[match[1]] = (match[2], match[3])
    found = set()

    def walk(value):
        operation, rest = definitions.get(value, ("argument", ""))
        if operation == "arith.muli":
            factors = re.findall(r"%[\w#]+", rest.split(" : ")[0])
            by_a_constant = any(
                definitions.get(f, ("",))[0] == "arith.constant" for f in factors
            )  # an index, which sizes bound
            if re.search(r"(: |x)i32\b", rest) and not by_a_constant:
                found.add(f"{value} = {operation}{rest}")
        elif operation in CARRIES:
            for operand in re.findall(r"%[\w#]+", rest.split(" : ")[0]):
                walk(operand)

    pointers = [rest for operation, rest in definitions.values() if operation == "tt.addptr"]
    for rest in pointers:
        walk(re.findall(r"%[\w#]+", rest.split(" : ")[0])[1])
    return len(pointers), sorted(found)


@short(lambda op: op == "gemv")  # test_offsets.py has every design
@pytest.mark.parametrize("op", OPS)
def test_no_32_bit_product_reaches_a_pointer(op):
    kernels = [(design, ttir) for design, stages in json.loads(printed(COMPILE, op, "4")).items() for ttir in stages]
    assert len(kernels) >= len(names(LIBRARY, op))
    for design, ttir in kernels:
        pointers, narrow = narrow_products(ttir)
        assert pointers >= 2 and narrow == [], design


@short(lambda op: op == "conv2d_bias")
@pytest.mark.parametrize("op", ["conv2d_weight", "conv2d_bias"])
def test_a_size_of_1_compiles_in_64_bits(op):
    """Triton makes an argument of 1 a constant, which has no type to widen."""
    assert json.loads(printed(COMPILE, op, "1"))


def test_the_check_sees_a_narrow_product():
    ttir = """
    %0 = arith.muli %stride, %i : i32
    %1 = arith.extsi %0 : i32 to i64
    %2 = tt.splat %1 : i64 -> tensor<8xi64>
    %3 = tt.addptr %p, %2 : tensor<8x!tt.ptr<f32>>, tensor<8xi64>
    """
    assert narrow_products(ttir) == (1, ["%0 = arith.muli %stride, %i : i32"])
    assert narrow_products(ttir.replace("%stride, %i : i32", "%stride, %i : i64"))[1] == []
