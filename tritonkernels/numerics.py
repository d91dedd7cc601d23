"""How exact a result must be: one error bound, used by the docstrings, the tests and `perf compare` alike.

An inner product of n products, rounded in any order with unit roundoff u, is off by at most gamma_n * sum |a_i b_i| with
gamma_n = n u / (1 - n u) (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1). With inputs
rounded to unit roundoff v first, each product adds 2v + v^2; alpha, beta and the final sum add four roundings; storing the
result adds w |result|. So, element by element, for result = alpha A B + beta C and S = |alpha| |A||B| + |beta| |C|:

    |computed - exact| <= (gamma_(n + 4) + 2v + v^2) * S + w * |exact| + underflow

The last term is absolute and tiny: what gradual underflow may lose in each operation. A convolution is the same sum over
channels and filter taps, its bias one more term; so is a matmul's. The gradients of a convolution are such sums too: over
output channels and the taps that reach an input, over all positions of the output, and (for the bias, without products) over
those. Where |A||B| or S reaches the largest finite number of the sums' type a partial sum may overflow, and the result may be
anything that is not finite; NaN and infinities of the operands must stand where float64 has them.

Some tensor-core sums are coarser than fp32, by a linear term min(n, t) u' beside the above, u' the coarse unit and t the
products that it may run over:

- fp16 accumulators: products are exact and an instruction adds them up in more than fp16's bits, then rounds its sum to nearest
  fp16 (M. Fasi et al., Numerical behavior of NVIDIA tensor cores, 2021). At worst every addition is rounded so, u' = 2^-11, and
  sums rounded to nearest are off by at most n u' however long (Jeannerod and Rump, Improved error bounds for inner products,
  2013). fp16 ends at 65504, and so do partial sums.
- fp8 on Hopper: an instruction aligns its 32 products and the accumulator to the largest of them and keeps about 14 bits
  (DeepSeek-V3 technical report, 2024, section 3.3.2), so it chops less than 2^-13 of S off each addend. Our designs add such
  sums to fp32 ones after FP8_SLICE products, so the loss is that of FP8_SLICE / 32 instructions of 33 addends, for any K.

FP32 products on tensor cores split each operand into planes, x = high + low (+ lowest), and drop the smallest products of
planes. Their error beside the roundings above:

- inputs: two planes of 11 bits hold x to v = 2^-23, three of 8 hold it exactly; where low planes run into the end of their
  type's range, below 2^-112 or so, an absolute `input_spacing` is added.
- dropped products: low * low, at most 2^-11 2^-11 = 2^-22 of the product (fp16x3, tf32x3); in bf16x6 middle * lowest, twice,
  and lowest * lowest, 2 * 2^-8 2^-17 + 2^-34 < 2^-23; in bf16x9 nothing.
- the sum of high * high: tensor cores chop, so after SLICE products at most, and half as many at least, it is added to an fp32
  one, rounded to nearest (H. Ootomo and R. Yokota, Recovering single precision accuracy from Tensor Cores while surpassing the
  FP32 theoretical peak performance, 2022): gamma_SLICE(2^-23) + gamma_(2 n / SLICE + 5)(2^-24), at n = 4096 a 15th of
  gamma_n(2^-24), the bound of SGEMM.
- the sum of the others, all along: q n products that are w S together, so w gamma_(q n)(2^-23), where w is 2 * 2^-11 for planes
  of 11 bits; for bf16 2 * 2^-8 + 2^-16 + 2 * 2^-17 + ... < 2^-7 + 2^-13.
- fp16x3 scales each row of A and column of B by the power of two that brings its largest element to [2^14, 2^15). High planes
  are multiples of 2^-24 there and low ones of 2^-35, so an element is off by at most 2^-50 of its row's largest (its column's,
  in B), and a low plane is at most 2^-38 of that beside 2^-11 of its element. With lmax(A) the largest of the row, in each of
  its columns, this adds 2^-48 (lmax(A) |B| + |A| lmax(B)) for n <= 2^26. An element begins to lose bits of its 24 where it is
  below 2^-27 of the largest. The other modes keep 1e-30 beside 1e30.

fp16x3 refuses an element of the result, which is NaN then, rather than let such losses spoil it. Let lmin(A) be the smallest
|element| of the row, p(A) the power of two above lmax(A) and m(A) the number of elements that are below 2^-39 p(A) and not 0;
the same of columns of B. Each of those m loses at most 2^-51 p(A), all others at most 2^-12 of themselves. Then

    m(A) + m(B) > max(2^39 |A B| / (p(A) p(B)), 2^38 lmin(A) / lmax(A), 2^38 lmin(B) / lmax(B))    is refused:

what may be lost, (m(A) + m(B)) 2^-51 p(A) p(B), is then more than REFUSED = 2^-12 of |A B|, and more than that of lmax(A)
lmin(B) and of lmin(A) lmax(B), all of which are below |A||B|. So what is not refused is off, beside the roundings, by
3 * 2^-12 |A||B| at most (2^-12 for the other elements of A, of B, and REFUSED) or the above 2^-48 (lmax(A) |B| + |A| lmax(B)),
whichever is less; 2^-10 has room for an activation, and is what tf32 is off by everywhere. A small element has high and low
planes of opposite sign, much larger than itself: rounding does to those at most gamma_(2n)(2^-23) 2^-39 p(A), n 2^-10 of what
it loses, so n 2^-22 |A||B| in all. To be refused takes a row or column that spans more than 2^38, and a result that is below
m 2^-39 p(A) p(B), with a 0 or nearly so in the other operand: rows of a softmax times random numbers are far from it.

A convolution through Winograd's transforms (cook_toom.py) adds up what is larger than S and cancels. With U = |G| |g| |G^T| of
each filter g and V = |B^T| |d| |B| of each tile of inputs d, what stands for S is

    S' = |A^T| (sum over c of U * V) |A| + |bias|

Each of its terms passes through the roundings of the n = C / groups products' sum, of the bias and of two lines of each
transform, 10 together for F(2 x 2, 3 x 3) and 26 for F(4 x 4, 3 x 3). That is Higham's counting once more, element by element;
B. Barabasz et al. do it for norms (Error analysis and improving the accuracy of Winograd convolution for deep neural networks,
2020):

    |computed - exact| <= gamma_(n + 1 + 10 or 26) * S' + w * |exact| + underflow

S' is about 7 S and 40 S. What underflow takes in a transform is multiplied by what its other factor comes to. Of a NaN or an
infinity of an operand a tile gets what is not finite wherever a product with it goes, whatever float64 has there; finite
results must be right.

An activation f follows: |f(x) - f(y)| <= L |x - y| with L = 1 for relu, 1.13 for gelu, 1.1 for silu (the largest slopes are 1,
1.129, 1.0998), and evaluating it costs a few roundings of its argument, which S bounds: 2^-20 S in fp32, 2^-48 S in fp64.
"""

import dataclasses
import math
from dataclasses import dataclass

import torch

from .cook_toom import TINY
from .problem import PACKED
from .validate import beta_of

FP8_SLICE = 128  # fp8 products that a design may add up before it adds their sum to an fp32 one
SLICE = 64  # the same of products of planes; and at least half of it
REFUSED = 2.0**-12  # of a product: where fp16x3 may have lost more of one, it is NaN


@dataclass(frozen=True)
class Mode:
    """How one way to multiply rounds."""

    inputs: float  # unit roundoff v of the inputs before the product
    accumulate: float  # unit roundoff u of the products and sums
    input_spacing: float = 0.0  # between the smallest inputs that the mode can tell apart
    coarse: float = 0.0  # unit u' of sums that are coarser than that
    coarse_terms: float = math.inf  # the most products t that such a sum runs over
    sums: torch.dtype = torch.float32  # in which partial sums overflow and underflow
    products: int = 1  # of planes for one product; all but the first are corrections
    corrections: float = 0.0  # what these are at most, as a share w of the product
    dropped: float = 0.0  # products of planes that are left out, as a share of the product
    spread: float = 0.0  # absolute error of an input, as a share of the largest of its row (column)


# Tensor cores chop where CUDA cores round to nearest, hence 2^-23 for an fp32 accumulator; integers into int32 are exact.
MODES = {
    "ieee": Mode(0.0, 2.0**-24),
    "fp64": Mode(0.0, 2.0**-53, sums=torch.float64),
    "tf32": Mode(2.0**-11, 2.0**-23, input_spacing=2.0**-136),
    "tf32x3": Mode(2.0**-23, 2.0**-23, 2.0**-135, products=3, corrections=2.0**-10, dropped=2.0**-22),
    "fp16x3": Mode(2.0**-23, 2.0**-23, products=3, corrections=2.0**-10, dropped=2.0**-22, spread=2.0**-48),
    "bf16x6": Mode(0.0, 2.0**-23, 2.0**-132, products=6, corrections=2.0**-7 + 2.0**-13, dropped=2.0**-23),
    "bf16x9": Mode(0.0, 2.0**-23, 2.0**-132, products=9, corrections=2.0**-7 + 2.0**-13),
    "fp16": Mode(0.0, 2.0**-23),
    "fp16 into fp16": Mode(0.0, 2.0**-23, coarse=2.0**-11, sums=torch.float16),
    "bf16": Mode(0.0, 2.0**-23),
    "fp8": Mode(0.0, 2.0**-23, coarse=2.0**-13, coarse_terms=FP8_SLICE / 32 * 33),
    "int8": Mode(0.0, 0.0),
    "uint8": Mode(0.0, 0.0),
    "int4": Mode(0.0, 0.0),
    "uint4": Mode(0.0, 0.0),
    "b1_xor": Mode(0.0, 0.0),
    "b1_and": Mode(0.0, 0.0),
}

# activation -> (its function, its largest slope)
ACTIVATIONS = {
    "relu": (torch.relu, 1.0),
    "gelu": (torch.nn.functional.gelu, 1.13),
    "silu": (torch.nn.functional.silu, 1.1),
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


def mode_of(problem, precision=None):
    """The Mode that a problem is computed in; `precision` names another one than its own."""
    name = precision or problem.precision
    return MODES["fp16 into fp16" if name == "fp16" and getattr(problem, "accumulate", "") == "fp16" else name]


def error_bound(problem, precision=None):
    """The Bound that every design owes on this problem, whatever its order of summation; `precision` names another mode."""
    mode = mode_of(problem, precision)
    store, subnormal = STORES[problem.out_dtype]
    if problem.out_dtype == torch.int32:
        return Bound(0.0, 0.0, 0.0)
    roundings = problem.terms + 4
    relative = _summation(problem.terms, mode) + 2 * mode.inputs + mode.inputs**2 + mode.dropped
    relative += min(roundings, mode.coarse_terms) * mode.coarse
    scale = max(1.0, abs(getattr(problem, "alpha", 1.0)), abs(getattr(problem, "beta", 0.0)))
    underflow = mode.products * roundings * STORES[mode.sums][1] * scale if math.isfinite(scale) else 0.0
    if activation := getattr(problem, "activation", None):
        slope = ACTIVATIONS[activation][1]
        evaluation = 2.0**-48 if mode.sums == torch.float64 else 2.0**-20
        relative, underflow = slope * relative + evaluation, slope * underflow
    return Bound(relative, store, underflow + subnormal)


def _summation(n, mode):
    """What adding up n products, and the four roundings after it, adds to the error, relative to S."""
    if mode.products == 1:
        return gamma(n + 4, mode.accumulate)
    inside, outside = gamma(min(n, SLICE), mode.accumulate), gamma(math.ceil(2 * n / SLICE) + 5, 2.0**-24)
    return inside + outside + inside * outside + mode.corrections * gamma((mode.products - 1) * n, mode.accumulate)


def _gemm(a, b, c=None, *, alpha=1.0, beta=None):
    beta = beta_of(beta, c)
    product = alpha * torch.matmul(a, b) if alpha else a.new_zeros(a.shape[0], b.shape[1])
    return product + beta * c if beta else product


def _gemv(a, x, y=None, *, alpha=1.0, beta=None, scale=None):
    beta = beta_of(beta, y)
    product = torch.matmul(a if scale is None else a * scale[:, None], x.unsqueeze(-1)).squeeze(-1)
    product = alpha * product if alpha else torch.zeros_like(product)
    return product + beta * y if beta else product


def _conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Padded by hand: the zeros are multiplied then, so infinity times padding is NaN on every device, whatever cuDNN skips."""
    pads = []  # from the last dimension to the first, as torch.nn.functional.pad wants them
    for dim in (-1, -2):
        if padding == "same":
            total = (dilation if isinstance(dilation, int) else dilation[dim % len(dilation)]) * (weight.shape[dim] - 1)
            pads += [total // 2, total - total // 2]
        else:
            before = 0 if padding == "valid" else padding if isinstance(padding, int) else padding[dim % len(padding)]
            pads += [before, before]
    more = 0 in (input.shape[-3], weight.shape[0])  # torch refuses no channels: then both get some of zeros
    input = torch.nn.functional.pad(input, (*pads, 0, more * groups))
    filters = torch.nn.functional.pad(weight, (0, 0, 0, 0, 0, more, 0, more * groups))
    out = torch.nn.functional.conv2d(input, filters, None, stride, 0, dilation, groups).narrow(-3, 0, weight.shape[0])
    return out if bias is None else out + bias[:, None, None]


def _matmul(a, b, *, precision=None, alpha=1.0, beta=None, c=None, bias=None, activation=None):
    beta = beta_of(beta, c)
    product = torch.matmul(a, b)
    if precision == "b1_xor":  # x xor y = x + y - 2 x y
        product = torch.matmul(a, torch.ones_like(b)) + torch.matmul(torch.ones_like(a), b) - 2 * product
    out = alpha * product if alpha else torch.zeros_like(product)
    out = out + beta * c if beta else out
    out = out if bias is None else out + bias
    return ACTIVATIONS[activation][0](out) if activation else out


def unpacked(t, precision, dim):
    """The elements, float64, that the bytes of t hold along `dim` (negative); PACKED says how many a byte."""
    bits = 8 // PACKED[precision]
    shifts = torch.arange(0, 8, bits, device=t.device).reshape(-1, *[1] * (-dim - 1))
    values = (t.long().unsqueeze(dim) >> shifts) % 2**bits
    if precision == "int4":
        values = (values ^ 8) - 8  # two's complement
    return values.flatten(dim - 1, dim).double()


def _gradient(grad_output, wanted, forward):
    """The gradient of forward(wanted), which is linear in `wanted`, whatever that holds."""
    with torch.enable_grad():
        return torch.autograd.grad(forward(wanted.requires_grad_()), wanted, grad_output)[0]


def _conv2d_input(input_size, weight, grad_output, *args, **kwargs):
    return _gradient(grad_output, weight.new_zeros(input_size), lambda input: _conv2d(input, weight, None, *args, **kwargs))


def _conv2d_weight(input, weight_size, grad_output, *args, **kwargs):
    return _gradient(grad_output, input.new_zeros(weight_size), lambda weight: _conv2d(input, weight, None, *args, **kwargs))


def _conv2d_bias(grad_output):
    return grad_output.movedim(-3, 0).flatten(1).sum(1)


_EXACT = {
    "gemm": _gemm,
    "gemv": _gemv,
    "conv2d": _conv2d,
    "conv2d_input": _conv2d_input,
    "conv2d_weight": _conv2d_weight,
    "conv2d_bias": _conv2d_bias,
    "matmul": _matmul,
}


def _evaluate(op, args, kwargs, change):
    """The call in float64, its tensors and its alpha and beta (rounded to fp32, as kernels get them) changed by `change`.

    A product of float64 has its alpha and beta in float64 too.
    """
    scalars = torch.float64 if any(getattr(value, "dtype", None) == torch.float64 for value in args) else torch.float32
    if kwargs.get("precision") in PACKED:
        a, b = args
        args = unpacked(a, kwargs["precision"], -1), unpacked(b, kwargs["precision"], -min(2, b.ndim))

    def convert(name, value):
        if isinstance(value, torch.Tensor):
            return change(value.detach().double())
        scalar = name in ("alpha", "beta") and value is not None
        return change(torch.tensor(value, dtype=scalars).double()).item() if scalar else value

    ignored = ("out_dtype", "accumulate", "out", "design", "config", *(() if op == "matmul" else ("precision",)))
    kwargs = {k: convert(k, v) for k, v in kwargs.items() if k not in ignored}
    return _EXACT[op](*(convert("", value) for value in args), **kwargs)


def reference(op, *args, **kwargs):
    """The result of the user's call `op(*args, **kwargs)` in float64, by torch."""
    return _evaluate(op, args, kwargs, lambda t: t)


def magnitude(op, *args, **kwargs):
    """S of the bound: the same call over absolute values and without its activation, in float64."""
    return _evaluate(op, args, {k: v for k, v in kwargs.items() if k != "activation"}, torch.abs)


@dataclass(frozen=True)
class Verdict:
    """The element that comes closest to its bound (or breaks it by most); error and bound are relative to S there."""

    error: float
    bound: float
    ok: bool


def judge(problem, computed, *args, transform=None, **kwargs):
    """Compare the result of the user's call with float64, elementwise, within error_bound(problem) or what a transform owes."""
    op = problem.op
    exact, scale = reference(op, *args, **kwargs), magnitude(op, *args, **kwargs)
    if computed.shape != exact.shape or computed.dtype != problem.out_dtype:
        return Verdict(math.inf, 0.0, False)
    if not exact.numel():
        return Verdict(0.0, 0.0, True)
    bound, beyond = error_bound(problem).at(exact, scale), None
    if transform:
        through = _through_of_gradient if op == "conv2d_input" else _through
        scale, bound, beyond = through(transform, problem, exact, *args, **kwargs)
    mode = mode_of(problem)
    if mode.input_spacing:
        bound += mode.input_spacing / 2 * _sums_of_inputs(op, args, kwargs)
    refused = torch.zeros_like(exact, dtype=torch.bool)
    if mode.spread and problem.terms:
        products = magnitude(op, *args, alpha=kwargs.get("alpha", 1.0))
        spread = mode.spread * _sums_of_inputs(op, args, kwargs, _largest(*args))
        refused = _may_refuse(problem, *args).reshape(exact.shape)
        bound += torch.minimum(spread, (4 * REFUSED + problem.terms * 2.0**-22) * products)
    computed = computed.detach().double()
    error = (computed - exact).abs()
    if problem.out_dtype.is_floating_point:
        infinite = ~torch.isfinite(computed)
        if getattr(problem, "activation", None):  # which may have made an infinity finite
            infinite = torch.ones_like(infinite)
        if infinite.any():
            error[infinite & _may_overflow(problem, exact, scale, bound, args, kwargs)] = 0.0
        out_of_range = exact.abs() + bound >= torch.finfo(problem.out_dtype).max
        error[out_of_range & torch.isinf(computed) & (computed.sign() == exact.sign())] = 0.0
    if transform:
        error[beyond & ~torch.isfinite(computed)] = 0.0
    agree = ((exact.isnan() | refused) & computed.isnan()) | (exact == computed)
    error = torch.where(agree, 0.0, error.nan_to_num(nan=math.inf, posinf=math.inf))
    bound = bound.nan_to_num(nan=0.0, posinf=0.0)  # an operand is NaN or infinite there: only agreement is right
    worst = torch.where(error > 0, error / bound, 0.0).argmax()
    unit = scale.flatten()[worst].item()
    unit = unit if 0 < unit < math.inf else 1.0
    ok = bool((error <= bound).all())
    return Verdict(error.flatten()[worst].item() / unit, bound.flatten()[worst].item() / unit, ok)


def _through(transform, problem, exact, input, weight, bias=None, *args, **kwargs):
    """(S', the bound, where an operand or its transform is not finite) of a convolution through Winograd's transforms."""
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


def _through_of_gradient(transform, problem, exact, input_size, weight, grad_output, *args, **kwargs):
    """The same of conv2d_input, which is a convolution of grad_output then: of stride 1, with the flipped filter."""
    filters = weight.unflatten(0, (problem.groups, problem.k // problem.groups)).transpose(1, 2).flatten(0, 1).flip(-2, -1)
    margins = tuple(taps - 1 - margin for taps, margin in zip((problem.r, problem.s), problem.padding))
    sizes = {"c": problem.k, "k": problem.c, "h": problem.p, "w": problem.q, "p": problem.h, "q": problem.w}
    return _through(transform, dataclasses.replace(problem, **sizes, padding=margins), exact, grad_output, filters)


def _may_overflow(problem, exact, scale, bound, args, kwargs):
    """Where a partial sum may pass the largest number of its type although no operand is infinite or NaN."""
    products = _products(problem.op, args, {k: v for k, v in kwargs.items() if k != "alpha"})
    largest = torch.finfo(mode_of(problem).sums).max
    sums = torch.maximum(products, scale) * (1 + mode_of(problem).corrections) + bound  # planes alone may be that much larger
    return torch.isfinite(exact) & torch.isfinite(scale) & (sums >= largest)


def _may_refuse(problem, a, b):
    """Where fp16x3 refuses by its rule, or would if the product were off by its bound."""
    a, b = (a if a.ndim > 1 else a[None, :]).double(), (b if b.ndim > 1 else b[:, None]).double()

    def of_lines(t, dim):
        """The smallest power of two above, m, and the ratio of the smallest element to the largest."""
        largest, smallest = torch.where(t.isfinite(), t.abs(), 0).amax(dim, True), t.abs().amin(dim, True)
        exponent = largest.clamp(min=2.0**-126).view(torch.int64) >> 52  # torch.ldexp fails on a GPU that is not current
        above = (exponent + 1 << 52).view(torch.float64)
        raised = ((t != 0) & (t.abs() < 2.0**-39 * above)).sum(dim, True)
        return above, raised, torch.where(largest > 0, smallest / largest, 1.0)

    (above, raised, ratio), (above_b, raised_b, ratio_b) = of_lines(a, -1), of_lines(b, -2)
    off = error_bound(problem).relative * torch.matmul(a.abs(), b.abs())
    product = torch.matmul(a, b)
    needed = torch.maximum(
        2.0**39 * (product.abs() - off) / (above * above_b), 2.0**38 * (1 - 2.0**-20) * torch.maximum(ratio, ratio_b)
    )
    return product.isfinite() & (raised + raised_b > needed)


def _products(op, args, kwargs, *replaced):
    """sum |a_i| |b_i| over each element's products: nothing is added to them, and pairs (position, tensor) replace factors."""
    args, added = list(args), _tensors_among(args)[2:]
    for i, value in (*((i, None) for i in added), *replaced):
        args[i] = value
    return magnitude(op, *args, **{k: v for k, v in kwargs.items() if k not in ("bias", "beta", "c", "y")})


def _tensors_among(args):
    """Their positions: those of the two factors, then of what is added to the products."""
    return [i for i, value in enumerate(args) if isinstance(value, torch.Tensor)]


def _sums_of_inputs(op, args, kwargs, units=None):
    """sum |a_i| e(b_i) + e(a_i) |b_i| over each element's products: what an input's error in `units` e (default: 1) adds."""
    left, right, *_ = _tensors_among(args)
    e_left, e_right = units or (torch.ones_like(args[i], dtype=torch.float64) for i in (left, right))
    return _products(op, args, kwargs, (right, e_right)) + _products(op, args, kwargs, (left, e_left))


def _largest(a, b):
    """The largest |element| of each row of A and of each column of B, in all the places of that row or column."""
    dim_of_k = -min(2, b.ndim)
    return a.abs().amax(-1, keepdim=True).expand_as(a), b.abs().amax(dim_of_k, keepdim=True).expand_as(b)
