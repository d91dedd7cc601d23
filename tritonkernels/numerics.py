"""How exact a result must be: one error bound, used by the docstrings, the tests and `perf compare` alike.

An inner product of n products, rounded in any order with unit roundoff u, is off by at most gamma_n * sum |a_i b_i| with
gamma_n = n u / (1 - n u) (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1). With inputs
rounded to unit roundoff v first, each product adds 2v + v^2; alpha, beta and the final sum add four roundings; storing the
result adds w |result|. So, element by element, for result = alpha A B + beta C and S = |alpha| |A||B| + |beta| |C|:

    |computed - exact| <= (gamma_(n + 4) + 2v + v^2) * S + w * |exact| + underflow

The last term is absolute and tiny: what gradual underflow may lose in each operation. A convolution is the same sum over
channels and filter taps, its bias one more term. Where |A||B| or S reaches the largest finite fp32 number a partial sum may
overflow, and the result may be anything that is not finite; NaN and infinities of the operands must stand where float64 has
them.
"""

import math
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Mode:
    """How one way to multiply rounds."""

    inputs: float  # unit roundoff v of the inputs before the product
    accumulate: float  # unit roundoff u of the products and sums
    input_spacing: float = 0.0  # between the smallest inputs that the mode can tell apart


# Tensor cores chop where CUDA cores round to nearest, hence 2^-23 for an fp32 accumulator; int8 into int32 is exact.
MODES = {
    "ieee": Mode(0.0, 2.0**-24),
    "fp64": Mode(0.0, 2.0**-53),
    "tf32": Mode(2.0**-11, 2.0**-23, input_spacing=2.0**-136),
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
    """|computed - exact| <= relative * S + store * |exact| + underflow, elementwise."""

    relative: float
    store: float
    underflow: float

    def at(self, exact, magnitude):
        """The bound of each element, given the exact result and S."""
        return self.relative * magnitude + self.store * exact.abs() + self.underflow


def error_bound(problem, precision=None):
    """The Bound that every design owes on this problem, whatever its order of summation; `precision` names another mode."""
    mode = MODES[precision or problem.precision]
    store, subnormal = STORES[problem.out_dtype]
    if problem.out_dtype == torch.int32:
        return Bound(0.0, 0.0, 0.0)
    roundings = problem.terms + 4
    relative = gamma(roundings, mode.accumulate) + 2 * mode.inputs + mode.inputs**2
    scale = max(1.0, abs(getattr(problem, "alpha", 1.0)), abs(getattr(problem, "beta", 0.0)))
    underflow = roundings * STORES[torch.float32][1] * scale if math.isfinite(scale) else 0.0
    return Bound(relative, store, underflow + subnormal)


def _gemm(a, b, c=None, *, alpha=1.0, beta=0.0):
    product = alpha * torch.matmul(a, b) if alpha else a.new_zeros(a.shape[0], b.shape[1])
    return product + beta * c if beta else product


def _gemv(a, x, y=None, *, alpha=1.0, beta=0.0):
    product = alpha * torch.mv(a, x) if alpha else a.new_zeros(a.shape[0])
    return product + beta * y if beta else product


def _conv2d(input, weight, bias=None, *args, **kwargs):
    if 0 in (input.shape[-3], weight.shape[0]):  # torch refuses, or forgets the bias: pad both with a channel of zeros
        pad = (0, 0, 0, 0, 0, 1)
        padded = torch.nn.functional.pad(input, pad), torch.nn.functional.pad(weight, (*pad, 0, 1))
        out = torch.nn.functional.conv2d(*padded, None, *args, **kwargs).narrow(-3, 0, weight.shape[0])
        return out if bias is None else out + bias[:, None, None]
    return torch.nn.functional.conv2d(input, weight, bias, *args, **kwargs)


_EXACT = {"gemm": _gemm, "gemv": _gemv, "conv2d": _conv2d, "matmul": torch.matmul}


def _evaluate(op, args, kwargs, change):
    """The call in float64, its tensors and its alpha and beta (rounded to fp32, as kernels get them) changed by `change`."""

    def convert(name, value):
        if isinstance(value, torch.Tensor):
            return change(value.detach().double())
        return change(torch.tensor(value, dtype=torch.float32).double()).item() if name in ("alpha", "beta") else value

    kwargs = {k: convert(k, v) for k, v in kwargs.items() if k not in ("precision", "out_dtype", "out", "design", "config")}
    return _EXACT[op](*(convert("", value) for value in args), **kwargs)


def reference(op, *args, **kwargs):
    """The result of the user's call `op(*args, **kwargs)` in float64, by torch."""
    return _evaluate(op, args, kwargs, lambda t: t)


def magnitude(op, *args, **kwargs):
    """S of the bound: the same call over absolute values, in float64."""
    return _evaluate(op, args, kwargs, torch.abs)


@dataclass(frozen=True)
class Verdict:
    """The element that comes closest to its bound (or breaks it by most); error and bound are relative to S there."""

    error: float
    bound: float
    ok: bool


def judge(problem, computed, *args, **kwargs):
    """Compare the result of the user's call with float64, elementwise, within error_bound(problem)."""
    op = problem.op
    exact, scale = reference(op, *args, **kwargs), magnitude(op, *args, **kwargs)
    if computed.shape != exact.shape or computed.dtype != problem.out_dtype:
        return Verdict(math.inf, 0.0, False)
    if not exact.numel():
        return Verdict(0.0, 0.0, True)
    bound = error_bound(problem).at(exact, scale)
    if spacing := MODES[problem.precision].input_spacing:
        bound += spacing / 2 * _sums_of_inputs(op, args, kwargs)
    computed = computed.detach().double()
    error = (computed - exact).abs()
    if problem.out_dtype.is_floating_point:
        infinite = ~torch.isfinite(computed)
        if infinite.any():
            error[infinite & _may_overflow(problem, exact, scale, bound, args, kwargs)] = 0.0
        out_of_range = exact.abs() + bound >= torch.finfo(problem.out_dtype).max
        error[out_of_range & torch.isinf(computed) & (computed.sign() == exact.sign())] = 0.0
    agree = (exact.isnan() & computed.isnan()) | (exact == computed)
    error = torch.where(agree, 0.0, error.nan_to_num(nan=math.inf, posinf=math.inf))
    bound = bound.nan_to_num(nan=0.0, posinf=0.0)  # an operand is NaN or infinite there: only agreement is right
    worst = torch.where(error > 0, error / bound, 0.0).argmax()
    unit = scale.flatten()[worst].item()
    unit = unit if 0 < unit < math.inf else 1.0
    ok = bool((error <= bound).all())
    return Verdict(error.flatten()[worst].item() / unit, bound.flatten()[worst].item() / unit, ok)


def _may_overflow(problem, exact, scale, bound, args, kwargs):
    """Where a partial sum may pass the largest fp32 number although no operand is infinite or NaN."""
    products = magnitude(problem.op, *args, **{k: v for k, v in kwargs.items() if k not in ("alpha", "beta")})
    largest = torch.finfo(torch.float64 if problem.out_dtype == torch.float64 else torch.float32).max
    return torch.isfinite(exact) & torch.isfinite(scale) & (torch.maximum(products, scale) + bound >= largest)


def _sums_of_inputs(op, args, kwargs):
    """sum |a_i| + |b_i| over each element's products: what an absolute error of the inputs is multiplied with."""
    left, right = args[:2]
    ones = [torch.ones_like(left, dtype=torch.float64), torch.ones_like(right, dtype=torch.float64)]
    return magnitude(op, left, ones[1], **kwargs) + magnitude(op, ones[0], right, **kwargs)
