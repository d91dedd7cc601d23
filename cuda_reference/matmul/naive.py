"""naive: its config space and its launches."""

import itertools

from tritonkernels.design import Design

from ..launch import CudaLaunch, Source
from .parts.arguments import arguments
from .parts.operands import OPERANDS, instance, lacks
from .parts.space import tiles

THREADS = 32  # a warp


def _space(precision):
    return [{"WM": m, "WN": n} for m, n in OPERANDS[precision].shapes]


def _kernel(precision, config, instance):
    sums, result, a, b = instance
    return f"matmul::naive<matmul::{OPERANDS[precision].name}, {sums}, {config['WM']}, {config['WN']}, {a}, {b}, {result}>"


_SOURCES = {
    precision: Source(
        "matmul/naive.cuh",
        tuple(_kernel(precision, *one) for one in itertools.product(_space(precision), operand.instances)),
    )
    for precision, operand in OPERANDS.items()
}


def _configs(problem, target):
    return _space(problem.precision)


def _refuses(problem, target):
    return lacks(OPERANDS, problem, target)


def _launches(problem, config, a, b, c, bias, out):
    yield CudaLaunch(
        _SOURCES[problem.precision],
        _kernel(problem.precision, config, instance(problem)),
        (a.shape[0] * tiles(problem, config["WM"], config["WN"]),),
        (THREADS, 1, 1),
        arguments(problem, a, b, c, bias, out),
    )


DESIGN = Design(refuses=_refuses, configs=_configs, launches=_launches)
