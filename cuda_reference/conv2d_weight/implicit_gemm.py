"""conv2d_weight, implicit_gemm: the configs and launches of implicit_gemm.cuh. Tensor cores and large
fp32 tiles have theirs in parts/tensor_cores.py and parts/cuda_cores.py.
"""

import torch

from tritonkernels.design import Design
from tritonkernels.operations.conv2d.work import unit
from tritonkernels.operations.conv2d_weight.space import count_tiles, near, splits_for
from tritonkernels.operations.conv2d_weight.work import of_tiles

from ..conv2d.parts.operands import TYPES
from ..conv2d.parts.splits import ADD, added, launches_of_splits
from ..launch import Source, ceil_div, configs_of
from .parts import cuda_cores, tensor_cores
from .parts.operands import arguments

THREADS, SLICE = 128, 32  # SLICE: positions


def tiles(dtype):
    """Tiles with slices in shared memory, then the thin ones (parts/thin.cuh), in which each thread holds all sums: half as
    many for doubles, which take two registers each.
    """
    staged = configs_of("BM BN TM TN", (64, 64, 8, 4), (16, 64, 4, 2))
    return staged + configs_of("BM BN", (4, 8 if dtype == torch.float64 else 32), (1, 16))


def kernel(dtype, tile):
    name = "implicit_gemm" if "TM" in tile else "thin"
    return f"conv2d_weight::{name}<{', '.join(map(str, (TYPES[dtype], *tile.values())))}>"


def source(dtype):
    kernels = (kernel(dtype, tile) for tile in tiles(dtype))
    return Source("conv2d_weight/implicit_gemm.cuh", (*kernels, ADD.format(T=TYPES[dtype])))


SOURCES = {dtype: source(dtype) for dtype in TYPES}


def configs(problem, target):
    """Each tile with as many splits as fill the GPU, half and twice as many; then those of cp.async."""
    for tile in tiles(problem.dtype):
        count = count_tiles(problem, tile["BM"], tile["BN"])
        for splits in near(splits_for(problem, target, count, positions(tile), 4)):
            yield tile | {"SPLITS": splits}
    yield from tensor_cores.configs(problem, target)
    yield from cuda_cores.configs(problem, target)


def _by_cp_async(config):
    """The module whose config it is, if its slices come by cp.async."""
    return tensor_cores if "MATH" in config else cuda_cores if "BLOCKS" in config else None


def positions(tile):
    """The positions that a block reads at a time."""
    return SLICE if "TM" in tile else THREADS


def launches(problem, config, *operands):
    if module := _by_cp_async(config):
        yield from module.launches(problem, config, *operands)
        return
    tensors, structs = arguments(problem, *operands)
    splits, tile = config["SPLITS"], {name: number for name, number in config.items() if name != "SPLITS"}
    yield from launches_of_splits(
        SOURCES[problem.dtype],
        [kernel(problem.dtype, tile), ADD.format(T=TYPES[problem.dtype])],
        grid=(count_tiles(problem, tile["BM"], tile["BN"]), splits),
        threads=THREADS,
        before=tensors,
        after=(*structs, ceil_div(ceil_div(problem.terms, splits), SLICE) * SLICE),
        out=tensors[-1],
    )


def work(problem, config, target):
    """Slices that go through registers are not under way while the block multiplies."""
    if module := _by_cp_async(config):
        return module.work(problem, config, target)
    bm, bn, splits, thin = config["BM"], config["BN"], config["SPLITS"], "TM" not in config
    shared = 0 if thin else SLICE * (bm + bn) * max(4, problem.dtype.itemsize)
    main = of_tiles(problem, (bm, bn, positions(config)), splits, THREADS, unit(problem), 1, thin, shared)
    if thin:  # as nvcc compiles for sm_90
        main = main._replace(registers=min(255, 70 + 3 * bm * bn // 2))
    return main, *added(problem, splits)


DESIGN = Design(configs=configs, launches=launches, work=work)
