"""Error bounds of results. docs/numerics.md derives every formula here."""

import dataclasses
import functools
import itertools
import math
from dataclasses import dataclass

import torch

from ..cook_toom import TINY
from ..problem import GATED
from .modes import ACTIVATIONS, MODES, REFUSED, SLICE, STORES, mode_of
from .references import magnitude, magnitude_of_inputs


def gamma(n, u):
    """Higham's gamma_n; infinite if n u >= 1."""
    return n * u / (1 - n * u) if n * u < 1 else math.inf


@dataclass(frozen=True)
class Bound:
    """|computed - exact| <= relative * S + store * |exact| + underflow, elementwise."""

    relative: float
    store: float
    underflow: float

    def at(self, exact, magnitude):
        """The bound of each element, given the exact result and S."""
        return self.relative * magnitude + self.store * exact.abs() + self.underflow


def error_bound(problem, terms=None, stepwise=False):
    """The Bound of every design on this problem, for any order of summation. `terms` is how many of the products summed into an
    element are not 0, where that is known: adding zeros rounds nothing. `stepwise`: the sum is rounded to the result's type
    before the activation, as by two modules in a row; no design does that."""
    mode = mode_of(problem)
    terms = problem.terms if terms is None else terms
    store, subnormal = STORES[problem.out_dtype]
    if problem.out_dtype == torch.int32:
        return Bound(0.0, 0.0, 0.0)
    scalings = 2 if getattr(problem, "scales", None) else 0
    roundings = terms + 4 + scalings
    relative = _of_sum(terms + scalings, mode)
    instructions = min(terms, math.ceil(problem.terms / mode.depth))
    relative += min(terms + 4 + instructions, mode.coarse_terms) * mode.coarse
    scale = max(1.0, abs(getattr(problem, "alpha", 1.0)), abs(getattr(problem, "beta", 0.0)))
    underflow = mode.products * roundings * STORES[mode.sums][1] * scale if math.isfinite(scale) else 0.0
    if activation := getattr(problem, "activation", None):
        slope = ACTIVATIONS[GATED.get(activation, activation)][1]
        relative += store * (1 + relative) if stepwise else 0.0
        evaluation, of_product = (2.0**-48, 2.0**-52) if mode.sums == torch.float64 else (2.0**-20, 2.0**-23)
        of_sum, relative, underflow = relative, slope * relative + evaluation, slope * underflow
        if activation in GATED:  # S has what underflow adds
            relative, underflow = relative * (1 + of_sum) + of_sum + of_product, 0.0
    return Bound(relative, store, underflow + subnormal)


@functools.cache
def as_exact_from(name, other):
    """The least number of products of which this mode's bound is at most the other's."""
    return next(n for n in itertools.count(1) if _of_sum(n, MODES[name]) <= _of_sum(n, MODES[other]))


def _of_sum(n, mode):
    """The error of a sum of n products and of the four roundings after it, relative to S, those of its inputs among it."""
    return _summation(n, mode) + 2 * mode.inputs + mode.inputs**2 + mode.dropped


def _summation(n, mode):
    """The error of adding up n products and of the four roundings after it, relative to S."""
    if mode.products == 1:
        return gamma(n + 4, mode.accumulate)
    inside, outside = gamma(min(n, SLICE), mode.accumulate), gamma(math.ceil(2 * n / SLICE) + 5, 2.0**-24)
    return inside + outside + inside * outside + mode.corrections * gamma((mode.products - 1) * n, mode.accumulate)


def lost_by_scaling(problem, a, b, **kwargs):
    """The error of a product that fp16x3 does not refuse, from elements far below the largest of their row or column."""
    dim_of_k = -min(2, b.ndim)
    largest = a.abs().amax(-1, keepdim=True).expand_as(a), b.abs().amax(dim_of_k, keepdim=True).expand_as(b)
    relative_to_largest = mode_of(problem).spread * magnitude_of_inputs("matmul", (a, b), kwargs, largest)
    products = magnitude("matmul", a, b, alpha=kwargs.get("alpha", 1.0))
    return torch.minimum(relative_to_largest, (4 * REFUSED + problem.terms * 2.0**-22) * products)


def may_refuse(problem, a, b):
    """Where fp16x3 refuses by its rule, or would refuse a product with the largest allowed error."""
    a, b = (a if a.ndim > 1 else a[None, :]).double(), (b if b.ndim > 1 else b[:, None]).double()

    def of_lines(t, dim):
        """The power of two above the largest element, m, and the ratio of the smallest element to the largest."""
        largest, smallest = torch.where(t.isfinite(), t.abs(), 0).amax(dim, True), t.abs().amin(dim, True)
        exponent = largest.clamp(min=2.0**-126).view(torch.int64) >> 52  # torch.ldexp fails on a GPU that is not current
        above = (exponent + 1 << 52).view(torch.float64)
        counted = ((t != 0) & (t.abs() < 2.0**-33 * above)).sum(dim, True)
        return above, counted, torch.where(largest > 0, smallest / largest, 1.0)

    (above, counted, ratio), (above_b, counted_b, ratio_b) = of_lines(a, -1), of_lines(b, -2)
    off = error_bound(problem).relative * torch.matmul(a.abs(), b.abs())
    product = torch.matmul(a, b)
    needed = torch.maximum(
        2.0**38 * (product.abs() - off) / (above * above_b), 2.0**37 * (1 - 2.0**-20) * torch.maximum(ratio, ratio_b)
    )
    return product.isfinite() & (counted + counted_b > needed)


def winograd_bound(transform, problem, exact, *args, **kwargs):
    """(S', the bound, where the result may be non-finite) of conv2d or conv2d_input by Winograd's transforms."""
    through = _through_of_gradient if problem.op == "conv2d_input" else _through
    return through(transform, problem, exact, *args, **kwargs)


def _through(transform, problem, exact, input, weight, bias=None, *args, **kwargs):
    mode, (store, subnormal) = mode_of(problem), STORES[problem.out_dtype]
    input, weight = (t.detach().double() for t in (input if input.ndim == 4 else input[None], weight))
    known = [torch.where(t.isfinite(), t, 0.0) for t in (input, weight)]
    sizes = transform.sizes(problem, *known)
    unknown = transform.sizes(problem, *(1.0 - t.isfinite().double() for t in (input, weight)))
    infinite = [(((u > 0) | (size >= torch.finfo(mode.sums).max)).double()) for u, size in zip(unknown, sizes)]
    ones = [torch.ones_like(size) for size in sizes]

    def spread(filters, inputs):
        return transform.spread(problem, filters, inputs).reshape(exact.shape)

    scale = spread(*sizes) + (bias.detach().double().abs()[:, None, None] if bias is not None else 0.0)
    n, tiny = problem.c // problem.groups, STORES[mode.sums][1]
    lost = TINY * (spread(sizes[0], ones[1]) + spread(ones[0], sizes[1])) + spread(*ones) + 2 * TINY
    bound = gamma(n + 1 + transform.roundings, mode.accumulate) * scale + store * exact.abs() + tiny * lost + subnormal
    return scale, bound, spread(infinite[0], ones[1]) + spread(ones[0], infinite[1]) > 0


def _through_of_gradient(transform, problem, exact, input_size, weight, grad_output, *args, bias=None, **kwargs):
    """The same for conv2d_input, which is a convolution of grad_output with the flipped filter, of stride 1."""
    filters = weight.unflatten(0, (problem.groups, problem.k // problem.groups)).transpose(1, 2).flatten(0, 1).flip(-2, -1)
    margins = tuple(taps - 1 - margin for taps, margin in zip((problem.r, problem.s), problem.padding))
    sizes = {"c": problem.k, "k": problem.c, "h": problem.p, "w": problem.q, "p": problem.h, "q": problem.w}
    return _through(transform, dataclasses.replace(problem, **sizes, padding=margins), exact, grad_output, filters, bias)
