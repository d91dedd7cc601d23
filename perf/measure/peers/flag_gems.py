"""FlagGems: torch's operators in Triton, tuned on first use. mm's choice is kept on disk."""

import torch

from tritonkernels.errors import UnsupportedError

from .peer import Peer, only_plain_convolutions, only_plain_products

DTYPES = (torch.float16, torch.bfloat16, torch.float32)


def build(problem, a, b, *args, **kwargs):
    import flag_gems

    if problem.op == "conv2d":
        only_plain_convolutions(problem, a, DTYPES, kwargs)
        return lambda *args, out, precision=None, **options: flag_gems.conv2d(*args, **options), False
    if problem.op == "gemv":
        if a.ndim != 2 or b.ndim != 1 or a.dtype not in DTYPES or (problem.alpha, problem.beta) != (1, 0):
            raise UnsupportedError("flag_gems.mv is a matrix of 16 or 32 bits times a vector, without alpha and beta")
        return lambda a, x, *rest, out, **options: flag_gems.mv(a, x), False
    only_plain_products(problem, a, b, DTYPES)
    if problem.beta:
        return _addmm(flag_gems, problem), False
    if problem.alpha != 1:
        raise UnsupportedError("flag_gems.mm has no alpha")
    return lambda a, b, *rest, out, **options: flag_gems.mm_out(a, b, out=out), True


def _addmm(flag_gems, problem):
    scales = {"alpha": problem.alpha, "beta": problem.beta}
    return lambda a, b, c, *, out, **options: flag_gems.addmm(c, a, b, **scales)


PEER = Peer("flag-gems", "flag_gems", build)
