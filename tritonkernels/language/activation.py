"""The activations of an epilogue, as torch has them; NaN stays NaN.

Results of 16 bits need no erf that is exact to 24: there (QUICK) a GELU takes 10 instructions on an NVIDIA GPU, and a SiLU 5,
by approximate powers and reciprocals. docs/numerics.md derives their errors.
"""

from .dot import INTERPRETED
from .triton import tl, triton


@triton.jit
def activated(x, ACTIVATION: tl.constexpr, QUICK: tl.constexpr):
    """relu, gelu (with erf) or silu of x. QUICK: of fp32 that will be rounded to 16 bits."""
    if ACTIVATION == "relu":
        return tl.where(x < 0, 0, x)
    elif ACTIVATION == "gelu":
        return _quick_gelu(x) if QUICK else 0.5 * x * (1 + tl.math.erf(x * 0.7071067811865476))
    elif ACTIVATION == "silu":
        return _quick_silu(x) if QUICK else x / (1 + tl.exp(-x))
    else:
        return x


@triton.jit
def _quick_gelu(x):
    """x Phi(x) = max(x, 0) - |x| erfc(|x| / sqrt(2)) / 2. With half = x / 2 that erfc is 2^p, p a polynomial of |half|, fitted
    to its logarithm. From |half| = 8 on 2^p is 0. The maximum is half + |half|: NaN where torch's GELU is, at -inf."""
    half = 0.5 * x
    size = tl.minimum(tl.abs(half), 8.0)
    p = -0.016654357
    p = p * size + 0.11835943
    p = p * size - 0.42048934
    p = p * size - 1.8370188
    p = p * size - 2.3021827
    return (half + tl.abs(half)) - size * _approximate_exp2(p * size)


@triton.jit
def _quick_silu(x):
    return x * _approximate_reciprocal(1 + _approximate_exp2(x * -1.442695040888963))


@triton.jit
def _approximate_exp2(x):
    """2^x, at most 2 ulp from the correctly rounded power; subnormal numbers are zeros."""
    if not INTERPRETED and tl.target_info.is_cuda():
        return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)
    else:
        return tl.exp2(x)


@triton.jit
def _approximate_reciprocal(x):
    """1 / x within 1 ulp; subnormal numbers are zeros."""
    if not INTERPRETED and tl.target_info.is_cuda():
        return tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)
    else:
        return 1 / x
