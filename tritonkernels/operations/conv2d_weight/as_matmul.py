"""The gradient of a weight whose patches do not overlap as a product of matrices: (K, N P Q) (N P Q, C R S).

One operand has a row for each output channel, the other one for each patch. What does not lie so is copied once, both in one
launch (conv2d/unfolded.py). Where channels lie inside, grad_output is the first one's transpose, which tensor cores read as
well, but not in tf32: there copies lie along the positions, which are added up, and a matrix that needs no copy, but lies
otherwise, is packed by matmul's designs.
"""

import functools

from ...operation import Reduction
from ..conv2d import as_matmul as of_conv2d
from ..conv2d.unfolded import as_matrix, as_they_lie, copies_work, filters_of, lies_inside, matrix, patches_of
from ..matmul.prepare import prepare


def steps(problem, arrange, input, grad_output, out):
    inside = lies_inside(out)
    grads, patches, copies = _operands(problem, input, grad_output, inside)
    if copies:
        yield arrange.unfold(*copies)
    result = as_matrix(filters_of(out, inside))
    if result is None:  # tap by tap
        taps, order = ("rsc", (1, 2, 0, 3)) if inside else ("crs", (2, 3, 0, 1))
        patches = patches.unflatten(1, [getattr(problem, size) for size in taps]).permute(order)
        result = out.permute(2, 3, 0, 1)
    yield prepare(grads, patches, precision=problem.precision, out=result)


def _operands(problem, input, grad_output, inside):
    """(grad_output (K, N P Q), patches (N P Q, C R S), the Copies that fill them)."""
    grads, of_grads = matrix(grad_output[..., None, None].permute(0, 2, 3, 1, 4, 5), turned=True)
    patches, of_patches = matrix(patches_of(problem, input, inside), turned=problem.precision == "tf32")
    return grads.mT, patches, of_grads + of_patches


def _as_the_problem_says(problem):
    input, _, grad_output = as_they_lie(problem)
    return _operands(problem, input, grad_output, problem.channels_last)


@functools.lru_cache(1024)
def problems(problem):
    """The problem of contiguous tensors; `steps` sees how they really lie."""
    grads, patches, _ = _as_the_problem_says(problem)
    return (prepare(grads, patches, precision=problem.precision).problem,)


@functools.lru_cache(1024)
def _arranged(problem):
    return copies_work(_as_the_problem_says(problem)[2])


TO_MATMUL = Reduction(
    to="matmul",
    summary="patches that do not overlap (a stride as large as the filter) without padding and groups",
    refuses=of_conv2d.refuses,
    problems=problems,
    steps=steps,
    arranged=lambda problem, design: _arranged(problem),
)
