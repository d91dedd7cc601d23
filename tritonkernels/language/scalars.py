"""alpha and beta, as wide as the sums that they multiply. Triton passes a float as fp32, so an fp64 one comes as its bits."""

import struct

import torch

from .triton import tl, triton


def scalar(value, dtype):
    """alpha or beta of a result of this dtype, as a kernel's argument."""
    if dtype == torch.float64:
        return struct.unpack("<q", struct.pack("<d", value))[0]
    return int(value) if dtype == torch.int32 else value


@triton.jit
def factor(x, dtype: tl.constexpr):
    """The argument as a factor of sums of this dtype."""
    if dtype == tl.float64:
        return tl.cast(tl.cast(x, tl.int64), tl.float64, bitcast=True)
    else:
        return x
