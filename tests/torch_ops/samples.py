"""A few calls of every operation and what torch computes, for the tests of what torch does with operators."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch.nn import functional

import cuda_reference.nn
import tritonkernels.nn
from tests.covering import alone
from tests.harness import DEVICES, available_on, random, short

LIBRARIES = {tritonkernels: tritonkernels.launch.LIBRARY, cuda_reference: cuda_reference.launch.LIBRARY}
STEPS = {"stride": (2, 1), "padding": 1, "dilation": (1, 2), "groups": 2}
IMAGE, FILTERS = (2, 2, 5, 5), (3, 2, 3, 3)


class Sample(NamedTuple):
    op: str
    shapes: tuple
    ours: Callable  # (package, *tensors)
    torchs: Callable  # (*tensors)


SAMPLES = {
    "gemm": Sample(
        "gemm",
        ((4, 5), (5, 6), (6,)),
        lambda package, a, b, c: package.gemm(a, b, c, alpha=0.5, beta=2.0),
        lambda a, b, c: torch.addmm(c, a, b, alpha=0.5, beta=2.0),
    ),
    "gemv": Sample(
        "gemv",
        ((4, 5), (5,), (4,)),
        lambda package, a, x, y: package.gemv(a, x, y, alpha=0.5),
        lambda a, x, y: torch.addmv(y, a, x, alpha=0.5),
    ),
    "gemv, one matrix": Sample(
        "gemv",
        ((4, 5), (3, 5), (3, 1)),
        lambda package, a, x, y: package.gemv(a, x, y, alpha=0.5, beta=2.0),
        lambda a, x, y: 2 * y + 0.5 * x @ a.mT,
    ),
    "gemv, a batch": Sample(
        "gemv", ((2, 1, 4, 5), (3, 5)), lambda package, a, x: package.gemv(a, x), lambda a, x: (a @ x[..., None])[..., 0]
    ),
    "matmul": Sample(
        "matmul",
        ((3, 4, 5), (5, 6), (4, 1), (6,)),
        lambda package, a, b, c, bias: package.matmul(a, b, c=c, bias=bias, alpha=0.5, activation="gelu"),
        lambda a, b, c, bias: functional.gelu(0.5 * a @ b + c + bias),
    ),
    "matmul, vectors": Sample("matmul", ((5,), (5,)), lambda package, a, b: package.matmul(a, b), torch.matmul),
    "matmul, a row": Sample("matmul", ((5,), (2, 5, 6)), lambda package, a, b: package.matmul(a, b), torch.matmul),
    "matmul, a column": Sample(
        "matmul",
        ((2, 3, 5), (5,), (2, 3)),
        lambda package, a, b, c: package.matmul(a, b, c=c, beta=0.5),
        lambda a, b, c: a @ b + 0.5 * c,
    ),
    "conv2d": Sample(
        "conv2d",
        ((2, 4, 6, 5), (4, 2, 3, 2), (4,)),
        lambda package, x, w, b: package.conv2d(x, w, b, **STEPS),
        lambda x, w, b: functional.conv2d(x, w, b, **STEPS),
    ),
    "conv2d, residual": Sample(
        "conv2d",
        ((2, 4, 6, 5), (4, 2, 3, 2), (4,), (2, 4, 3, 5)),
        lambda package, x, w, b, r: package.conv2d(x, w, b, **STEPS, residual=r),
        lambda x, w, b, r: functional.conv2d(x, w, b, **STEPS) + r,
    ),
    "conv2d, one image": Sample(
        "conv2d",
        ((2, 4, 5), (3, 2, 2, 3), (3,)),
        lambda package, x, w, b: package.conv2d(x, w, b, padding="same"),
        lambda x, w, b: functional.conv2d(x, w, b, padding="same"),
    ),
    "conv2d_input": Sample(
        "conv2d_input",
        (FILTERS, (2, 3, 5, 5), (2,)),
        lambda package, w, g, b: package.conv2d_input(IMAGE, w, g, padding=1, bias=b),
        lambda w, g, b: torch.nn.grad.conv2d_input(IMAGE, w, g, padding=1) + b[:, None, None],
    ),
    "conv2d_weight": Sample(
        "conv2d_weight",
        (IMAGE, (2, 3, 5, 5)),
        lambda package, x, g: package.conv2d_weight(x, FILTERS, g, padding=1),
        lambda x, g: torch.nn.grad.conv2d_weight(x, FILTERS, g, padding=1),
    ),
    "conv2d_bias": Sample(
        "conv2d_bias", ((2, 3, 5, 5),), lambda package, g: package.conv2d_bias(g), lambda g: g.sum((0, 2, 3))
    ),
}


def both_packages(test):
    """In turn: what is between torch and the designs is the same code."""
    return alone("package")(pytest.mark.parametrize("package", LIBRARIES, ids=lambda p: p.__name__)(test))


every_sample = pytest.mark.parametrize("name", SAMPLES)
QUICK = ("gemm",)  # in Triton's interpreter; it is the same code for both packages
emulated = short(lambda package, name: package is cuda_reference or name in QUICK)
on_devices = pytest.mark.parametrize("device", DEVICES)


class Pair(NamedTuple):
    """A sample in one package: two functions of tensors, and how to make these."""

    ours: Callable
    torchs: Callable
    make: Callable  # (*batch) -> operands, each with the batch before its own dimensions


def pair_of(package, name, device="cpu", dtype=torch.float64):
    available_on(LIBRARIES[package], device)
    sample = SAMPLES[name]

    def make(*batch):
        return [random(*batch, *shape, dtype=dtype, device=device) for shape in sample.shapes]

    return Pair(lambda *tensors: sample.ours(package, *tensors), sample.torchs, make)


def loss(function):
    return lambda *tensors: function(*tensors).pow(2).sum()


def everywhere(tensors):
    """The argnums of all tensors."""
    return tuple(range(len(tensors)))
