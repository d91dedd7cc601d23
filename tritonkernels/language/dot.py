"""tl.dot with the numerics that its precision promises, on a GPU and in the interpreter.

tl.dot by itself truncates fp32 operands to tf32, where cuBLAS rounds. Triton's interpreter does not round them at all,
multiplies bf16 as the integers that store it (its own conversion to fp32 loses denormals) and treats the NaN of fp8 as a
number. uint8 is refused everywhere, and 4- and 1-bit elements do not exist. A sum of products does not depend on the order of
k, so packed elements are never reordered: the first elements of all bytes are multiplied, then the second ones.
"""

from .triton import tl, triton

INTERPRETED = tl.constexpr(bool(triton.knobs.runtime.interpret))


@triton.jit
def round_to_tf32(x):
    """Round fp32 to tf32's 10 bits of mantissa, to nearest; NaN stays NaN. Ties go away from zero, or, from Hopper on, to even:
    there it is a single instruction."""
    if not INTERPRETED and tl.target_info.cuda_capability_geq(9):
        bits = tl.inline_asm_elementwise("cvt.rn.tf32.f32 $0, $1;", "=r,f", [x], tl.uint32, is_pure=True, pack=1)
    else:
        bits = x.to(tl.uint32, bitcast=True)
        rounded = (bits + 0x1000) & 0xFFFFE000
        quiet = bits | 0x7FC00000  # adding to a NaN's payload could carry into the sign, truncating it could make an infinity
        bits = tl.where(x == x, rounded, quiet)
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def bf16_to_fp32(x):
    """bf16 is the upper half of an fp32."""
    return (x.to(tl.uint16, bitcast=True).to(tl.uint32) << 16).to(tl.float32, bitcast=True)


@triton.jit
def fp8_to_fp32(x):
    """e5m2 is the upper half of an fp16. e4m3 has a bias of 7 and no infinity; NaN is all ones except the sign."""
    bits = x.to(tl.uint8, bitcast=True)
    if x.dtype == tl.float8e5:
        return (bits.to(tl.uint16) << 8).to(tl.float16, bitcast=True).to(tl.float32)
    else:
        small = bits & 0x7F
        normal = ((small.to(tl.uint32) << 20) + (120 << 23)).to(tl.float32, bitcast=True)
        size = tl.where(small < 8, small.to(tl.float32) * 0.001953125, normal)  # below 8: denormals, in steps of 2^-9
        size = tl.where(small == 0x7F, float("nan"), size)
        return tl.where(bits > 0x7F, -size, size)


@triton.jit
def widened(x, dtype: tl.constexpr):
    """x in a wider type, which holds it exactly."""
    if INTERPRETED and x.dtype == tl.bfloat16:
        return bf16_to_fp32(x).to(dtype)
    else:
        return x.to(dtype)


@triton.jit
def nibbles(x, HIGH: tl.constexpr, SIGNED: tl.constexpr):
    """The high or low 4 bits of every byte as int8."""
    if SIGNED:
        high = x if HIGH else x << 4
        return high.to(tl.int8, bitcast=True) >> 4  # the shift extends the sign
    else:
        low = x >> 4 if HIGH else x & 15
        return low.to(tl.int8, bitcast=True)


@triton.jit
def dot_of_bytes(a, b, acc):
    """acc + a b of uint8, from int8: with s = a - 128 and t = b - 128, a b = s t + 128 (s + b), summed over k."""
    shifted_a = (a ^ 128).to(tl.int8, bitcast=True)
    shifted_b = (b ^ 128).to(tl.int8, bitcast=True)
    acc = tl.dot(shifted_a, shifted_b, acc, out_dtype=tl.int32)
    sums = tl.sum(shifted_a.to(tl.int32), axis=1)[:, None] + tl.sum(b.to(tl.int32), axis=0)[None, :]
    return acc + 128 * sums


@triton.jit
def dot_of_bits(a, b, acc, XOR: tl.constexpr):
    """acc + the number of ones in a and b, eight elements per byte; for xor, acc - the sum of products of bits as +1 and -1."""
    for j in tl.static_range(8):
        bit_a = ((a >> j) & 1).to(tl.int8, bitcast=True)
        bit_b = ((b >> j) & 1).to(tl.int8, bitcast=True)
        if XOR:
            bit_a = 2 * bit_a - 1
            bit_b = 1 - 2 * bit_b
        acc = tl.dot(bit_a, bit_b, acc, out_dtype=tl.int32)
    return acc


@triton.jit
def faithful_dot(a, b, acc, PRECISION: tl.constexpr, ARE_TF32: tl.constexpr = False, FAST: tl.constexpr = False):
    """acc + a b, to be corrected by `settled`; PRECISION is a key of numerics.MODES. ARE_TF32: operands are rounded already.
    FAST: sums of fp8 stay in the tensor cores."""
    if PRECISION == "tf32":
        if not ARE_TF32:
            a = round_to_tf32(a)
            b = round_to_tf32(b)
        return tl.dot(a, b, acc, input_precision="tf32")
    elif PRECISION == "bf16" and INTERPRETED:  # products of two bf16 are exact in fp32
        return tl.dot(bf16_to_fp32(a), bf16_to_fp32(b), acc, input_precision="ieee")
    elif PRECISION == "fp8" and INTERPRETED:
        return tl.dot(fp8_to_fp32(a), fp8_to_fp32(b), acc, input_precision="ieee")
    elif FAST:
        return tl.dot(a, b, acc)
    elif PRECISION == "fp8":  # Hopper adds up in few bits: after at most numerics.FP8_SLICE products, add in fp32
        return tl.dot(a, b, acc, max_num_imprecise_acc=min(128, a.shape[1]))
    elif PRECISION == "uint8":
        return dot_of_bytes(a, b, acc)
    elif PRECISION == "int4" or PRECISION == "uint4":
        acc = tl.dot(nibbles(a, False, PRECISION == "int4"), nibbles(b, False, PRECISION == "int4"), acc, out_dtype=tl.int32)
        return tl.dot(nibbles(a, True, PRECISION == "int4"), nibbles(b, True, PRECISION == "int4"), acc, out_dtype=tl.int32)
    elif PRECISION == "b1_xor" or PRECISION == "b1_and":
        return dot_of_bits(a, b, acc, PRECISION == "b1_xor")
    else:
        return tl.dot(a, b, acc, input_precision="ieee", out_dtype=acc.dtype)


@triton.jit
def settled(acc, walked, PRECISION: tl.constexpr):
    """The final sum from acc, after slices of `walked` stored elements along K, including padding zeros.

    For xor, acc is -(equal bits) + (different bits), and their sum is all bits; padding zeros are equal bits.
    """
    if PRECISION == "b1_xor":
        return ((acc + 8 * walked).to(tl.uint32, bitcast=True) >> 1).to(tl.int32, bitcast=True)  # the sum has up to 32 bits
    else:
        return acc
