"""Checks whether a computed result is within its design's error bound."""

import math
from dataclasses import dataclass

import torch

from .bounds import error_bound, lost_by_scaling, may_refuse, winograd_bound
from .modes import mode_of
from .references import magnitude, magnitude_of_inputs, magnitude_of_products, reference


@dataclass(frozen=True)
class Verdict:
    """The element whose error is closest to its bound, or exceeds it most; both are relative to S there."""

    error: float
    bound: float
    ok: bool


def judge(problem, computed, *args, transform=None, terms=None, **kwargs):
    """Compare the result of the user's call with float64, elementwise, within error_bound(problem, terms) or a transform's."""
    return Expected(problem, *args, transform=transform, terms=terms, **kwargs).judge(computed)


class Expected:
    """What a result of the user's call is compared with; holds for any number of results."""

    def __init__(self, problem, *args, transform=None, terms=None, stepwise=False, **kwargs):
        op = problem.op
        self._call = problem, args, kwargs
        self._exact, self._scale = reference(op, *args, **kwargs), magnitude(op, *args, **kwargs)
        self._beyond = self._refused = torch.zeros_like(self._exact, dtype=torch.bool)
        self._bound = self._scale
        if not self._exact.numel():
            return
        self._bound = error_bound(problem, terms, stepwise).at(self._exact, self._scale)
        if transform:
            self._scale, self._bound, self._beyond = winograd_bound(transform, problem, self._exact, *args, **kwargs)
        mode = mode_of(problem)
        if mode.input_spacing:
            self._bound += mode.input_spacing / 2 * magnitude_of_inputs(op, args, kwargs)
        if mode.spread and problem.terms:
            self._bound += lost_by_scaling(problem, *args, **kwargs)
            self._refused = may_refuse(problem, *args).reshape(self._exact.shape)

    def judge(self, computed):
        """The Verdict on a result."""
        (problem, args, kwargs), exact, scale, bound = self._call, self._exact, self._scale, self._bound
        if computed.shape != exact.shape or computed.dtype != problem.out_dtype:
            return Verdict(math.inf, 0.0, False)
        if not exact.numel():
            return Verdict(0.0, 0.0, True)
        computed = computed.detach().double()
        error = (computed - exact).abs()
        if problem.out_dtype.is_floating_point:
            infinite = ~torch.isfinite(computed)
            if getattr(problem, "activation", None):  # it may have made an infinity finite
                infinite = torch.ones_like(infinite)
            if infinite.any():
                error[infinite & _may_overflow(problem, exact, scale, bound, args, kwargs)] = 0.0
            out_of_range = exact.abs() + bound >= torch.finfo(problem.out_dtype).max
            error[out_of_range & torch.isinf(computed) & (computed.sign() == exact.sign())] = 0.0
        error[self._beyond & ~torch.isfinite(computed)] = 0.0
        agree = ((exact.isnan() | self._refused) & computed.isnan()) | (exact == computed)
        error = torch.where(agree, 0.0, error.nan_to_num(nan=math.inf, posinf=math.inf))
        bound = bound.nan_to_num(nan=0.0, posinf=0.0)  # an operand is NaN or infinite there: results must agree
        worst = torch.where(error > 0, error / bound, 0.0).argmax()
        unit = scale.flatten()[worst].item()
        unit = unit if 0 < unit < math.inf else 1.0
        ok = bool((error <= bound).all())
        return Verdict(error.flatten()[worst].item() / unit, bound.flatten()[worst].item() / unit, ok)


def _may_overflow(problem, exact, scale, bound, args, kwargs):
    """Where a partial sum may overflow although no operand is infinite or NaN."""
    products = magnitude_of_products(problem.op, args, {k: v for k, v in kwargs.items() if k != "alpha"})
    largest = torch.finfo(mode_of(problem).sums).max
    if problem.is_gated:
        products = torch.maximum(products[..., 0::2], products[..., 1::2])
    sums = torch.maximum(products, scale) * (1 + mode_of(problem).corrections) + bound  # sums of planes may be that much larger
    return torch.isfinite(exact) & torch.isfinite(scale) & (sums >= largest)
