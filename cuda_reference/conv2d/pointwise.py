"""conv2d, pointwise: a 1 x 1 convolution is a matrix product, so matmul's kernels compute it; it has none of its own.

With channels inside (NHWC) the result is (pixels, C) (C, K); else, image by image, (K, C) (C, pixels). Rows of the result are
contiguous either way, and operands are read where they are. On Hopper that is wgmma fed by TMA, which our im2col cannot use.
IEEE fp32 and fp64 run implicit_gemm's tiles on CUDA cores: for one tap that is a matrix product.
"""

import torch

from tritonkernels.design import Design
from tritonkernels.matmul import prepare

from ..matmul import persistent, pipelined
from ..matmul import prefer as prefer_product
from . import implicit_gemm

PRODUCTS = {"pipelined": pipelined.DESIGN, "persistent": persistent.DESIGN}


def _product(problem):
    """The matmul problem of that shape, as if all pixels were contiguous."""
    g = problem
    a, b = (torch.empty(*shape, dtype=g.dtype, device="meta") for shape in ((g.n * g.p * g.q, g.c), (g.c, g.k)))
    return prepare(a, b, precision=g.precision).problem


def configs(problem, target):
    """The configs of the matmul design preferred for the shape, then the other's."""
    if not implicit_gemm.on_tensor_cores(problem):
        return implicit_gemm.configs(problem, target)
    product = _product(problem)
    able = [name for name, design in PRODUCTS.items() if design.refuses(product, target) is None]
    able.sort(key=lambda name: name != prefer_product(product, target))
    return [{"PRODUCT": name, **config} for name in able for config in PRODUCTS[name].configs(product, target)]


def refuses(problem, target):
    if (problem.r, problem.s) != (1, 1):
        return f"it is for filters of 1 x 1, this one has {problem.r} x {problem.s}"
    if (problem.p, problem.q) != (problem.h, problem.w):
        return "with steps or padding, pixels are no rows of a matrix"
    if problem.groups != 1:
        return "every group would be a product of its own"
    return implicit_gemm.DESIGN.refuses(problem, target)


def _follow(tensors, outer, inner):
    """Whether in all tensors a step of the outer dimension is as long as the whole inner one."""
    return all(t.shape[outer] == 1 or t.stride(outer) == t.shape[inner] * t.stride(inner) for t in tensors)


def _matrices(*tensors):
    """The tensors (N, C, H, W) as views (batch, C, pixels), with as few views as their strides allow."""
    n, _, h, w = tensors[0].shape
    if not _follow(tensors, 2, 3):
        for image in range(n):
            yield [t[image].transpose(0, 1) for t in tensors]
    elif all(n == 1 or t.stride(0) == h * w * t.stride(3) for t in tensors):
        yield [t.as_strided((1, t.shape[1], n * h * w), (0, t.stride(1), t.stride(3))) for t in tensors]
    else:
        yield [t.as_strided((n, t.shape[1], h * w), (t.stride(0), t.stride(1), t.stride(3))) for t in tensors]


def launches(problem, config, input, weight, bias, out):
    if not implicit_gemm.on_tensor_cores(problem):
        yield from implicit_gemm.DESIGN.launches(problem, config, input, weight, bias, out)
        return
    numbers = {name: number for name, number in config.items() if name != "PRODUCT"}
    filters = weight[:, :, 0, 0]
    for x, y in _matrices(input, out):
        if out.stride(1) == 1:
            call = prepare(x.mT, filters.mT, bias=bias, precision=problem.precision, out=y.mT)
        else:
            addend = {} if bias is None else {"c": bias[:, None], "beta": 1.0}
            call = prepare(filters, x, precision=problem.precision, out=y, **addend)
        for part in call.parts:
            yield from PRODUCTS[config["PRODUCT"]].launches(call.problem, numbers, *part)


DESIGN = Design(refuses=refuses, configs=configs, launches=launches)
