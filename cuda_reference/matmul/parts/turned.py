"""The transposed product, C^T = B^T A^T, of tf32 operands of which A lies across K: of the two only B may (transposed.cuh)."""

import dataclasses

_ACROSS = {"row": "col", "col": "row", "strided": "strided"}  # the layout of the transposed operand


def turns_around(problem):
    """Whether the transposed product copies less: A lies across K, and B along K, or B is the smaller to copy.

    The transposed bias is added to rows. There it stands as C, which must be free.
    """
    if problem.precision != "tf32" or not problem.aligned or problem.a_layout == "row" or (problem.bias and problem.beta):
        return False
    of_a = problem.m * (1 if problem.a_shared else problem.batch)
    of_b = problem.n * (1 if problem.b_shared else problem.batch)
    return problem.b_layout == "col" or of_a > of_b


def turned(problem):
    """The problem of the transposed product."""
    return dataclasses.replace(
        problem,
        m=problem.n,
        n=problem.m,
        a_shared=problem.b_shared,
        b_shared=problem.a_shared,
        a_layout=_ACROSS[problem.b_layout],
        b_layout=_ACROSS[problem.a_layout],
        beta=1.0 if problem.bias else problem.beta,
        bias=False,
    )


def turned_operands(a, b, c, bias, out):
    """The operands of the transposed product."""
    c = c if bias is None else bias.expand(out.shape)
    return b.mT, a.mT, None if c is None else c.mT, None, out.mT
