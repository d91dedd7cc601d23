"""How each mode of multiplication and each stored type rounds. docs/numerics.md derives the numbers."""

import math
from dataclasses import dataclass

import torch

from ..problem import GATED

FP8_SLICE = 128  # most fp8 products that a design adds up before it adds their sum to an fp32 total
SLICE = 64  # the same for products of planes, of which it adds up at least half as many
REFUSED = 2.0**-12  # of a product: fp16x3 returns NaN where it may have lost 1.5 times that
AGAIN = 2.0**-18  # the same of "fp32", which computes it again
RAISED = 2.0**12  # times that is how large planes may be that cancel: corrections, too


@dataclass(frozen=True)
class Mode:
    """How a mode of multiplication rounds."""

    inputs: float  # unit roundoff v of the inputs before the product
    accumulate: float  # unit roundoff u of the products and sums
    input_spacing: float = 0.0  # between the smallest inputs that the mode can represent
    coarse: float = 0.0  # unit u' of sums that are coarser than that
    coarse_terms: float = math.inf  # the most addends t of such a sum
    depth: float = math.inf  # products of an instruction; the sum before them is one more addend, of coarse sums
    sums: torch.dtype = torch.float32  # in which partial sums overflow and underflow
    products: int = 1  # of planes per product; all but the first are corrections
    corrections: float = 0.0  # their largest size, as a share w of the product
    dropped: float = 0.0  # products of planes that are left out, as a share d of the product
    spread: float = 0.0  # absolute error of an input, as a share of the largest of its row (column)


# Tensor cores truncate fp32 sums, hence 2^-23; CUDA cores round to nearest. Integers into int32 are exact.
MODES = {
    "ieee": Mode(0.0, 2.0**-24),
    "fp64": Mode(0.0, 2.0**-53, sums=torch.float64),
    "tf32": Mode(2.0**-11, 2.0**-23, input_spacing=2.0**-136),
    "tf32x3": Mode(2.0**-23, 2.0**-23, 2.0**-135, products=3, corrections=2.0**-10, dropped=2.0**-22),
    "fp16x3": Mode(2.0**-23, 2.0**-23, products=3, corrections=2.0**-10, dropped=2.0**-22, spread=2.0**-48),
    "fp32": Mode(2.0**-23, 2.0**-23, products=3, corrections=2.0**-10 + RAISED * AGAIN, dropped=2.0**-22 + 1.5 * AGAIN),
    "bf16x6": Mode(0.0, 2.0**-23, 2.0**-132, products=6, corrections=2.0**-7 + 2.0**-13, dropped=2.0**-23),
    "bf16x9": Mode(0.0, 2.0**-23, 2.0**-132, products=9, corrections=2.0**-7 + 2.0**-13),
    "fp16": Mode(0.0, 2.0**-23),
    "fp16 into fp16": Mode(0.0, 2.0**-23, coarse=2.0**-11, sums=torch.float16),
    "bf16": Mode(0.0, 2.0**-23),
    "fp8": Mode(0.0, 2.0**-23, coarse=2.0**-13, coarse_terms=FP8_SLICE / 32 * 33, depth=32),
    "fp8 fast": Mode(0.0, 2.0**-23, coarse=2.0**-13, depth=32),
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


def activated(x, activation):
    """What follows a product's sums, by torch: one of ACTIVATIONS or GATED, or None."""
    if activation in GATED:
        return ACTIVATIONS[GATED[activation]][0](x[..., 0::2]) * x[..., 1::2]
    return ACTIVATIONS[activation][0](x) if activation else x


# (unit roundoff of storing, smallest subnormal) per result dtype
STORES = {
    torch.float16: (2.0**-11, 2.0**-24),
    torch.bfloat16: (2.0**-8, 2.0**-133),
    torch.float32: (2.0**-24, 2.0**-149),
    torch.float64: (2.0**-53, 2.0**-1074),
    torch.int32: (0.0, 0.0),
}


# (precision, type of the sums) -> mode, of those that are not the precision's own
COARSER = {("fp16", "fp16"): "fp16 into fp16", ("fp8", "fast"): "fp8 fast"}


def mode_of(problem):
    """The Mode of a problem."""
    return MODES[COARSER.get((problem.precision, getattr(problem, "accumulate", "")), problem.precision)]
