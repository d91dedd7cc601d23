"""cuBLASLt with its algorithms searched, by nvmath-python: torch takes the first one that cuBLAS proposes.

The search is not kept on disk: it measures ALGORITHMS of them ten times each, in the first call.
"""

import weakref

import torch

from tritonkernels.validate import beta_of

from .peer import Peer, only_plain_products

ALGORITHMS = 32  # of those that cuBLASLt proposes, best first


def build(problem, a, b, *args, **kwargs):
    only_plain_products(problem, a, b, (torch.float16, torch.bfloat16, torch.float32, torch.float64))
    from nvmath.linalg import advanced

    options = {"compute_type": advanced.MatmulComputeType.COMPUTE_32F_FAST_TF32} if problem.precision == "tf32" else {}
    planned = []

    def call(a, b, c=None, *, alpha=1.0, beta=None, out, **kwargs):
        beta = beta_of(beta, c)
        scaled = {"c": c, "beta": beta} if beta else {}
        if planned:
            planned[0].reset_operands(a=a, b=b, **scaled)
        else:
            product = advanced.Matmul(a, b, alpha=alpha, options=options, **scaled)
            product.plan(preferences={"limit": ALGORITHMS})
            product.autotune()
            planned.append(product)
            weakref.finalize(call, product.free).atexit = False  # CUDA may be gone by then
        return planned[0].execute()

    return call, False


PEER = Peer("cublaslt", "nvmath", build)
