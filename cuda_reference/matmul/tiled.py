"""Matrix product, tiled: the config and launches of tiled.cuh."""

from tritonkernels.lesson import OF_16_BITS, lesson

from ..launch import Kernel, config_of
from .parts.arguments import ELEMENTS, TYPES
from .parts.operands import OPERANDS, lacks
from .parts.space import tiles

_CONFIG, _WARPS = config_of(BM=128, BN=128, BK=64), 8
_LAYOUTS = [{"A_BY_ROWS": a, "B_BY_ROWS": b} for a in (True, False) for b in (True, False)]
_KERNEL = Kernel("matmul::tiled<{T}, {OUT}, {BM}, {BN}, {BK}, {A_BY_ROWS}, {B_BY_ROWS}>", _LAYOUTS)


def _launches(problem, config, a, b, c, bias, out):
    layouts = {"A_BY_ROWS": problem.a_layout != "col", "B_BY_ROWS": problem.b_layout != "col"}
    types = {"T": ELEMENTS[problem.precision], "OUT": TYPES[problem.out_dtype]}
    of_a, of_b, of_c, of_out = ((0, 0) if x is None else x.stride()[1:] for x in (a, b, c, out))
    arguments = (a, b, c, out, problem.m, problem.n, problem.k, problem.alpha, problem.beta, of_a, of_b, of_c, of_out)
    yield _KERNEL.launch({**config, **layouts, **types}, (tiles(problem, config["BM"], config["BN"]),), 32 * _WARPS, arguments)


def _refuses(problem, target):
    return lacks(OPERANDS, problem, target)


DESIGN = lesson(lambda problem, target: [_CONFIG], _launches, OF_16_BITS, _refuses)
