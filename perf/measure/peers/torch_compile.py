"""torch.compile with every template that its autotuner has, at the precision of the case."""

import torch

from tritonkernels.errors import UnsupportedError
from tritonkernels.validate import beta_of

from .peer import Peer, only_plain_products

MODE = "max-autotune-no-cudagraphs"
QUIETLY = {"autotune_num_choices_displayed": 0, "max_autotune_report_choices_stats": False}  # else it prints every candidate
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def _mm(a, b, c=None, *, alpha=1.0, beta=0.0):
    if beta:
        return torch.addmm(c, a, b, alpha=alpha, beta=beta)
    return torch.mm(a, b) if alpha == 1 else alpha * torch.mm(a, b)


def _mv(a, x, y=None, *, alpha=1.0, beta=0.0):
    if beta:
        return torch.addmv(y, a, x, alpha=alpha, beta=beta)
    return torch.mv(a, x) if alpha == 1 else alpha * torch.mv(a, x)


def compiled(function):
    """The function as the autotuner's best code for the sizes that it is called with."""
    torch._dynamo.reset()  # all cases compile the same functions, of which it keeps few variants
    options = torch._inductor.list_mode_options(MODE) | QUIETLY
    return torch.compile(function, options=options, dynamic=False, fullgraph=True)


def build(problem, a, b, *args, **kwargs):
    run = compiled(_function(problem, a, b))
    if problem.op == "conv2d":
        return lambda *args, out, precision=None, **options: run(*args, **options), False

    def call(a, b, c=None, *, alpha=1.0, beta=None, out, **options):
        return run(a, b, c, alpha=alpha, beta=beta_of(beta, c))

    return call, False


def _function(problem, a, b):
    if problem.op == "conv2d":
        return torch.conv2d
    if problem.op == "gemv":
        if a.ndim != 2 or b.ndim != 1 or a.dtype not in DTYPES:
            raise UnsupportedError("it is compared for a floating-point matrix and a vector")
        return _mv
    only_plain_products(problem, a, b, DTYPES)
    return _mm


PEER = Peer("torch-compile", "torch", build, capability=None)
