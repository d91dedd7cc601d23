"""Matrix product, naive: the configs and launches of naive.cuh."""

from tritonkernels.design import Design
from tritonkernels.operations.matmul.work import of_tiles

from ..launch import Kernel, configs_of
from .parts.arguments import arguments
from .parts.operands import OPERANDS, instance, lacks
from .parts.space import tiles

THREADS = 32  # a warp


def _space(precision):
    return configs_of("WM WN", *OPERANDS[precision].shapes)


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


def _tile(config):
    """The block tile of a config in the analysis' terms: a fragment is 8 or 16 deep, or more where its elements are small."""
    return {"BM": config["WM"], "BN": config["WN"], "BK": 16, "threads": THREADS}


DESIGN = Design(refuses=_refuses, configs=_configs, launches=_launches, work=of_tiles(_tile))
