"""Matrix product, split-K: the configs and launches of split_k.cuh."""

import functools
from operator import itemgetter

from tritonkernels.design import Design
from tritonkernels.operations.gemm.split_counts import counts_for, split_counts
from tritonkernels.operations.matmul.work import of_splits

from ..common.align import in_pieces, in_whole_pieces
from ..launch import Kernel, configs_of, in_order
from .parts.arguments import arguments, layouts, mma_types
from .parts.space import tiles
from .parts.splits import splits_of, workspace
from .pipelined import FP64, THIN, block_tile, ends, legal, packs, refuses, shared_bytes, turns

_NAMES = "WGMMA BM BN SLICE WM WN STAGES GROUP"
_MMA_TILES = (128, 128, 128, 64, 64, 3), (128, 64, 128, 64, 32, 3), (64, 64, 128, 32, 32, 4), (64, 64, 128, 32, 32, 8)
_MMA = tuple((False, *sizes, 8) for sizes in _MMA_TILES)
_DMMA = tuple((False, *config.values()) for config in FP64[1:])  # of 128 x 128 the sums to be added find no registers
_TILES = (128, 128, 6), (128, 128, 3), (64, 128, 4), (64, 64, 4), (64, 64, 8)
_WGMMA = tuple((True, bm, bn, 128, 16, bn, stages, 8) for bm, bn, stages in _TILES)
_THIN = tuple((False, *config.values()) for config in THIN)
_OF_LITTLE = (
    (False, 32, 32, 128, 16, 16, 8, 8),
)  # for a small result: of more tiles the sums of splits are added up side by side
_SIZES = "{ELEMENT}, {RESULT}, {SUMS}, {WGMMA}, {BM}, {BN}, {DEPTH}, {WM}, {WN}, {STAGES}"
_TEMPLATE = f"matmul::split_k<{_SIZES}, {{A_BY_K}}, {{B_BY_K}}, {{A_PIECE}}, {{B_PIECE}}, {{SCALED}}, {{BY_ROWS}}>"


def _by_wgmma(problem, target):
    """Whether slices have the layout of wgmma, and it computes what mma.sync does: it would not round tf32, and has no fp64."""
    packs_a, packs_b = packs(problem, None)  # along K
    along_k = (packs_a or problem.a_layout == "row") and (packs_b or problem.b_layout == "col")
    return along_k and target.arch in (0, 90) and problem.precision not in ("tf32", "fp64")


_of_kinds = functools.cache(functools.partial(configs_of, _NAMES))


def candidates(problem, target):
    """Thin tiles where they cover the rows or columns; in the emulation all kinds of products."""
    by_wgmma = _by_wgmma(problem, target)
    by_mma = _DMMA if problem.precision == "fp64" else _MMA
    thin = tuple(kind for kind in _THIN if kind[1] >= min(64, problem.m) and kind[2] >= min(64, problem.n))
    kinds = tuple(in_order(by_wgmma * _WGMMA + (not by_wgmma or not target.is_gpu) * by_mma + thin, target))
    if problem.batch * tiles(problem, 32, 32) <= target.sms // 4:
        kinds += _OF_LITTLE
    return _of_kinds(*kinds)


def configs(problem, target):
    """Tiles that fit with the kernel's own kilobyte."""
    space = candidates(problem, target)
    largest = problem.batch * tiles(problem, *(max(config[side] for config in space) for side in ("BM", "BN")))
    powers = split_counts(largest, problem.k, target)
    found = []
    for config in space:
        if legal(config, problem, target, 1024):
            count = problem.batch * tiles(problem, config["BM"], config["BN"])
            counts = counts_for(count, powers, problem, config["SLICE"] // problem.dtype.itemsize, target) or powers[:1]
            found += [config | {"SPLIT_K": splits} for splits in counts]
    return sorted(found, key=itemgetter("SPLIT_K"))


def _only_along_k(matrix, span_dim, piece=16):
    """A layout for `in_pieces`."""
    return in_whole_pieces(matrix, span_dim, piece) or None


def _splits(problem, config):
    return splits_of(problem, config, config["SLICE"])


def _launches(problem, config, a, b, c, bias, out):
    layout = _only_along_k if config["WGMMA"] else in_whole_pieces
    a, b, pieces, copies = in_pieces(a, b, layout)
    yield from copies
    splits, slices = _splits(problem, config)
    blocks, depth = out.shape[0] * tiles(problem, config["BM"], config["BN"]), config["SLICE"] // a.element_size()
    numbers = {**config, **pieces, **ends(problem, c, bias, out), "DEPTH": depth}
    a, b, c, bias, out, *rest = arguments(problem, a, b, c, bias, out)
    yield Kernel(_TEMPLATE, layouts() if turns(problem) and not config["WGMMA"] else [{}]).launch(
        {**mma_types(problem), **numbers},
        (blocks, splits),
        config["BM"] // config["WM"] * (config["BN"] // config["WN"]) * 32,
        (a, b, c, bias, out, *workspace(splits, blocks, config, out), *rest, config["GROUP"], slices * depth),
        shared_bytes(config),
    )


@functools.cache
def _work(itemsize, splits):
    return of_splits(lambda config: block_tile(config, itemsize) | {"splits": splits}, packs)


def work(problem, config, target):
    return _work(problem.dtype.itemsize, _splits(problem, config)[0])(problem, config, target)


DESIGN = Design(refuses=refuses, configs=configs, launches=_launches, work=work)
