"""The gradient with respect to the input as calls of conv2d: the filters are flipped, then each phase is a convolution."""

import torch

from ...integers import ceil_div
from ...operation import Call, Reduction
from ..conv2d.work import rewritten
from .phases import phases


def steps(problem, arrange, grad_output, weight, bias, out):
    """arrange(problem, weight, filters) is the launch that fills filters (C, K / groups, R, S)."""
    memory_format = torch.channels_last if problem.channels_last else torch.contiguous_format
    shape = (problem.c, problem.k // problem.groups, problem.r, problem.s)
    filters = torch.empty(shape, dtype=weight.dtype, device=weight.device, memory_format=memory_format)
    if filters.numel():
        yield arrange(problem, weight, filters)
    for phase in phases(problem):
        yield Call(phase.problem, (phase.operands(grad_output, filters, bias, out),), out)


FLIPPED = 256  # elements of a block that flips the filters


def arranged(problem):
    """The Work of flipping the filters."""
    elements = problem.c * (problem.k // problem.groups) * problem.r * problem.s
    return (rewritten(ceil_div(elements, FLIPPED), FLIPPED, 2 * elements * problem.dtype.itemsize),) if elements else ()


TO_CONV2D = Reduction(
    to="conv2d",
    summary="every call, as a convolution of grad_output with the flipped filter for each phase of the stride",
    refuses=lambda problem: None,
    problems=lambda problem: tuple(phase.problem for phase in phases(problem)),
    steps=steps,
    arranged=arranged,
)
