"""The Triton design of a call: the model's choice (regime.py), except for one filter per channel in NCHW.

There `grouped` is faster than `depthwise` from about a million outputs on, which pay for the launch that packs its taps.
"""

from . import regime
from .runs import unrollable_depthwise

TWO_LAUNCHES = 2**20  # outputs


def packing_pays(problem):
    return problem.k > 1 and problem.outputs >= TWO_LAUNCHES and unrollable_depthwise(problem)


def prefer(problem, target):
    """Names of the designs that fit, the fastest first; see regime.prefer."""
    names = regime.prefer(problem, target)
    if not packing_pays(problem):
        return names
    at = names.index("depthwise")
    return (*names[:at], "grouped", *names[at:])


def expected(design, problem, target):
    """As regime.expected; where `grouped` replaces `depthwise`, it has that design's estimate."""
    return regime.expected("depthwise" if design == "grouped" and packing_pays(problem) else design, problem, target)
