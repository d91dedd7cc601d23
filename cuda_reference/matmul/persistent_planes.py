"""Matrix product, persistent planes: the configs and launches of persistent.cuh for planes, and of persistent_planes.cuh."""

import dataclasses
import functools

import torch

from tritonkernels.choice.work import KNOWN_PROBLEMS, addition
from tritonkernels.design import Design
from tritonkernels.operations.matmul.schemes import MULTIPLE, SCHEMES
from tritonkernels.operations.matmul.work import computed_again, main_kernel, splitting
from tritonkernels.validate import LARGEST_SIZE

from ..launch import Kernel, ceil_div, resident
from . import persistent
from .parts.again import again
from .parts.arguments import arguments
from .parts.split import split_side_by_side
from .parts.wgmma_tiles import IN_CLUSTERS, LARGE, MOST_PROMOTED, candidates, legal, sums

SHIFTED = tuple(name for name, scheme in SCHEMES.items() if scheme.shifted)
JOINED, THREADS = 4, 256  # columns of a thread of the kernel that joins; threads of a block
_JOIN = Kernel("matmul::persistent_planes<{PLANE}>")


# Tiles for corrections, by the CLUSTER: L2 sends less for them, and of corrections tensor cores may add up all of K
_WIDE = {c.get("CLUSTER", 1): c for c in (*IN_CLUSTERS, *LARGE) if (c["BM"], c["BN"], c["CONSUMERS"]) == (128, 256, 2)}
_AS_FP16 = {"dtype": torch.float16, "precision": "fp16", "out_dtype": torch.float32, "accumulate": "fp32"}
_ALONG_K = {"a_layout": "row", "b_layout": "col", "aligned": True}
_ALONE = {"alpha": 1.0, "beta": 0.0, "bias": False, "activation": None}


@functools.lru_cache(KNOWN_PROBLEMS)
def products(problem):
    """The problems of the corrections and of the main sum: of fp16, in rows of whole boxes."""
    n, k = ceil_div(problem.n, JOINED) * JOINED, ceil_div(problem.k, MULTIPLE) * MULTIPLE
    main = dataclasses.replace(problem, n=n, k=k, **_AS_FP16, **_ALONG_K, **_ALONE)
    return dataclasses.replace(main, k=2 * k), main


def _configs(problem, target):
    """persistent's tiles whose sums leave room for those of a slice, twice, in the registers of a thread. WIDE: those of
    corrections have twice as many columns."""
    _, main = products(problem)
    for config in candidates(main, target):
        promotes = sums(config) <= MOST_PROMOTED and config["CONSUMERS"] < 3 and "IN_TURN" not in config
        if promotes and legal(config, main, target):
            own = config | {"BLOCKS": resident(target, config.get("CLUSTER", 1), 1)}
            yield own
            if (own["BM"], own["BN"], own["CONSUMERS"]) == (128, 128, 2):
                yield own | {"WIDE": True}


def _of_corrections(config):
    return _WIDE[config.get("CLUSTER", 1)] | {"BLOCKS": config["BLOCKS"]} if "WIDE" in config else config


def _refuses(problem, target):
    if problem.precision not in SHIFTED:
        return f"it multiplies float32 as {' or '.join(SHIFTED)}, not {problem.precision}"
    if target.is_gpu and target.arch != 90:
        return f"it needs wgmma, which only sm_90 has; {target.name} is {target.isa}"
    if products(problem)[0].k > LARGEST_SIZE:
        return f"its corrections sum up 2 K products, and a kernel counts {LARGEST_SIZE} at most"
    return None


def _launches(problem, config, a, b, c, bias, out, b_planes=None, b_ranges=None):
    of_a, a_planes, a_ranges = split_side_by_side(a, problem.precision, high_first=False)
    of_b = ()
    if not problem.b_split:
        of_b, b_planes, b_ranges = split_side_by_side(b.mT, problem.precision, high_first=True)
    yield from (*of_a, *of_b)
    of_corrections, of_main = products(problem)
    room = torch.empty(2, out.shape[0], problem.m, of_main.n, dtype=torch.float32, device=out.device)
    high = a_planes[..., of_main.k :], b_planes[..., : of_main.k]
    for own, tile, (left, right), result, promotes in (
        (of_corrections, _of_corrections(config), (a_planes, b_planes), room[0], "WIDE" not in config),
        (of_main, config, high, room[1], True),
    ):
        yield from persistent.multiplying(own, tile, left, right.mT, None, None, result, PROMOTES=promotes)
    _, _, c, bias, out, m, n, _, *following = arguments(problem, a, b, c, bias, out)
    ranges = a_ranges, b_ranges, (a_ranges.stride(0), b_ranges.stride(0))
    given = room[1], room[0], c, bias, out, m, n, of_main.n, *following, *ranges
    yield _JOIN.launch({"PLANE": "__half"}, (out.shape[0] * _blocks(problem),), THREADS, given)
    yield from again(problem, a, b, c, bias, out, a_ranges, b_ranges)


def _blocks(problem):
    return ceil_div(problem.m * ceil_div(problem.n, JOINED), THREADS)


@functools.lru_cache(KNOWN_PROBLEMS)
def _around(problem):
    """The Works before the products, and the one after."""
    blocks = problem.batch * _blocks(problem)
    return splitting(problem), addition(problem, 2, JOINED * THREADS, THREADS, problem.batch, blocks, 2)


def work(problem, config, target):
    (of_corrections, of_main), (before, after) = products(problem), _around(problem)
    tiles = persistent.block_tile(_of_corrections(config), 2), persistent.block_tile(config, 2)
    both = (main_kernel(own, tile, target, (True, True)) for own, tile in zip((of_corrections, of_main), tiles))
    return *before, *both, after, *computed_again(problem)


DESIGN = Design(refuses=_refuses, configs=_configs, launches=_launches, work=work, reads_split=True)
