"""gemm as a call of matmul, which has gemm's own designs in turn (matmul/as_gemm.py): one family of designs for both.

In float32 matmul's cuda_cores reads operands in any layout where they lie, and has narrow tiles. In float64 its designs
multiply on tensor cores.
"""

import functools

import torch

from ...operation import Reduction
from ...problem import MatmulProblem

CHUNK = 16  # bytes, to which lines of an `aligned` problem of matmul are aligned


def steps(problem, arrange, a, b, c, out):
    from ..matmul.prepare import prepare  # not above: matmul imports gemm

    yield prepare(a, b, c=c, alpha=problem.alpha, beta=problem.beta, out=out)


@functools.lru_cache(256)
def problems(problem):
    """The problem with rows as long as they are in memory; `steps` sees how operands lie."""
    same = ("dtype", "out_dtype", "precision", "wide", "m", "n", "k", "alpha", "beta", "a_layout", "b_layout")
    lines = (length for name, length in problem.row_bytes.items() if name != "out")
    return (
        MatmulProblem(
            **{name: getattr(problem, name) for name in same},
            batch=1,
            a_shared=True,
            b_shared=True,
            aligned=all(length % CHUNK == 0 for length in lines),
            accumulate="fp64" if problem.dtype == torch.float64 else "fp32",
            bias=False,
            activation=None,
        ),
    )


def _of(dtype, summary, lent):
    def refuses(problem):
        return None if problem.dtype == dtype else f"it computes {dtype} only"

    return Reduction(to="matmul", summary=summary, refuses=refuses, problems=problems, steps=steps, lent=lent)


TO_CUDA_CORES = _of(torch.float32, "float32, by cuda_cores", ("cuda_cores",))
TO_TENSOR_CORES = _of(torch.float64, "float64, on tensor cores", ("pipelined", "dmma", "split_k"))
