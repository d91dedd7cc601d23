"""A design of conv2d as a design of its gradient: the filters are flipped, then each phase is a convolution (phases.py)."""

import dataclasses

import torch

from .phases import largest, phases


def reduced(design, flip):
    """The Design; flip(problem, weight, filters) is the launch that fills filters (C, K / groups, R, S)."""

    def refuses(problem, target):
        refusals = (design.refuses(phase.problem, target) for phase in phases(problem))
        return next((refusal for refusal in refusals if refusal), None)

    def launches(problem, config, grad_output, weight, out):
        memory_format = torch.channels_last if problem.channels_last else torch.contiguous_format
        shape = (problem.c, problem.k // problem.groups, problem.r, problem.s)
        filters = torch.empty(shape, dtype=weight.dtype, device=weight.device, memory_format=memory_format)
        if filters.numel():
            yield flip(problem, weight, filters)
        for phase in phases(problem):
            yield from design.launches(phase.problem, config, *phase.operands(grad_output, filters, out))

    return dataclasses.replace(
        design,
        mirrors=f"conv2d: {design.name}",
        refuses=refuses,
        configs=lambda problem, target: design.configs(largest(problem).problem, target),
        launches=launches,
        tile=None,
    )
