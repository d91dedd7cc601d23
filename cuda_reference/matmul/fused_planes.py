"""Matrix product, fused planes: the configs and launches of fused_planes.cuh."""

import functools

from tritonkernels.design import Design
from tritonkernels.operations.gemm.split_counts import split_counts
from tritonkernels.operations.matmul.schemes import SCHEMES, cannot_fuse
from tritonkernels.operations.matmul.work import of_splits

from ..common.align import in_pieces
from ..launch import Kernel, configs_of, in_order
from .parts.arguments import arguments, layouts
from .parts.space import tiles
from .parts.split import TYPES
from .parts.splits import splits_of, workspace
from .pipelined import covers, packs

_NAMES = "BM BN BK WM WN STAGES GROUP"
# Three sums, two sets of fragments and two planes leave room for 32 x 32 a warp. One set, of twice as much K, and three planes
# leave it for 32 x 16
_OF_TWO = configs_of(_NAMES, (128, 64, 32, 32, 32, 3, 8), (64, 64, 32, 32, 32, 4, 8))
_OF_THREE = configs_of(_NAMES, (64, 64, 32, 32, 16, 4, 8))
_THIN = configs_of(  # for few rows or columns
    _NAMES, (32, 64, 32, 32, 16, 4, 8), (64, 32, 32, 32, 16, 4, 8), (16, 64, 32, 16, 16, 4, 8), (64, 16, 32, 32, 16, 4, 8)
)
_TEMPLATE = (
    "matmul::fused_planes<{PLANE}, {DEPTH}, {BM}, {BN}, {BK}, {WM}, {WN}, {STAGES}, {A_BY_K}, {B_BY_K}, {A_PIECE}, {B_PIECE}>"
)


def _shared_bytes(config):
    """Per block: STAGES slices of both operands, in fp32."""
    return config["STAGES"] * (config["BM"] + config["BN"]) * config["BK"] * 4


def _configs(problem, target):
    """Configs whose slices fit with the kernel's own kilobyte, thin ones where they cover the rows or columns; first without
    splits of K."""
    space = _OF_TWO if SCHEMES[problem.precision].planes == 2 else _OF_THREE
    space = *in_order(space, target), *(c for c in _THIN if covers(problem, c))
    space = [c for c in space if not target.is_gpu or _shared_bytes(c) + 1024 <= target.shared_per_block]
    largest = problem.batch * min((tiles(problem, c["BM"], c["BN"]) for c in space), default=0)
    return [c | {"SPLIT_K": splits} for splits in (1, *split_counts(largest, problem.k, target)) for c in space]


def _refuses(problem, target):
    return cannot_fuse(problem) or target.lacks("mma.sync of these planes", 80)


def _splits(problem, config):
    return splits_of(problem, config, 4 * config["BK"])


def _launches(problem, config, a, b, c, bias, out):
    a, b, pieces, copies = in_pieces(a, b)
    yield from copies
    splits, slices = _splits(problem, config)
    blocks = out.shape[0] * tiles(problem, config["BM"], config["BN"])
    scheme = SCHEMES[problem.precision]
    numbers = {**config, **pieces, "PLANE": TYPES[scheme.dtype], "DEPTH": scheme.depth}
    a, b, c, bias, out, *rest = arguments(problem, a, b, c, bias, out)
    yield Kernel(_TEMPLATE, layouts()).launch(
        numbers,
        (blocks, splits),
        config["BM"] // config["WM"] * (config["BN"] // config["WN"]) * 32,
        (a, b, c, bias, out, *workspace(splits, blocks, config, out), *rest, config["GROUP"], slices * config["BK"]),
        _shared_bytes(config),
    )


@functools.cache
def _work(splits):
    """The Work of a config, with its tile in the analysis' terms."""

    def tile(config):
        warps = config["BM"] // config["WM"] * (config["BN"] // config["WN"])
        return dict(config) | {"threads": 32 * warps, "stages": config["STAGES"], "GROUP_M": config["GROUP"], "splits": splits}

    return of_splits(tile, packs)


def work(problem, config, target):
    return _work(_splits(problem, config)[0])(problem, config, target)


DESIGN = Design(refuses=_refuses, configs=_configs, launches=_launches, work=work)
