"""Matrix product, in_turn: the config and launches of in_turn.cuh."""

from tritonkernels.lesson import OF_16_BITS, lesson

from ..launch import config_of
from .parts.hopper import kernel, launches_by_tma, refuses

_KERNEL = kernel("in_turn", "{BM}, {BN}, {STAGES}")


def _configs(problem, target):
    walk = {"GROUP": 8, "BLOCKS": target.sms // 2 * 2 or 4}
    return [config_of(BM=128, BN=128, STAGES=6, **walk), config_of(BM=128, BN=192, STAGES=5, **walk)]


def _launches(problem, config, a, b, c, bias, out):
    return launches_by_tma(_KERNEL, 3 * 128, problem, config, a, b, c, out, cluster=2)


DESIGN = lesson(_configs, _launches, OF_16_BITS, refuses)
