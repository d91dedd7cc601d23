"""A product with a single row or column as a call of gemv, with sums in fp32 (float64: fp64) and without rounding to tf32."""

import functools

from ...operation import Reduction
from ...problem import GemvProblem
from ...validate import LARGEST_SIZE
from ..gemv.prepare import VECTORS, prepare
from .schemes import NO_FINER_THAN_IEEE

PRECISIONS = (*NO_FINER_THAN_IEEE, "fp16", "bf16", "fp64")
TRANSPOSED = {"row": "col", "col": "row", "strided": "strided"}


@functools.lru_cache(256)
def refuses(problem):
    faults = {
        f"a result of {problem.m} x {problem.n}": 1 not in (problem.m, problem.n),
        f"precision {problem.precision}": problem.precision not in PRECISIONS,
        f"a result in {problem.out_dtype}": problem.out_dtype != problem.dtype or problem.dtype not in VECTORS,
        f"sums in {problem.accumulate}": problem.accumulate not in ("fp32", "fp64"),
        "an activation": problem.activation is not None,
        "both a bias and C": problem.bias and problem.beta != 0,
        f"a batch of {problem.batch}": problem.batch * max(problem.m, problem.n) > LARGEST_SIZE,
    }
    found = [what for what, is_so in faults.items() if is_so]
    return f"it is no product of a matrix and a vector as gemv has them: {' and '.join(found)}" if found else None


def steps(problem, arrange, a, b, c, bias, out):
    """A column is A b; a row is B^T a. A bias is the only addend then."""
    if problem.n != 1:
        a, b, c, out = b.mT, a.mT, None if c is None else c.mT, out.mT
    y = None if c is None else c[..., 0]
    if problem.bias:
        y = bias.expand(out.shape[:-1])
    yield prepare(a, b[..., 0], y, alpha=problem.alpha, beta=_beta(problem), out=out[..., 0])


def _beta(problem):
    return 1.0 if problem.bias else problem.beta


@functools.lru_cache(256)
def problems(problem):
    column = problem.n == 1
    reduced = GemvProblem(
        dtype=problem.dtype,
        out_dtype=problem.out_dtype,
        precision="fp64" if problem.precision == "fp64" else "ieee",
        wide=problem.wide,
        batch=problem.batch,
        m=problem.m if column else problem.n,
        n=problem.k,
        alpha=problem.alpha,
        beta=_beta(problem),
        a_dtype=problem.dtype,
        a_layout=problem.a_layout if column else TRANSPOSED[problem.b_layout],
        a_shared=problem.a_shared if column else problem.b_shared,
        x_shared=problem.b_shared if column else problem.a_shared,
        scaled=False,
    )
    return (reduced,)


TO_GEMV = Reduction(
    to="gemv",
    summary="one row or one column, of float types, without an activation",
    refuses=refuses,
    problems=problems,
    steps=steps,
)
