"""conv2d_weight, implicit_gemm: the configs and launches of implicit_gemm.cuh."""

import torch

from tritonkernels.conv2d_weight.parts.space import count_tiles, splits_for
from tritonkernels.design import Design

from ..conv2d.parts.operands import TYPES
from ..conv2d.parts.splits import ADD, launches_of_splits
from ..launch import Source, ceil_div
from .parts.operands import arguments

THREADS, SLICE = 128, 32  # SLICE: positions


def tiles(dtype):
    """Tiles with slices in shared memory, then the thin ones (parts/thin.cuh), in which each thread holds all sums: half as
    many for doubles, which take two registers each.
    """
    staged = [dict(zip(("BM", "BN", "TM", "TN"), tile)) for tile in ((64, 64, 8, 4), (16, 64, 4, 2))]
    return [*staged, {"BM": 4, "BN": 8 if dtype == torch.float64 else 32}, {"BM": 1, "BN": 16}]


def kernel(dtype, tile):
    name = "implicit_gemm" if "TM" in tile else "thin"
    return f"conv2d_weight::{name}<{', '.join(map(str, (TYPES[dtype], *tile.values())))}>"


def source(dtype):
    kernels = (kernel(dtype, tile) for tile in tiles(dtype))
    return Source("conv2d_weight/implicit_gemm.cuh", (*kernels, ADD.format(T=TYPES[dtype])))


SOURCES = {dtype: source(dtype) for dtype in TYPES}


def configs(problem, target):
    """The tile that covers a group's output channels with the least padding first; each with as many splits as fill the GPU."""
    for tile in sorted(tiles(problem.dtype), key=lambda tile: ceil_div(problem.rows, tile["BM"]) * (tile["BM"] + 4)):
        count = count_tiles(problem, tile["BM"], tile["BN"])
        yield tile | {"SPLITS": splits_for(problem, target, count, SLICE if "TM" in tile else THREADS, 4)}


def launches(problem, config, *operands):
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


DESIGN = Design(configs=configs, launches=launches)
