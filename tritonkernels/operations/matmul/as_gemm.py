"""A single FP32 product without an activation as a call of gemm, in IEEE arithmetic, which is exact enough for every mode.

A bias is the only addend then: its C.
"""

import functools

from ...operation import Reduction
from ...problem import GemmProblem
from ..gemm.prepare import prepare
from .schemes import NO_FINER_THAN_IEEE


@functools.lru_cache(256)
def refuses(problem):
    faults = {
        f"precision {problem.precision}": problem.precision not in NO_FINER_THAN_IEEE,
        f"a batch of {problem.batch}": problem.batch != 1,
        "both a bias and C": problem.bias and problem.beta != 0,
        "an activation": problem.activation is not None,
    }
    found = [what for what, is_so in faults.items() if is_so]
    return f"gemm has none of {' and '.join(found)}" if found else None


def steps(problem, arrange, a, b, c, bias, out):
    addend = bias.expand(out.shape[1:]) if problem.bias else None if c is None else c[0]
    yield prepare(a[0], b[0], addend, alpha=problem.alpha, beta=_beta(problem), out=out[0])


def _beta(problem):
    return 1.0 if problem.bias else problem.beta


@functools.lru_cache(256)
def problems(problem):
    fields = ("dtype", "out_dtype", "wide", "m", "n", "k", "alpha", "a_layout", "b_layout")
    return (GemmProblem(**{name: getattr(problem, name) for name in fields}, precision="ieee", beta=_beta(problem)),)


TO_GEMM = Reduction(
    to="gemm",
    summary="float32 in IEEE arithmetic, for every mode: one product without an activation, with a bias or C",
    refuses=refuses,
    problems=problems,
    steps=steps,
)
