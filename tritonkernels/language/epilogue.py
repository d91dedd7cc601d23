"""The rounding to the type of the result."""

from .dot import INTERPRETED
from .triton import tl, triton


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
