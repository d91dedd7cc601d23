"""tl.dot with the numerics that its precision promises, on a GPU and in the interpreter alike.

Left to itself, tl.dot truncates fp32 operands to tf32 (cuBLAS rounds), Triton's interpreter does not round them at all, and it
takes bf16 for the integers that it stores them in (its own conversion to fp32 loses denormals).
"""

import triton
import triton.language as tl

INTERPRETED = tl.constexpr(bool(triton.knobs.runtime.interpret))


@triton.jit
def round_to_tf32(x):
    """Round fp32 to tf32's 10 bits of mantissa, to nearest, ties away from zero, as cvt.rna.tf32.f32; NaN stays NaN."""
    bits = x.to(tl.uint32, bitcast=True)
    rounded = (bits + 0x1000) & 0xFFFFE000
    quiet = bits | 0x7FC00000  # adding to a NaN's payload could carry it into the sign, cutting it could make an infinity
    return tl.where(x == x, rounded, quiet).to(tl.float32, bitcast=True)


@triton.jit
def bf16_to_fp32(x):
    """bf16 is the upper half of an fp32."""
    return (x.to(tl.uint16, bitcast=True).to(tl.uint32) << 16).to(tl.float32, bitcast=True)


@triton.jit
def faithful_dot(a, b, acc, PRECISION: tl.constexpr):
    """acc + a b; PRECISION is one of numerics.MODES and fits the operands' type."""
    if PRECISION == "tf32":
        return tl.dot(round_to_tf32(a), round_to_tf32(b), acc, input_precision="tf32")
    elif PRECISION == "bf16" and INTERPRETED:  # products of two bf16 are exact in fp32
        return tl.dot(bf16_to_fp32(a), bf16_to_fp32(b), acc, input_precision="ieee")
    else:
        return tl.dot(a, b, acc, input_precision="ieee", out_dtype=acc.dtype)
