"""The end of every product: alpha * accumulator + beta * C + bias, an activation, the rounding to the type of the result."""

import triton
import triton.language as tl

from .dot import INTERPRETED, widened


@triton.jit
def blend(acc, c_ptrs, alpha, beta, mask, HAS_C: tl.constexpr):
    """alpha * acc + beta * C in the accumulator's type; C is not even loaded where beta is 0, whatever it holds."""
    acc = alpha * acc
    if HAS_C:
        acc += beta * widened(tl.load(c_ptrs, mask=mask, other=0), acc.dtype)
    return acc


@triton.jit
def scalar(x, dtype: tl.constexpr):
    """A factor as the kernel multiplies with it. Triton passes a float as fp32, so an fp64 one comes as its bits."""
    if dtype == tl.float64:
        return tl.full((), x, tl.int64).to(tl.float64, bitcast=True)
    else:
        return x


@triton.jit
def activated(x, ACTIVATION: tl.constexpr):
    """relu, gelu (with erf) or silu of x, as torch has them; NaN stays NaN."""
    if ACTIVATION == "relu":
        return tl.where(x < 0, 0, x)
    elif ACTIVATION == "gelu":
        return 0.5 * x * (1 + tl.math.erf(x * 0.7071067811865476))
    elif ACTIVATION == "silu":
        return x / (1 + tl.exp(-x))
    else:
        return x


@triton.jit
def rounded(x, dtype: tl.constexpr):
    """x in dtype, rounded to nearest even. The interpreter would truncate to bf16, so there the bits are rounded by hand."""
    if INTERPRETED and dtype == tl.bfloat16:
        bits = x.to(tl.uint32, bitcast=True)
        nearest = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        quiet = (bits >> 16) | 0x7FC0  # NaN: the carry could turn its payload into something else
        return tl.where(x == x, nearest, quiet).to(tl.uint16).to(tl.bfloat16, bitcast=True)
    else:
        return x.to(dtype)
