"""conv2d_weight in CUDA C++."""

import torch

from tritonkernels.conv2d.autograd import call
from tritonkernels.conv2d_weight import prepare
from tritonkernels.conv2d_weight.space import count_tiles, splits_for
from tritonkernels.design import Design, takes_everything

from ..conv2d.parts.operands import TYPES, sources
from ..conv2d.parts.operands import arguments as arguments_of_conv2d
from ..conv2d.splits import ADD, launches_of_splits
from ..launch import LIBRARY, CudaLaunch, Source, ceil_div

THREADS, SLICE = 128, 32  # SLICE: positions


def conv2d_weight(
    input,
    weight_size,
    grad_output,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    *,
    precision=None,
    out=None,
    design=None,
    config=None,
):
    """tritonkernels.conv2d_weight, by the CUDA designs: arguments, result, error bound and errors are documented there."""
    return call(LIBRARY, prepare, **locals())


def arguments(problem, input, grad_output, out):
    """(tensors, (Geometry, Strides)): strides under the names that conv2d gives them."""
    *_, sizes, strides = arguments_of_conv2d(problem, input, out, None, grad_output)
    return (input, grad_output, out), (sizes, strides)


def _naive():
    threads = 128
    built = sources("conv2d_weight/naive.cuh", [f"conv2d_weight::naive<{{T}}, {threads}>"])

    def launches(problem, config, *operands):
        source = built[problem.dtype]
        tensors, geometry = arguments(problem, *operands)
        grid = (ceil_div(problem.outputs, threads),)
        yield CudaLaunch(source, source.expressions[0], grid, (threads, 1, 1), (*tensors, *geometry))

    return Design(
        name="naive",
        summary="a thread per element of the weight, operands straight from the caches",
        mirrors="conv2d_weight: what the others are measured by",
        refuses=takes_everything,
        configs=lambda problem, target: [{"THREADS": threads}],
        launches=launches,
    )


def _space(dtype):
    """Tiles of staged slices, then thin ones, whose sums a thread holds all: of doubles half of a tile's registers."""
    tiles = [dict(zip(("BM", "BN", "TM", "TN"), tile)) for tile in ((64, 64, 8, 4), (16, 64, 4, 2))]
    return [*tiles, {"BM": 4, "BN": 8 if dtype == torch.float64 else 32}, {"BM": 1, "BN": 16}]


def _kernel(dtype, tile):
    name = "implicit_gemm" if "TM" in tile else "thin"
    return f"conv2d_weight::{name}<{', '.join(map(str, (TYPES[dtype], *tile.values())))}>"


def _implicit_gemm():
    built = {
        dtype: Source(
            "conv2d_weight/implicit_gemm.cuh", (*(_kernel(dtype, tile) for tile in _space(dtype)), ADD.format(T=TYPES[dtype]))
        )
        for dtype in TYPES
    }

    def configs(problem, target):
        """The tile that covers a group's output channels with least padding, with as many splits as fill the GPU."""
        for tile in sorted(_space(problem.dtype), key=lambda tile: ceil_div(problem.rows, tile["BM"]) * (tile["BM"] + 4)):
            tiles = count_tiles(problem, tile["BM"], tile["BN"])
            yield tile | {"SPLITS": splits_for(problem, target, tiles, SLICE if "TM" in tile else THREADS, 4)}

    def launches(problem, config, *operands):
        tensors, geometry = arguments(problem, *operands)
        splits, tile = config["SPLITS"], {name: number for name, number in config.items() if name != "SPLITS"}
        yield from launches_of_splits(
            built[problem.dtype],
            [_kernel(problem.dtype, tile), ADD.format(T=TYPES[problem.dtype])],
            grid=(count_tiles(problem, tile["BM"], tile["BN"]), splits),
            threads=THREADS,
            splits=splits,
            before=tensors,
            after=(*geometry, ceil_div(ceil_div(problem.terms, splits), SLICE) * SLICE),
            geometry=geometry,
            out=tensors[-1],
        )

    return Design(
        name="implicit_gemm",
        summary="a tile of the weight per block, positions split over blocks; thin tiles in registers, nothing staged",
        mirrors="conv2d_weight: a reduction over N, P and Q",
        refuses=takes_everything,
        configs=configs,
        launches=launches,
    )


DESIGNS = (_naive(), _implicit_gemm())
