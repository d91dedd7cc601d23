"""How exact a result must be: one error bound, used by the docstrings, the tests and `perf compare` alike.

An inner product of `terms` products, rounded in any order with unit roundoff u, is off by at most gamma * sum |a_i b_i| with
gamma = terms * u / (1 - terms * u) (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1). With
inputs rounded to unit roundoff v first, each product adds 2v + v^2; alpha, beta and the final sum add four roundings; storing
the result adds w |result|. So, element by element, for result = alpha * A B + beta * C and S = |alpha| |A||B| + |beta| |C|:

    |computed - exact| <= (gamma(terms + 4, u) + 2v + v^2) * S + w * |exact| + underflow

A convolution is the same sum over channels and filter taps, its bias one more term.
"""

import math
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Mode:
    """Unit roundoffs of one way to multiply: of the inputs before the product, and of the accumulation."""

    inputs: float
    accumulate: float


# Tensor cores chop where CUDA cores round to nearest, hence 2^-23 for an fp32 accumulator; int8 into int32 is exact.
MODES = {
    "ieee": Mode(0.0, 2.0**-24),
    "fp64": Mode(0.0, 2.0**-53),
    "tf32": Mode(2.0**-11, 2.0**-23),
    "fp16": Mode(0.0, 2.0**-23),
    "bf16": Mode(0.0, 2.0**-23),
    "int8": Mode(0.0, 0.0),
}

# (unit roundoff of storing, smallest subnormal) per result dtype
STORES = {
    torch.float16: (2.0**-11, 2.0**-24),
    torch.bfloat16: (2.0**-8, 2.0**-133),
    torch.float32: (2.0**-24, 2.0**-149),
    torch.float64: (2.0**-53, 2.0**-1074),
    torch.int32: (0.0, 0.0),
}


def gamma(n, u):
    """Higham's gamma_n; infinite where n roundings may lose everything."""
    return n * u / (1 - n * u) if n * u < 1 else math.inf


@dataclass(frozen=True)
class Bound:
    """|computed - exact| <= relative * S + store * |exact| + underflow, elementwise; S is the product of absolute values."""

    relative: float
    store: float
    underflow: float

    def at(self, exact, magnitude):
        return self.relative * magnitude + self.store * exact.abs() + self.underflow


def error_bound(problem):
    """The Bound that every design owes on this problem, whatever its order of summation."""
    mode = MODES[problem.precision]
    store, subnormal = STORES[problem.out_dtype]
    if problem.out_dtype == torch.int32:
        return Bound(0.0, 0.0, 0.0)
    roundings = problem.terms + 4
    relative = gamma(roundings, mode.accumulate) + 2 * mode.inputs + mode.inputs**2
    return Bound(relative, store, roundings * 2.0**-149 + subnormal)


def _gemm(a, b, c=None, *, alpha=1.0, beta=0.0):
    product = alpha * torch.matmul(a, b)
    return product + beta * c if beta else product


def _gemv(a, x, y=None, *, alpha=1.0, beta=0.0):
    product = alpha * torch.mv(a, x)
    return product + beta * y if beta else product


_EXACT = {"gemm": _gemm, "gemv": _gemv, "conv2d": torch.nn.functional.conv2d, "matmul": torch.matmul}


def _evaluate(op, args, kwargs, change_tensor, change_number):
    kwargs = {k: v for k, v in kwargs.items() if k not in ("precision", "out_dtype", "out", "design", "config")}
    args = [change_tensor(v.detach().double()) if isinstance(v, torch.Tensor) else v for v in args]
    for key, value in kwargs.items():
        if isinstance(value, torch.Tensor):
            kwargs[key] = change_tensor(value.detach().double())
        elif key in ("alpha", "beta"):
            kwargs[key] = change_number(value)
    return _EXACT[op](*args, **kwargs)


def reference(op, *args, **kwargs):
    """The result of the user's call `op(*args, **kwargs)` in float64, by torch."""
    return _evaluate(op, args, kwargs, lambda t: t, float)


def magnitude(op, *args, **kwargs):
    """S of the bound: the same call over absolute values, in float64."""
    return _evaluate(op, args, kwargs, torch.abs, abs)


@dataclass(frozen=True)
class Verdict:
    """The element that comes closest to its bound (or breaks it by most); error and bound are relative to S there."""

    error: float
    bound: float
    ok: bool


def judge(problem, computed, *args, **kwargs):
    """Compare a result of `problem` with float64, elementwise within error_bound. NaN and Inf must stand where they belong."""
    exact = reference(problem.op, *args, **kwargs)
    scale = magnitude(problem.op, *args, **kwargs)
    if computed.shape != exact.shape or computed.dtype != problem.out_dtype:
        return Verdict(math.inf, 0.0, False)
    if not exact.numel():
        return Verdict(0.0, 0.0, True)
    bound = error_bound(problem).at(exact, scale)
    computed = computed.detach().double()
    error = (computed - exact).abs()
    if problem.out_dtype.is_floating_point:  # a value that may round past the largest finite one may come back infinite
        overflows = exact.abs() + bound >= torch.finfo(problem.out_dtype).max
        error[overflows & torch.isinf(computed) & (computed.sign() == exact.sign())] = 0.0
    agree = (exact.isnan() & computed.isnan()) | (exact == computed)
    error = torch.where(agree, 0.0, error.nan_to_num(nan=math.inf, posinf=math.inf))
    bound = bound.nan_to_num(nan=0.0, posinf=0.0)  # an operand is NaN or infinite there: only agreement is right
    ok = bool((error <= bound).all())
    worst = torch.where(error > 0, error / bound, 0.0).argmax()
    unit = scale.flatten()[worst].item()
    unit = unit if 0 < unit < math.inf else 1.0
    return Verdict(error.flatten()[worst].item() / unit, bound.flatten()[worst].item() / unit, ok)
