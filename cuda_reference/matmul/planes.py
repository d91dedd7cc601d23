"""Matrix product, planes: the configs and launches of planes.cuh."""

import functools

from tritonkernels.design import Design
from tritonkernels.operations.gemm.split_counts import split_counts
from tritonkernels.operations.matmul.schemes import SCHEMES, apart
from tritonkernels.operations.matmul.work import of_planes

from ..launch import Kernel, configs_of, in_order
from .parts.again import again
from .parts.arguments import arguments
from .parts.space import tiles
from .parts.split import TYPES, split
from .parts.splits import splits_of, workspace
from .pipelined import covers

_NAMES = "BM BN BK WM WN STAGES GROUP"
_BIG, _MIDDLE, _SMALL = configs_of(
    _NAMES, (128, 128, 32, 64, 32, 3, 8), (128, 64, 32, 32, 32, 3, 8), (64, 64, 32, 32, 32, 3, 8)
)
_THIN = configs_of(_NAMES, (32, 64, 32, 32, 32, 4, 8), (64, 32, 32, 32, 32, 4, 8))  # for few rows or columns
# Three sums per element of C and two sets of fragments fill a thread's registers, so that three planes allow 32 x 32 per warp.
# Slices of tf32 take twice the shared memory: 192 KB for the largest tile
_SPACE = {
    "tf32x3": [_BIG, _MIDDLE, _SMALL],
    "fp16x3": [_BIG, _SMALL],
    "fp32": [_BIG, _SMALL],
    "bf16x6": [_MIDDLE, _SMALL],
    "bf16x9": [_MIDDLE, _SMALL],
}
_TEMPLATE = "matmul::planes<{PLANE}, {DEPTH}, {BM}, {BN}, {BK}, {WM}, {WN}, {STAGES}>"


def _shared_bytes(precision, config):
    """Per block: STAGES slices of both operands' planes."""
    scheme = SCHEMES[precision]
    return config["STAGES"] * scheme.planes * (config["BM"] + config["BN"]) * config["BK"] * scheme.dtype.itemsize


def _configs(problem, target):
    """Configs whose slices fit with the kernel's own kilobyte, thin ones where they cover the rows or columns; first without
    splits of K."""
    precision = problem.precision
    space = *in_order(_SPACE[precision], target), *(c for c in _THIN if covers(problem, c))
    space = [c for c in space if not target.is_gpu or _shared_bytes(precision, c) + 1024 <= target.shared_per_block]
    largest = problem.batch * min((tiles(problem, c["BM"], c["BN"]) for c in space), default=0)
    return [c | {"SPLIT_K": splits} for splits in (1, *split_counts(largest, problem.k, target)) for c in space]


def _refuses(problem, target):
    if problem.precision not in SCHEMES:
        return f"it multiplies float32 as {', '.join(SCHEMES)}, not {problem.precision}"
    return target.lacks("mma.sync of these planes", 80)


def _splits(problem, config):
    return splits_of(problem, config, 4 * config["BK"])


def _launches(problem, config, a, b, c, bias, out, b_planes=None, b_ranges=None):
    split_a, a_planes, a_ranges = split(a, problem.precision)
    if problem.b_split:
        split_b, b_planes = (), apart(b_planes, problem.precision)
    else:
        split_b, b_planes, b_ranges = split(b.mT, problem.precision)
    yield from (*split_a, *split_b)
    shared = (x.stride(0) if x is not None else 0 for x in (a_planes, b_planes, a_ranges, b_ranges))
    splits, slices = _splits(problem, config)
    blocks = out.shape[0] * tiles(problem, config["BM"], config["BN"])
    scheme = SCHEMES[problem.precision]
    given = arguments(problem, a_planes[0], b_planes[0].mT, c, bias, out)
    ranges = a_ranges, b_ranges, tuple(shared)
    yield Kernel(_TEMPLATE, _SPACE[problem.precision] + _THIN).launch(
        {"PLANE": TYPES[scheme.dtype], "DEPTH": scheme.depth, **config},
        (blocks, splits),
        config["BM"] // config["WM"] * (config["BN"] // config["WN"]) * 32,
        (*given[:5], *workspace(splits, blocks, config, out), *given[5:], *ranges, config["GROUP"], slices * config["BK"]),
        _shared_bytes(problem.precision, config),
    )
    yield from again(problem, a, b, c, bias, out, a_ranges, b_ranges)


@functools.cache
def _work(splits):
    """The Work of a config, with its tile in the analysis' terms."""

    def tile(config):
        warps = config["BM"] // config["WM"] * (config["BN"] // config["WN"])
        return dict(config) | {"threads": 32 * warps, "stages": config["STAGES"], "GROUP_M": config["GROUP"], "splits": splits}

    return of_planes(tile, in_groups=True)


def work(problem, config, target):
    return _work(_splits(problem, config)[0])(problem, config, target)


DESIGN = Design(refuses=_refuses, configs=_configs, launches=_launches, work=work, reads_split=True)
