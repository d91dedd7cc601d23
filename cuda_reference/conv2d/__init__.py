"""conv2d in CUDA C++."""

import torch

from tritonkernels.conv2d import prepare
from tritonkernels.conv2d.regime import TILE_H, TILE_W
from tritonkernels.conv2d.regime import prefer as prefer
from tritonkernels.design import Design, takes_everything

from ..launch import LIBRARY, CudaLaunch, Source, ceil_div

TYPES = {torch.float32: "float", torch.float16: "__half", torch.bfloat16: "__nv_bfloat16", torch.float64: "double"}
STAGED_BYTES = 48 * 1024  # what a block may have of shared memory on every architecture


def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, *, out=None, design=None, config=None):
    """tritonkernels.conv2d, computed by the CUDA designs: arguments, result, error bound and errors are documented there."""
    return LIBRARY.run(prepare(input, weight, bias, stride, padding, dilation, groups, out=out), design, config)


def halo_bytes(problem, tile_h, tile_w):
    """Shared memory for the inputs that one tile of outputs needs of a channel; rows are padded to 16 bytes of inputs."""
    rows, cols = (
        (tile - 1) * step + (taps - 1) * dilation + 1
        for tile, step, taps, dilation in zip((tile_h, tile_w), problem.stride, (problem.r, problem.s), problem.dilation)
    )
    piece = 16 // problem.dtype.itemsize
    return rows * ceil_div(cols, piece) * piece * max(4, problem.dtype.itemsize)


def sources(header, templates):
    """A Source for each type; `templates` are the kernels' names with their constants, but for {T}."""
    return {dtype: Source(header, tuple(t.format(T=name) for t in templates)) for dtype, name in TYPES.items()}


def arguments(problem, input, weight, bias, out):
    """What every kernel takes: tensors, Geometry, Strides."""
    g = problem
    sizes = (g.n, g.c, g.h, g.w, g.k, g.r, g.s, g.p, g.q, *g.stride, *g.padding, *g.dilation, g.groups)
    strides = (*input.stride(), *weight.stride(), 0 if bias is None else bias.stride(0), *out.stride())
    return input, weight, bias, out, sizes, strides


def _naive():
    threads = 128
    built = sources("conv2d/naive.cuh", [f"conv2d::naive<{{T}}, {threads}>"])

    def launches(problem, config, *tensors):
        source = built[problem.dtype]
        (kernel,) = source.expressions
        yield CudaLaunch(source, kernel, (ceil_div(problem.outputs, threads),), (threads, 1, 1), arguments(problem, *tensors))

    return Design(
        name="naive",
        summary="a thread per output, operands straight from the caches",
        mirrors="conv2d: what the others are measured by",
        refuses=takes_everything,
        configs=lambda problem, target: [{"THREADS": threads}],
        launches=launches,
    )


def _direct():
    space = [{"KT": 8}, {"KT": 4}, {"KT": 16}]
    template = "conv2d::direct<{T}, {KT}, {STAGED}>"
    built = sources("conv2d/direct.cuh", [template.format(T="{T}", STAGED=s, **c) for c in space for s in ("true", "false")])

    def configs(problem, target):
        """The fewest output channels per thread that cover the group's first, up to 16."""
        covering = [c for c in sorted(space, key=lambda c: c["KT"]) if c["KT"] >= problem.k // problem.groups]
        first = covering[0] if covering else {"KT": 16}
        return [first, *(c for c in space if c != first)]

    def launches(problem, config, *tensors):
        g, bytes_ = problem, halo_bytes(problem, TILE_H, TILE_W)
        tiles = ceil_div(g.p, TILE_H) * ceil_div(g.q, TILE_W)
        staged = bytes_ <= STAGED_BYTES
        yield CudaLaunch(
            built[g.dtype],
            template.format(T=TYPES[g.dtype], STAGED="true" if staged else "false", **config),
            grid=(g.n * g.groups * ceil_div(g.k // g.groups, config["KT"]) * tiles,),
            block=(TILE_H * TILE_W, 1, 1),
            arguments=arguments(g, *tensors),
            shared_bytes=bytes_ if staged else 0,
        )

    return Design(
        name="direct",
        summary="8 x 4 positions per block, halo in shared memory shared out evenly, channels in registers",
        mirrors="conv2d seed: direct",
        refuses=takes_everything,
        configs=configs,
        launches=launches,
    )


DESIGNS = (_naive(), _direct())
