"""What it gains to transpose fp32 operands once, before a product on CUDA cores: the tables of docs/gemm.md."""

import statistics

from ..measure import measured
from ..measure.measured import PACKAGES
from ..show import table

LIBRARIES = dict(zip(PACKAGES, ("tritonkernels", "cuda_reference")))
FLAGS = ("PACKED", "PACK_A", "PACK_B")  # of configs that do
LARGE = 1e10  # FLOP
HEADINGS = ["", "product", "without copies", "with them as well", "at best", "shapes"]


def packed(op, gpu):
    """torch's time over that of the fastest config, of those without copies and of all, and the most that copies gain; of
    single products whose B lies by columns, where both kinds of configs were timed."""
    rows = [row for row in measured.swept(measured.RESULTS / gpu, op) if row.torch and _is_wanted(row.problem)]
    body = []
    for package, title in PACKAGES.items():
        for kind, is_large in (("of 10 GFLOP and more", True), ("smaller", False)):
            own = [_speeds(row, package) for row in rows if (row.problem.flops >= LARGE) == is_large]
            own = [pair for pair in own if pair]
            if own:
                without, of_all = zip(*own)
                most = max(best / before for before, best in own)
                body.append([title, kind, _mean(without), _mean(of_all), f"{most:.2f}", str(len(own))])
    return table.markdown(HEADINGS, body)


def _is_wanted(problem):
    return problem.precision == "ieee" and problem.b_layout == "col" and (problem.op == "gemm" or _is_single(problem))


def _is_single(problem):
    """Whether it is one product to which nothing is added."""
    return problem.batch == 1 and problem.beta == 0 and not problem.bias and problem.activation is None


def _mean(ratios):
    return f"{statistics.geometric_mean(ratios):.2f}"


def _speeds(row, package):
    """(the fastest config without copies relative to torch, the fastest of all); None where not both kinds were timed."""
    us = {True: [], False: []}
    for _, config, time, _ in row.times.get(LIBRARIES[package], ()):
        us[any(config.get(flag) for flag in FLAGS)].append(time)
    return (row.torch[1] / min(us[False]), row.torch[1] / min(us[False] + us[True])) if all(us.values()) else None
