"""Results of empty sums (K = 0, alpha = 0, no images, no channels): they are right, and no launch is empty.

A kernel with 0 tiles divides by that number: an error in the interpreter and in the emulation, but not on a GPU.
"""

import functools
import itertools
import math

import pytest
import torch

from tests import cases
from tests.harness import (
    DEVICES,
    LIBRARIES,
    Size,
    available_on,
    built,
    designs,
    long,
    prepare,
    random,
    run_checked,
    runnable_designs,
)
from tritonkernels.errors import UnsupportedError
from tritonkernels.target import Target

EMPTY = {
    "gemm": [((5, 0), (0, 7))],
    "gemv": [((5, 0), (0,))],
    "matmul": [((5, 0), (0, 7)), ((3, 5, 0), (0, 7))],
    "conv2d": [((2, 0, 6, 7), (4, 0, r, r)) for r in (3, 1)],
    "conv2d_input": [(Size((2, 3, 6, 7)), (0, 3, 3, 3), (2, 0, 4, 5))],
    "conv2d_weight": [((0, c, 6, 7), Size((4, c, 3, 3)), (0, 4, 4, 5)) for c in (3, 1)],
    "conv2d_bias": [((0, 4, 4, 5),)],
}
NEVER_EMPTY = {
    "persistent": "TMA describes no empty operand",
    "warp_specialized": "TMA describes no empty operand",
    "depthwise_channels": "a filter of one channel always has products",
}
NO_ALPHA = {"gemm": ((5, 9), (9, 7), (5, 7)), "gemv": ((5, 9), (9,), (5,)), "matmul": ((5, 16), (16, 7))}


def kinds(op):
    """(dtype, options) of its precisions."""
    return cases.PRECISIONS + cases.MORE_PRECISIONS if op == "matmul" else [(torch.float32, {})]


def calls(op, dtype, options):
    """(make, shapes, options) of each call; `make` creates a tensor of the dtype."""
    make = functools.partial(random, dtype=dtype)
    for shapes in EMPTY[op]:
        yield make, shapes, options
    if op in NO_ALPHA and dtype.is_floating_point:  # integers take no alpha
        addend = {} if op == "matmul" else {"beta": 0.5}
        yield make, NO_ALPHA[op], {**options, **addend, "alpha": 0.0}


@long(lambda op: op == "matmul")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("library, op, design", runnable_designs())
def test_the_result_is_right(library, op, design, device, everything):
    """`make test` has the first three precisions of a design: each is a kernel to build."""
    available_on(library, device)
    taken = set()
    for i, kind in enumerate(kinds(op)):
        if len(taken) == 3 and not everything:
            break
        for make, shapes, options in calls(op, *kind):
            try:
                run_checked(library, op, design, *built(shapes, functools.partial(make, device=device)), **options)
            except UnsupportedError:
                continue
            taken.add(i)
    assert taken or design in NEVER_EMPTY, NEVER_EMPTY


@pytest.mark.parametrize("library, op, design", designs(compiled=True))
def test_no_launch_is_empty(library, op, design):
    chosen, target, launched = {d.name: d for d in library.designs(op)}[design], Target.named("h200"), 0
    for make, shapes, options in itertools.chain.from_iterable(calls(op, *kind) for kind in kinds(op)):
        call = prepare(op, *built(shapes, make), **options)
        if chosen.refuses(call.problem, target) is None:
            for config in itertools.islice(chosen.configs(call.problem, target), 3):
                for launch in chosen.launches(call.problem, config, *call.parts[0]):
                    launched += 1
                    assert math.prod(launch.grid) > 0, (launch.name, shapes, options, config)
    assert launched or design in NEVER_EMPTY


@pytest.mark.parametrize("taps", [1, 3])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("size, gradient", [((2, 4, 5, 0), (2, 6, 7, 2)), ((2, 4, 0, 5), (2, 6, 2, 7))])
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_the_gradient_of_images_without_pixels(library, size, gradient, groups, taps):
    padding = taps // 2 + 1
    operands = Size(size), torch.ones(6, 4 // groups, taps, taps), torch.ones(gradient)
    call = prepare("conv2d_input", *operands, padding=padding, groups=groups)
    for target in (Target.named("h200"), library.target(call.result.device)):
        assert library.ranking(call.problem, target)
    assert library.run(call).shape == size
