"""Matrix product, naive: the configs and launches of naive.cuh."""

from tritonkernels.design import Design

from ..launch import Kernel
from .parts.arguments import arguments
from .parts.operands import OPERANDS, instance, lacks
from .parts.space import tiles

THREADS = 32  # a warp


def _space(precision):
    return [{"WM": m, "WN": n} for m, n in OPERANDS[precision].shapes]


_KERNELS = {
    precision: Kernel(
        f"matmul::naive<matmul::{operand.name}, {{SUMS}}, {{WM}}, {{WN}}, {{A}}, {{B}}, {{RESULT}}>",
        [{**config, **instance} for config in _space(precision) for instance in operand.instances],
    )
    for precision, operand in OPERANDS.items()
}


def _configs(problem, target):
    return _space(problem.precision)


def _refuses(problem, target):
    return lacks(OPERANDS, problem, target)


def _launches(problem, config, a, b, c, bias, out):
    grid = (a.shape[0] * tiles(problem, config["WM"], config["WN"]),)
    parameters = {**config, **instance(problem)}
    yield _KERNELS[problem.precision].launch(parameters, grid, THREADS, arguments(problem, a, b, c, bias, out))


DESIGN = Design(refuses=_refuses, configs=_configs, launches=_launches)
