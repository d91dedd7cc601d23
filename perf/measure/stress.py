"""Operands on which fp32 products lose precision: STRESSES, {description: draw(generator, m, n, k) -> (a, b)}."""

import functools
import math

import torch


def _normal(generator, *shape):
    return torch.randn(shape, generator=generator)


def _uniform(generator, *shape):
    return torch.rand(shape, generator=generator)


def _log_uniform(generator, *shape, exponent):
    """Values of either sign, 2^-exponent to 2^exponent."""
    signs = torch.randint(2, shape, generator=generator) * 2 - 1
    return signs * torch.exp2((2 * torch.rand(shape, generator=generator) - 1) * exponent)


def _alike(draw, generator, m, n, k):
    return draw(generator, m, k), draw(generator, k, n)


def _softmax(generator, m, n, k, spread):
    """Rows of a softmax of logits with that standard deviation, times random numbers."""
    return torch.softmax(spread * _normal(generator, m, k), dim=1), _normal(generator, k, n)


def _large_and_small(generator, m, n, k):
    """1e30 and 1e-30 in every row, paired so that all products are near 1."""
    a, b = _normal(generator, m, k), _normal(generator, k, n)
    scale = torch.where(torch.arange(k) % 2 == 0, 1e30, 1e-30)
    return a * scale, b / scale[:, None]


def ill_conditioned(generator, count, k, condition):
    """`count` inner products x y of length k, (count, 1, k) and (count, k, 1), with 2 |x| |y| / |x y| near `condition`.

    After T. Ogita, S. M. Rump and S. Oishi, Accurate sum and dot product, 2005, algorithm 6.1: half of the products have
    exponents up to the condition's, and each of the others brings the partial sum down to a smaller exponent.
    """
    half, bits = k // 2, math.log2(condition / 8)  # the sum of all products is about 8 times the largest

    def signed():
        return 2 * torch.rand((count, k), generator=generator, dtype=torch.float64) - 1

    exponents = torch.round(torch.rand((count, half), generator=generator, dtype=torch.float64) * bits / 2)
    exponents[:, 0], exponents[:, -1] = round(bits / 2) + 1, 0
    falling = torch.round(torch.linspace(bits / 2, 0, k - half, dtype=torch.float64))
    scale = torch.exp2(torch.cat((exponents, falling.expand(count, -1)), dim=1))
    x, y = (signed() * scale).float(), (signed() * scale).float()
    for row in range(count):
        products = (x[row].double() * y[row].double()).tolist()  # exact, and fsum rounds their sum only once
        for i in range(half, k):
            y[row, i] = (y[row, i].double() - math.fsum(products[:i])) / x[row, i].double()
            products[i] = x[row, i].item() * y[row, i].item()
    order = torch.randperm(k, generator=generator)
    return x[:, None, order], y[:, order, None]


STRESSES = {
    "normal": functools.partial(_alike, _normal),
    "uniform, 0 to 1": functools.partial(_alike, _uniform),
    **{
        f"log-uniform, 2^-{exponent} to 2^{exponent}": functools.partial(
            _alike, functools.partial(_log_uniform, exponent=exponent)
        )
        for exponent in (10, 20, 40, 60)
    },
    "softmax of logits of 3, times normal": functools.partial(_softmax, spread=3.0),
    "softmax of logits of 10, times normal": functools.partial(_softmax, spread=10.0),
    "1e30 beside 1e-30": _large_and_small,
}
CONDITIONS = (1e2, 1e4, 1e6, 1e8)  # of inner products
