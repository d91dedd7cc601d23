"""torchao's fp8 product with its default for inference, fast accumulation: tensor cores add up in fewer bits than fp32.

Its int8 product is torch._int_mm, which is torch's own row.
"""

import torch

from tritonkernels.errors import UnsupportedError

from .peer import Peer


def build(problem, a, b, *args, **kwargs):
    if problem.op != "matmul" or (a.dtype, b.dtype) != (torch.float8_e4m3fn, torch.float8_e4m3fn):
        raise UnsupportedError("it is compared in products of fp8 (e4m3)")
    if a.ndim != 2 or b.ndim != 2 or problem.fused or a.shape[1] % 16 or b.shape[1] % 16:
        raise UnsupportedError("it is compared in plain products of matrices with N and K divisible by 16")
    if a.stride(1) != 1 or b.stride(0) != 1:
        raise UnsupportedError("it needs operands that are contiguous along K")
    from torchao.float8.inference import addmm_float8_unwrapped_inference

    one = torch.ones((1, 1), device=a.device)

    def call(a, b, *, out, **options):
        return addmm_float8_unwrapped_inference(a, one, b, one, output_dtype=out.dtype, use_fast_accum=True)

    return call, False


PEER = Peer("torchao", "torchao", build, capability=(8, 9))
