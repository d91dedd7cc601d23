"""Matrix product, planes: the configs and launches of planes.cuh."""

from tritonkernels.design import Design
from tritonkernels.matmul.parts.schemes import SCHEMES
from tritonkernels.matmul.parts.work import of_planes

from ..launch import Kernel, configs_of
from .parts.arguments import arguments
from .parts.space import in_order, tiles
from .parts.split import TYPES, split

_BIG, _MIDDLE, _SMALL = configs_of(
    "BM BN BK WM WN STAGES GROUP", (128, 128, 32, 64, 32, 3, 8), (128, 64, 32, 32, 32, 3, 8), (64, 64, 32, 32, 32, 3, 8)
)
# Three sums per element of C and two sets of fragments fill a thread's registers, so that three planes allow 32 x 32 per warp.
# Slices of tf32 take twice the shared memory: 192 KB for the largest tile
_SPACE = {
    "tf32x3": [_BIG, _MIDDLE, _SMALL],
    "fp16x3": [_BIG, _SMALL],
    "bf16x6": [_MIDDLE, _SMALL],
    "bf16x9": [_MIDDLE, _SMALL],
}
_TEMPLATE = "matmul::planes<{PLANE}, {DEPTH}, {BM}, {BN}, {BK}, {WM}, {WN}, {STAGES}>"


def _shared_bytes(precision, config):
    """Per block: STAGES slices of both operands' planes."""
    scheme = SCHEMES[precision]
    return config["STAGES"] * scheme.planes * (config["BM"] + config["BN"]) * config["BK"] * scheme.dtype.itemsize


def _configs(problem, target):
    """Those whose slices fit."""
    space, precision = in_order(_SPACE[problem.precision], target), problem.precision
    return [c for c in space if not target.is_gpu or _shared_bytes(precision, c) <= target.shared_per_block]


def _refuses(problem, target):
    if problem.precision not in SCHEMES:
        return f"it multiplies float32 as {', '.join(SCHEMES)}, not {problem.precision}"
    return target.lacks("mma.sync of these planes", 80)


def _launches(problem, config, a, b, c, bias, out):
    split_a, a_planes, a_ranges = split(a, problem.precision)
    split_b, b_planes, b_ranges = split(b.mT, problem.precision)
    yield from (*split_a, *split_b)
    shared = (x.stride(0) if x is not None else 0 for x in (a_planes, b_planes, a_ranges, b_ranges))
    scheme = SCHEMES[problem.precision]
    yield Kernel(_TEMPLATE, _SPACE[problem.precision]).launch(
        {"PLANE": TYPES[scheme.dtype], "DEPTH": scheme.depth, **config},
        (a.shape[0] * tiles(problem, config["BM"], config["BN"]),),
        config["BM"] // config["WM"] * (config["BN"] // config["WN"]) * 32,
        (
            *arguments(problem, a_planes[0], b_planes[0].mT, c, bias, out),
            a_ranges,
            b_ranges,
            tuple(shared),
            config["GROUP"],
        ),
        _shared_bytes(problem.precision, config),
    )


def _tile(config):
    """The block tile of a config in the analysis' terms."""
    warps = config["BM"] // config["WM"] * (config["BN"] // config["WN"])
    return config | {"threads": 32 * warps, "stages": config["STAGES"], "GROUP_M": config["GROUP"]}


DESIGN = Design(refuses=_refuses, configs=_configs, launches=_launches, work=of_planes(_tile, in_groups=True))
