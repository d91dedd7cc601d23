"""The arguments that every matmul kernel takes."""

import struct

import torch

from ..problem import PACKED, needs_wide_offsets


def matmul_arguments(problem, a, b, c, bias, out):
    """Pointers, sizes, scalars and strides by the kernels' parameter names; a and b may be packed copies."""
    return {
        "a_ptr": a,
        "b_ptr": b,
        "c_ptr": c,
        "bias_ptr": bias,
        "out_ptr": out,
        "M": problem.m,
        "N": problem.n,
        "K": stored_k(problem),
        "alpha": _scalar(problem.alpha, problem.out_dtype),
        "beta": _scalar(problem.beta, problem.out_dtype),
        **dict(zip(("stride_ab", "stride_am", "stride_ak"), a.stride())),
        **dict(zip(("stride_bb", "stride_bk", "stride_bn"), b.stride())),
        **dict(zip(("stride_cb", "stride_cm", "stride_cn"), (0, 0, 0) if c is None else c.stride())),
        **dict(zip(("stride_ob", "stride_om", "stride_on"), out.stride())),
        "stride_bias": 0 if bias is None else bias.stride(0),
        "HAS_C": c is not None,
        "HAS_BIAS": bias is not None,
        "ACTIVATION": problem.activation,
        "PRECISION": problem.precision,
        "ACCUMULATE": problem.accumulate,
        "ARE_TF32": False,
        "WIDE": needs_wide_offsets(a, b, c, bias, out),
    }


def stored_k(problem):
    """K in elements of the tensors: bytes where a byte packs several."""
    return problem.k // PACKED.get(problem.precision, 1)


def _scalar(value, out_dtype):
    """alpha or beta as language/epilogue.py's `scalar` expects it."""
    if out_dtype == torch.float64:
        return struct.unpack("<q", struct.pack("<d", value))[0]
    return int(value) if out_dtype == torch.int32 else value
