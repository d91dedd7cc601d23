"""A single FP32 product in IEEE arithmetic without bias and activation, as a call of gemm."""

import functools

from ...gemm import GEMM
from ...gemm.parts.prepare import prepare
from ...operation import Reduction
from ...problem import GemmProblem


@functools.lru_cache(256)
def refuses(problem):
    faults = {
        f"precision {problem.precision}": problem.precision != "ieee",
        f"a batch of {problem.batch}": problem.batch != 1,
        "a bias": problem.bias,
        "an activation": problem.activation is not None,
    }
    found = [what for what, is_so in faults.items() if is_so]
    return f"gemm has none of {' and '.join(found)}" if found else None


def steps(problem, arrange, a, b, c, bias, out):
    yield prepare(a[0], b[0], None if c is None else c[0], alpha=problem.alpha, beta=problem.beta, out=out[0])


@functools.lru_cache(256)
def problems(problem):
    fields = ("dtype", "out_dtype", "precision", "wide", "m", "n", "k", "alpha", "beta", "a_layout", "b_layout")
    return (GemmProblem(**{name: getattr(problem, name) for name in fields}),)


TO_GEMM = Reduction(
    to=GEMM,
    summary="float32 in IEEE arithmetic, one product without bias and activation",
    refuses=refuses,
    problems=problems,
    steps=steps,
)
