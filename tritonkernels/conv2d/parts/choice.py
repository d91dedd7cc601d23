"""Which design a Triton call gets: as the model of regime.py has it, but for one filter a channel in NCHW.

There `depthwise` has unrolled runs where `grouped` has them strided too, but packs its taps by a launch of its own: that pays
from about a million outputs on.
"""

from . import regime
from .runs import one_filter_each

TWO_LAUNCHES = 2**20  # outputs


def packing_pays(problem):
    many = problem.k > 1 and problem.outputs >= TWO_LAUNCHES
    return many and not problem.channels_last and one_filter_each(problem)


def prefer(problem, target):
    """Names of the designs that fit, the best first; see regime.prefer."""
    names = regime.prefer(problem, target)
    if not packing_pays(problem):
        return names
    at = names.index("depthwise")
    return (*names[:at], "grouped", *names[at:])


def expected(design, problem, target):
    """regime.expected; `grouped` is taken for as fast as `depthwise` where it takes its place."""
    return regime.expected("depthwise" if design == "grouped" and packing_pays(problem) else design, problem, target)
