"""Gradients in the layout of their tensor, so that autograd takes them as they are: nothing copies them."""

import itertools

import pytest
import torch
from torch.nn import functional

import cuda_reference.nn
import tritonkernels.nn  # noqa: F401
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


@pytest.mark.parametrize("name", PRODUCTS)
def test_by_columns_they_are_torchs(name):
    """In the first and the second order; it is the same code for both packages."""
    function, shapes = PRODUCTS[name]

    def both_orders(product):
        leaves = [t.detach().double().requires_grad_() for t in tensors]
        first = torch.autograd.grad(product(*leaves).pow(2).sum(), leaves, create_graph=True)
        return *first, *torch.autograd.grad(sum(g.pow(2).sum() for g in first), leaves)

    def torchs(a, b):
        return (a @ b[..., None])[..., 0] if name.startswith("gemv") else a @ b

    tensors = [laid_out(shape, COLUMNS) for shape in shapes]
    torch.testing.assert_close(both_orders(function(cuda_reference)), both_orders(torchs))


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


MODULES = {  # of tritonkernels.nn and of cuda_reference.nn, with their input
    "Linear": (lambda nn: nn.Linear(6, 5), (3, 6)),
    "Linear of one feature": (lambda nn: nn.Linear(6, 1), (3, 6)),
    "Conv2d": (lambda nn: nn.Conv2d(4, 6, 3, padding=1), (2, 4, 6, 5)),
    "Conv2d of one tap": (lambda nn: nn.Conv2d(4, 6, 1), (2, 4, 6, 5)),
    "Conv2d, depthwise": (lambda nn: nn.Conv2d(4, 4, 3, groups=4), (2, 4, 6, 5)),
}
every_module = pytest.mark.parametrize("name", MODULES)


def step(name, package):
    """(module, its result), filters and images in channels_last."""
    make, shape = MODULES[name]
    module, x = make(package.nn), random(*shape)
    if len(shape) == 4:
        module, x = module.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    return module, module(x)


@both_packages
@every_module
def test_a_parameter_keeps_the_tensor_that_was_written(package, name):
    for _ in range(3):  # the third repeats a plan
        module, result = step(name, package)
        written = []
        for parameter in module.parameters():
            parameter.register_hook(lambda grad, to=written: to.append((grad.data_ptr(), grad.stride())))
        result.backward(torch.ones_like(result))
        assert set(written) == {(parameter.grad.data_ptr(), parameter.stride()) for parameter in module.parameters()}


@both_packages
@every_module
def test_a_step_copies_nothing(package, name):
    module, result = step(name, package)
    grad = torch.ones_like(result)
    with torch.profiler.profile() as profile:
        result.backward(grad)
    assert module.weight.grad.stride() == module.weight.stride()
    of_autograd = [event for event in profile.events() if event.name == "torch::autograd::AccumulateGrad"]
    assert {child.name for event in of_autograd for child in event.cpu_children} == {"aten::detach"}
    if package is cuda_reference:  # Triton's interpreter copies for itself
        assert not {"aten::copy_", "aten::clone"} & {event.name for event in profile.events()}
