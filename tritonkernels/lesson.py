"""Lessons: designs that teach one technique each. They are used by name, never chosen, and take plain problems only."""

import torch

from .design import Design, takes_everything
from .problem import dtype_name

OF_16_BITS = tuple((dtype, out) for dtype in (torch.float16, torch.bfloat16) for out in (dtype, torch.float32))


def lesson(configs, launches, types, refuses=takes_everything):
    """The Design of a lesson.

    configs, launches  as every Design's
    types              the (dtype, out_dtype) pairs that it takes
    refuses            (problem, target) -> what else it refuses, a sentence, or None
    """

    def refused(problem, target):
        return not_plain(problem, types) or refuses(problem, target)

    def alone(problem, config, *tensors):
        return (launch.alone() for launch in launches(problem, config, *tensors))

    return Design(configs=configs, launches=alone, refuses=refused)


def not_plain(problem, types):
    """The sentence by which every lesson refuses what would hide its technique; None for a plain problem."""
    found = list(problem.extras)
    if problem.wide:
        found.append("offsets of more than 32 bits")
    if (problem.dtype, problem.out_dtype) not in types:
        found.append(f"{dtype_name(problem.dtype)} into {dtype_name(problem.out_dtype)}")
    if not found:
        return None
    taken = ", ".join(f"{dtype_name(dtype)} into {dtype_name(out)}" for dtype, out in types)
    return f"it is a lesson, which takes plain problems of {taken}, and this has {' and '.join(found)}"
