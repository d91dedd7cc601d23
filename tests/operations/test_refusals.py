"""Which calls of cases.py each design refuses: those in the tables below, with a sentence, and without writing anything.

The tests of results leave these calls out.
"""

import functools
import re

import pytest
import torch

from tests import cases
from tests.harness import DEVICES, SMALL, available_on, built, designs, gradient_call, prepare, sentinel, taken
from tritonkernels.errors import UnsupportedError
from tritonkernels.target import Target

KINDS = cases.PRECISIONS + cases.MORE_PRECISIONS
PLANES, BITS = {"fp16x3", "tf32x3", "bf16x6", "bf16x9"}, {"int4", "uint4", "b1_xor", "b1_and"}
ALL = {"fp16", "bf16", "ieee", "tf32", "int8", "fp64", "fp8", "uint8"} | PLANES | BITS
PRECISIONS = {  # that designs of matmul do not have
    "cuda_reference": {
        "naive": {"ieee", "fp8"} | PLANES,
        "pipelined": {"ieee", "fp8"} | PLANES | BITS,
        "persistent": {"ieee", "fp64"} | PLANES | BITS,
        "split_k": {"ieee", "fp8"} | PLANES | BITS,
        "cluster_split_k": {"ieee", "fp64"} | PLANES | BITS,
        "planes": ALL - PLANES,
        "fused_planes": ALL - PLANES | {"fp16x3"},
        "persistent_planes": ALL - {"fp16x3"},
        "wgmma_planes": ALL - {"tf32x3"},
        "cuda_cores": ALL - PLANES - {"ieee", "tf32"},
    },
    "tritonkernels": {
        "pipelined": PLANES,
        "persistent": {"ieee", "fp64", "uint8"} | PLANES | BITS,
        "warp_specialized": {"fp16", "ieee", "fp64", "int8", "uint8"} | PLANES | BITS,  # fp16 with sums in fp16
        "split_k": PLANES,
        "planes": ALL - PLANES,
        "fused_planes": ALL - PLANES | {"fp16x3"},
        "cuda_cores": ALL - PLANES - {"ieee", "tf32"},
        "dmma": ALL - {"fp64"},
    },
}
APART = {"one pixel", "one output", "one tap", "one tap, steps", "stride beyond the filter"}  # patches
THREE_TAPS = {
    "tile exact",
    "tile + 1",
    "tile - 1",
    "padded",
    "groups",
    "unbatched",
    "no images",
    "no output channels",
    "one filter a channel",
}
ONE_FILTER = {"one pixel", "one filter a channel", "one filter an odd channel"}
GROUPED = {"groups", "depthwise", "one filter a channel", "one filter an odd channel"}
EMPTY = {"no images", "no output channels"}
GEOMETRIES = {  # that designs of conv2d do not take
    "cuda_reference": {
        "register_blocked": {"halo beyond shared memory", "stride beyond the filter"},
        "warp_specialized": GROUPED | EMPTY | {"halo beyond shared memory"},
        "depthwise_channels": cases.CONVOLUTIONS.keys() - ONE_FILTER,
        "matmul.cuda_cores": cases.CONVOLUTIONS.keys() - APART,
        "winograd": cases.CONVOLUTIONS.keys() - THREE_TAPS,
    },
    "tritonkernels": {
        "depthwise_channels": cases.CONVOLUTIONS.keys() - ONE_FILTER,
        "register_blocked": {"large filter"},
        "grouped": {"large filter", "halo beyond shared memory"},
        "warp_specialized": GROUPED | EMPTY,
        "matmul.pipelined": cases.CONVOLUTIONS.keys() - APART,
        "winograd": cases.CONVOLUTIONS.keys() - THREE_TAPS,
    },
}


def empty(*shape, dtype=torch.float32, device="meta"):
    return torch.empty(shape, dtype=dtype, device=device)


def refused(library, op, design, *arguments, **options):
    """The call's problem if the design refuses it on an H200, else None."""
    problem = prepare(op, *arguments, **options).problem
    return problem if {d.name: d for d in library.designs(op)}[design].refuses(problem, Target.named("h200")) else None


@pytest.mark.parametrize("library, op, design", designs("matmul", compiled=True))
def test_the_precisions_that_matmul_s_designs_do_not_have(library, op, design):
    calls = ((built(SMALL[op], functools.partial(empty, dtype=dtype)), options) for dtype, options in KINDS)
    found = [refused(library, op, design, *operands, **options) for operands, options in calls]
    assert {problem.precision for problem in found if problem} == PRECISIONS[library.package].get(design, set())


@pytest.mark.parametrize("library, op, design", designs("gemm", "gemv", compiled=True))
def test_the_designs_that_do_not_have_float64(library, op, design):
    takes = not refused(library, op, design, *built(SMALL[op], functools.partial(empty, dtype=torch.float64)))
    assert takes == (op == "gemv"), "gemm's own have none: matmul's multiply on tensor cores"


@pytest.mark.parametrize("library, op, design", designs("conv2d", compiled=True))
def test_the_geometries_that_conv2d_s_designs_do_not_take(library, op, design):
    make = functools.partial(empty, dtype=taken(library, op, design)[0])
    calls = {name: (make(*image), make(*weight), o) for name, (image, weight, o) in cases.CONVOLUTIONS.items()}
    found = {name for name, (x, w, options) in calls.items() if refused(library, op, design, x, w, **options)}
    assert found == GEOMETRIES[library.package].get(design, set())


def calls(op, device):
    """(arguments, options) of every precision, type and geometry."""
    if op == "matmul":
        for dtype, options in KINDS:
            for shapes in (SMALL[op], cases.MATMUL_SHAPES["no products"]):
                yield built(shapes, functools.partial(empty, dtype=dtype, device=device)), options
    elif op in ("gemm", "gemv"):
        for dtype in (torch.float32, torch.float64):
            yield built(SMALL[op], functools.partial(empty, dtype=dtype, device=device)), {}
    else:
        for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
            make = functools.partial(empty, dtype=dtype, device=device)
            for name, (image, weight, options) in cases.CONVOLUTIONS.items():
                yield (built((image, weight), make), options) if op == "conv2d" else gradient_call(op, name, make)


@pytest.mark.parametrize("library, op, design", designs(compiled=True))
@pytest.mark.parametrize("device", DEVICES)
def test_a_refused_call_raises_its_sentence_and_writes_nothing(library, op, design, device):
    available_on(library, device)
    chosen = {d.name: d for d in library.designs(op)}[design]
    for arguments, options in calls(op, device):
        call = prepare(op, *arguments, **options)
        why = chosen.refuses(call.problem, library.target(call.result.device))
        if why is not None:
            untouched = call.result.fill_(sentinel(call.result.dtype)).clone()
            with pytest.raises(UnsupportedError, match=re.escape(why)):
                library.run(call, design)
            torch.testing.assert_close(call.result, untouched, rtol=0, atol=0, equal_nan=True)
