"""Gradients in the layout of their tensor, so that autograd takes them as they are: nothing copies them."""

import itertools

import pytest
import torch
from torch.nn import functional

from tests.harness import random
from tests.torch_ops.samples import both_packages

ROWS, COLUMNS, SLICED = "rows", "columns", "sliced"  # of matrices
FORMATS = (torch.contiguous_format, torch.channels_last)


def laid_out(shape, layout):
    """A tensor of that shape whose matrices lie by rows, by columns, or in rows of more elements."""
    if len(shape) < 2 or layout == ROWS:
        return random(*shape)
    *batch, m, n = shape
    return random(*batch, n, m).mT if layout == COLUMNS else random(*batch, m, n + 2)[..., 1:-1]


def strides_of_gradients(function, tensors):
    """On the meta device, where tensors have strides but no memory: nothing runs."""
    leaves = [torch.empty_strided(t.shape, t.stride(), device="meta").requires_grad_() for t in tensors]
    return [g.stride() for g in torch.autograd.grad(function(*leaves).pow(2).sum(), leaves)]


def wanted(tensor, layout):
    """The strides of a gradient that autograd takes as it is."""
    return torch.empty_like(tensor, memory_format=torch.contiguous_format).stride() if layout == SLICED else tensor.stride()


PRODUCTS = {
    "gemm": (lambda package: package.gemm, ((5, 7), (7, 6))),
    "matmul": (lambda package: package.matmul, ((5, 7), (7, 6))),
    "matmul, an image": (lambda package: package.matmul, ((2, 5, 7), (7, 6))),
    "matmul, a batch": (lambda package: package.matmul, ((3, 5, 7), (3, 7, 6))),
    "matmul, a matrix for a batch": (lambda package: package.matmul, ((5, 7), (3, 7, 6))),
    "matmul, a row": (lambda package: package.matmul, ((7,), (7, 6))),
    "matmul, a column": (lambda package: package.matmul, ((5, 7), (7,))),
    "gemv": (lambda package: package.gemv, ((5, 7), (7,))),
    "gemv, one matrix": (lambda package: package.gemv, ((5, 7), (3, 7))),
    "gemv, a batch": (lambda package: package.gemv, ((3, 5, 7), (3, 7))),
}


def with_ones(shapes):
    """The shapes, and those where sizes are 1."""
    sizes = sorted({size for shape in shapes for size in shape})
    for ones in itertools.chain.from_iterable(itertools.combinations(sizes, count) for count in range(len(sizes) + 1)):
        yield [tuple(1 if size in ones else size for size in shape) for shape in shapes]


@both_packages
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("layouts", [*itertools.product((ROWS, COLUMNS), repeat=2), (SLICED, SLICED)], ids="-".join)
def test_of_products(package, name, layouts):
    function, shapes = PRODUCTS[name]
    if name.startswith("gemv") and layouts[1] == COLUMNS:
        layouts = layouts[0], ROWS  # vectors lie in rows
    for sizes in with_ones(shapes):
        tensors = [laid_out(shape, layout) for shape, layout in zip(sizes, layouts)]
        assert strides_of_gradients(function(package), tensors) == list(map(wanted, tensors, layouts)), sizes


IMAGES = {  # image, filters, groups
    "plain": ((2, 4, 9, 8), (6, 4, 3, 3), 1),
    "one tap": ((2, 4, 9, 8), (4, 4, 1, 1), 1),
    "depthwise": ((2, 4, 9, 8), (4, 1, 3, 3), 4),
    "one channel": ((2, 1, 9, 8), (4, 1, 3, 3), 1),
    "one of each": ((1, 4, 9, 8), (1, 4, 1, 1), 1),
    "one pixel": ((2, 4, 1, 1), (6, 4, 1, 1), 1),
    "one row": ((2, 4, 1, 8), (6, 4, 1, 3), 1),
    "one position": ((2, 4, 9, 8), (6, 4, 9, 8), 1),
}
every_image = pytest.mark.parametrize("name", IMAGES)
formats = pytest.mark.parametrize("formats", [*itertools.product(FORMATS, repeat=2)], ids=str)


def formatted(shape, memory_format):
    return torch.empty(shape, memory_format=memory_format).copy_(random(*shape))


@both_packages
@every_image
@formats
def test_of_convolutions(package, name, formats):
    image, filters, groups = IMAGES[name]
    x, w = map(formatted, (image, filters), formats)
    y = functional.conv2d(x, w, groups=groups)
    calls = {
        (x, w): lambda x, w: package.conv2d(x, w, groups=groups),
        (w, y): lambda w, y: package.conv2d_input(image, w, y, groups=groups),
        (x, y): lambda x, y: package.conv2d_weight(x, filters, y, groups=groups),
    }
    for tensors, call in calls.items():
        assert strides_of_gradients(call, tensors) == [t.stride() for t in tensors]


@both_packages
@every_image
@formats
def test_convolutions_come_in_torchs_format(package, name, formats):
    image, filters, groups = IMAGES[name]
    x, w = map(formatted, (image, filters), formats)
    of_meta = package.conv2d(x.to("meta"), w.to("meta"), groups=groups)
    assert of_meta.stride() == functional.conv2d(x, w, groups=groups).stride()

