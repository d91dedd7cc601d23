"""conv2d_weight in CUDA C++."""

from tritonkernels.conv2d_weight import prepare
from tritonkernels.conv2d_weight.space import count_tiles, splits_for
from tritonkernels.design import Design, takes_everything

from ..conv2d import TYPES, sources
from ..conv2d import arguments as arguments_of_conv2d
from ..conv2d.splits import ADD, launches_of_splits
from ..launch import LIBRARY, CudaLaunch, ceil_div

SLICE = 32  # positions


def conv2d_weight(
    input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1, *, out=None, design=None, config=None
):
    """tritonkernels.conv2d_weight, by the CUDA designs: arguments, result, error bound and errors are documented there."""
    return LIBRARY.call(prepare, **locals())


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


def _implicit_gemm():
    space = [dict(zip(("BM", "BN", "TM", "TN"), tile)) for tile in ((64, 64, 8, 4), (4, 32, 4, 4), (1, 32, 1, 4))]
    template = "conv2d_weight::implicit_gemm<{T}, {BM}, {BN}, {TM}, {TN}>"
    built = sources("conv2d_weight/implicit_gemm.cuh", [*(template.format(T="{T}", **c) for c in space), ADD])

    def configs(problem, target):
        """The largest tile first whose rows a weight fills, with as many splits as fill the GPU."""
        for config in sorted(space, key=lambda c: c["BM"] > 2 * problem.rows):
            tiles = count_tiles(problem, config["BM"], config["BN"])
            yield config | {"SPLITS": splits_for(problem, target, tiles, SLICE, 4)}

    def launches(problem, config, *operands):
        tensors, geometry = arguments(problem, *operands)
        splits = config["SPLITS"]
        yield from launches_of_splits(
            built[problem.dtype],
            [name.format(T=TYPES[problem.dtype], **config) for name in (template, ADD)],
            grid=(count_tiles(problem, config["BM"], config["BN"]), splits),
            threads=128,
            splits=splits,
            before=tensors,
            after=(*geometry, ceil_div(ceil_div(problem.terms, splits), SLICE) * SLICE),
            geometry=geometry,
            out=tensors[-1],
        )

    return Design(
        name="implicit_gemm",
        summary="a tile of the weight per block, positions split over blocks and, of small tiles, over its threads",
        mirrors="conv2d_weight: a reduction over N, P and Q",
        refuses=takes_everything,
        configs=configs,
        launches=launches,
    )


DESIGNS = (_naive(), _implicit_gemm())
