"""Matrix product, specialized: the config and launches of specialized.cuh."""

from tritonkernels.lesson import OF_16_BITS, lesson

from ..launch import config_of
from .parts.hopper import kernel, launches_by_tma, refuses

_KERNEL = kernel("specialized", "{BM}, {BN}, {STAGES}")


def _configs(problem, target):
    return [config_of(BM=128, BN=256, STAGES=4)]


def _launches(problem, config, a, b, c, bias, out):
    return launches_by_tma(_KERNEL, 3 * 128, problem, config, a, b, c, out)


DESIGN = lesson(_configs, _launches, OF_16_BITS, refuses)
