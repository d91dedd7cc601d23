"""Matrix product, cuda_cores: the configs and launches of cuda_cores.cuh."""

import functools

from tritonkernels.design import Design
from tritonkernels.operations.gemm.split_counts import counts_for, few_blocks, split_counts
from tritonkernels.operations.matmul.schemes import NO_FINER_THAN_IEEE, in_ieee
from tritonkernels.operations.matmul.work import of_splits

from ..common import registers
from ..common.align import k_major, shifted, without_idle_strides
from ..launch import Kernel, configs_of, in_order
from .parts.arguments import arguments, gated, layouts
from .parts.space import tiles
from .parts.splits import splits_of, workspace

# Of two loops: cuda_cores.cuh. Tiles of 8 x 8 sums a thread go down to 64 x 64: 5 x 10 of them cover 320 x 611, 3 x 5 of 128 x
# 128 cover a quarter more
_SPACE = configs_of(
    "BM BN BK TM TN STAGES ASYNC GROUP",
    (128, 128, 16, 8, 8, 2, False, 4),
    (64, 128, 8, 8, 8, 2, False, 4),
    (128, 64, 8, 8, 8, 2, False, 4),
    (64, 64, 8, 8, 8, 2, False, 4),
    (32, 128, 32, 4, 8, 3, True, 4),
    (128, 32, 32, 8, 4, 3, True, 4),
    (64, 64, 32, 4, 4, 3, True, 4),
    (64, 32, 32, 4, 4, 3, True, 4),
    (32, 64, 32, 4, 4, 3, True, 4),
    (16, 64, 32, 4, 4, 3, True, 4),
    (32, 32, 32, 4, 4, 4, True, 4),
    (128, 16, 32, 4, 4, 3, True, 4),
    (128, 8, 32, 4, 4, 3, True, 4),
    (8, 128, 32, 4, 4, 3, True, 4),
)
_KERNEL = Kernel(
    "matmul::cuda_cores<{BM}, {BN}, {BK}, {TM}, {TN}, {STAGES}, {ASYNC}, {SPLIT}, {SHIFTED}, "
    "{A_BY_K}, {B_BY_K}, {VECTOR_A}, {VECTOR_B}{GATED}>",
    [{**by_k, "VECTOR_A": a, "VECTOR_B": b} for by_k in layouts() for a in (True, False) for b in (True, False)],
)
_PADDING = 4  # floats after each k of an operand that is transposed


def _shared_bytes(config):
    """Per block: STAGES slices of both operands."""
    spans = config["BM"] + config["BN"] + (0 if config["ASYNC"] else 2 * _PADDING)
    return 4 * config["STAGES"] * config["BK"] * spans


def _configs(problem, target):
    """First without splits of K. Tiles of fewer than 16 rows or 32 columns are for products of so few."""
    space = [config for config in in_order(_SPACE, target) if not (config["ASYNC"] and target.lacks("cp.async", 80))]
    space = [config for config in space if config["BM"] >= min(16, problem.m) and config["BN"] >= min(32, problem.n)]
    powers = split_counts(min(_tiles(problem, config) for config in space), problem.k, target)
    found = [config | {"SPLIT_K": 1} for config in space]
    for config in space:
        count = _tiles(problem, config)
        counts = counts_for(count, powers, problem, config["BK"], target)
        found += [config | {"SPLIT_K": splits} for splits in counts if few_blocks(splits * count, target)]
    return found


def _refuses(problem, target):
    if problem.precision not in NO_FINER_THAN_IEEE:
        return f"it multiplies float32 on CUDA cores, and has no {problem.precision}"
    return None


def _tiles(problem, config):
    return problem.batch * tiles(problem, config["BM"], config["BN"])


def _threads(config):
    return config["BM"] // config["TM"] * (config["BN"] // config["TN"])


def _launches(problem, config, a, b, c, bias, out):
    a, b = without_idle_strides(a, 1), without_idle_strides(b, 2)
    a_by_k, b_by_k = k_major(a, 1, True), k_major(b, 2, True)  # None of those that vectors cannot read
    instance = {
        "A_BY_K": a.stride(2) <= a.stride(1) if a_by_k is None else a_by_k,
        "B_BY_K": b.stride(1) <= b.stride(2) if b_by_k is None else b_by_k,
        "VECTOR_A": a_by_k is not None,
        "VECTOR_B": b_by_k is not None,
    }
    (splits, slices), blocks = _splits(problem, config), a.shape[0] * tiles(problem, config["BM"], config["BN"])
    sums = *workspace(splits, blocks, config, out), slices * config["BK"]
    yield _KERNEL.launch(
        {**config, **instance, "SPLIT": splits > 1, "SHIFTED": shifted(out) and not problem.is_gated, "GATED": gated(problem)},
        (blocks, splits),
        _threads(config),
        (*arguments(problem, a, b, c, bias, out), config["GROUP"], *sums),
        _shared_bytes(config),
    )


def _splits(problem, config):
    return splits_of(problem, config, 4 * config["BK"])


@functools.cache
def _work(splits):
    """The Work of a config, with its tile in the analysis' terms."""

    def tile(config):
        analysed = {"threads": _threads(config), "stages": config["STAGES"], "GROUP_M": config["GROUP"], "splits": splits}
        return dict(config) | analysed | {"registers": registers.of_product(config["TM"] * config["TN"], True)}

    return of_splits(tile)


def _work_of(problem, config, target):
    return _work(_splits(problem, config)[0])(in_ieee(problem), config, target)


DESIGN = Design(refuses=_refuses, configs=_configs, launches=_launches, work=_work_of, reduced=in_ieee, gates=True)
