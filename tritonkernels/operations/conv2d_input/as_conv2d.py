"""The gradient with respect to the input as calls of conv2d: of the flipped filters, each phase is a convolution.

The taps are flipped, from the last to the first, and channels in and out are exchanged. A design that takes taps in any order,
and filters across C as along it, reads them where they are. So does any design if a filter has one tap. Others get a copy.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from ...batches import merges
from ...integers import ceil_div
from ...operation import Call, Reduction
from ..conv2d.as_matmul import columns_are_apart
from ..conv2d.taps import lie_along, lines_of_gradient
from ..conv2d.work import rewritten
from .phases import WHOLE, are_phases_missing, phases


class Arrange(NamedTuple):
    """The launches of a package that steps need.

    flip   (problem, weight, filters) -> the launch that fills filters (C, K / groups, R, S)
    pack   (images, filters, fit) -> (both in channels_last, in whole chunks; the launches that copy images if they are not, and
           filters unless they are fit)
    clear  (problem, bias, out) -> the launch that fills it with zeros, or with the bias
    design  the Design that computes the convolutions
    """

    flip: Callable[..., Any]
    pack: Callable[..., Any]
    clear: Callable[..., Any]
    design: Any = None


def steps(problem, arrange, grad_output, weight, bias, out):
    design = arrange.design
    if are_phases_missing(problem) and out.numel():
        yield arrange.clear(problem, bias, out)
    if design.reads_taps:  # packed once for all phases
        dim, order = lines_of_gradient(weight)
        (grad_output, weight), copies = arrange.pack(grad_output, weight.permute(order), lie_along(weight, dim))
        weight = weight.permute(tuple(map(order.index, range(4))))
        yield from copies
    elif _phases_would_copy(problem, design, grad_output, out):
        (images, _), copies = arrange.pack(grad_output, weight, True)
        grad_output = images[:, : problem.k]
        yield from copies
    if _read_in_place(problem, design):
        filters = weight.transpose(0, 1)
    else:
        filters = _empty_filters(problem, weight)
        if filters.numel():
            yield arrange.flip(problem, weight, filters)
    for phase in phases(problem):
        if design.reads_taps:
            operands, taps = (grad_output, filters, bias, phase.results_of(out)), phase.backwards(problem)
            yield Call(phase.problem, (operands,), out, {"taps": taps})
        else:
            yield Call(phase.problem, (phase.operands(grad_output, filters, bias, out),), out)


def _phases_would_copy(problem, design, grad_output, out):
    """Whether several phases of one tap are products of rows that grad_output has not: as_matmul would copy it for each."""
    if not design.key.startswith("matmul.") or grad_output.element_size() > 4 or merges(grad_output.permute(0, 2, 3, 1), 0):
        return False  # pack copies elements of up to 4 bytes
    of_one_tap = (phase for phase in phases(problem) if phase.problem.r * phase.problem.s == 1)
    return sum(columns_are_apart(phase.results_of(out).permute(0, 2, 3, 1)) for phase in of_one_tap) > 1


def _read_in_place(problem, design):
    return design.reads_taps or (problem.groups == 1 and problem.r * problem.s == 1)


def _empty_filters(problem, weight):
    of_one_tap = all(phase.problem.r * phase.problem.s == 1 for phase in phases(problem))  # a matrix for each phase, then
    memory_format = torch.channels_last if problem.channels_last or of_one_tap else torch.contiguous_format
    shape = (problem.c, problem.k // problem.groups, problem.r, problem.s)
    return torch.empty(shape, dtype=weight.dtype, device=weight.device, memory_format=memory_format)


def is_dense(out):
    """Whether its elements follow each other in memory, in some order: no two are in the same place."""
    return sum((size - 1) * stride for size, stride in zip(out.shape, out.stride())) + 1 == out.numel()


FLIPPED = 256  # elements of a block that flips the filters
MANY = 64  # launches besides one for each phase, some 100 us: no other design takes as long for what has more of them


def arranged(problem, design):
    """The Work of the launches before the convolutions; what a design packs it counts itself. A product of matrices may take
    further launches, which are counted here, too."""
    turned = design.reads_taps and problem.precision == "tf32" and problem.channels_last
    more = _further_products(problem) if design.key.startswith("matmul.") else 0
    return _arranged(problem, _read_in_place(problem, design) and not turned) + (rewritten(1, FLIPPED, 0),) * more


@functools.lru_cache(1024)
def _further_products(problem):
    """How many products of matrices there are besides one for each phase, or MANY: a phase may have one for each image."""
    apart = sum(_images_are_apart(problem, phase) for phase in phases(problem))
    return min(MANY, apart * max(0, problem.n - 1))


def _images_are_apart(problem, phase):
    """Whether a phase is a product for each image: lines of its results do not follow each other evenly, so they are the batch,
    and images do not either."""
    (down, across), p, q = problem.stride, phase.problem.p, phase.problem.q
    lines = phase.results == (WHOLE, WHOLE) or 1 in (p, q) or down * problem.w == across * q
    return not lines and not (problem.channels_last and problem.h == down * p)


@functools.lru_cache(1024)
def _arranged(problem, in_place):
    cleared = problem.outputs if are_phases_missing(problem) else 0
    flipped = 0 if in_place else problem.c * (problem.k // problem.groups) * problem.r * problem.s
    sizes = (cleared, cleared), (flipped, 2 * flipped)
    return tuple(
        rewritten(ceil_div(elements, FLIPPED), FLIPPED, moved * problem.dtype.itemsize) for elements, moved in sizes if elements
    )


TO_CONV2D = Reduction(
    to="conv2d",
    summary="every call, as a convolution of grad_output with the flipped filter for each phase of the stride",
    refuses=lambda problem: None,
    problems=lambda problem: tuple(phase.problem for phase in phases(problem)),
    steps=steps,
    arranged=arranged,
)
