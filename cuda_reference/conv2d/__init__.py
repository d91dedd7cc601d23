"""conv2d in CUDA C++."""

import torch

from tritonkernels.conv2d import prepare
from tritonkernels.conv2d.regime import BIG_TILE, STAGED_BYTES, TILE, blocked_bytes, halo_bytes
from tritonkernels.conv2d.regime import expected as expected
from tritonkernels.conv2d.regime import prefer as prefer
from tritonkernels.design import Design, takes_everything

from ..launch import LIBRARY, CudaLaunch, Source, ceil_div

TYPES = {torch.float32: "float", torch.float16: "__half", torch.bfloat16: "__nv_bfloat16", torch.float64: "double"}
BLOCK_BYTES = 24 * 1024  # what leaves room for several blocks on an SM


def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, *, out=None, design=None, config=None):
    """tritonkernels.conv2d, computed by the CUDA designs: arguments, result, error bound and errors are documented there."""
    return LIBRARY.call(prepare, **locals())


def blocks(problem, tile, kt):
    """How many there are of struct Tile."""
    tiles = ceil_div(problem.p, tile[0]) * ceil_div(problem.q, tile[1])
    return problem.n * problem.groups * ceil_div(problem.k // problem.groups, kt) * tiles


def covering(problem, space):
    """The configs, that with the fewest output channels per thread that cover the group's first, else the one with most."""
    ordered = sorted(space, key=lambda c: c["KT"])
    first = next((c for c in ordered if c["KT"] >= problem.k // problem.groups), ordered[-1])
    return [first, *(c for c in space if c != first)]


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


def _depthwise():
    threads, unrolled = 128, (3, 5, 0)
    template = f"conv2d::depthwise<{{T}}, {threads}, {{TAPS}}>"
    built = sources("conv2d/depthwise.cuh", [template.format(T="{T}", TAPS=taps) for taps in unrolled])

    def launches(problem, config, *tensors):
        g = problem
        dense = g.stride[0] == g.dilation[0] == 1
        yield CudaLaunch(
            built[g.dtype],
            template.format(T=TYPES[g.dtype], TAPS=g.r if dense and g.r in unrolled else 0),
            grid=(ceil_div(g.n * g.k * ceil_div(g.p, 4) * g.q, threads),),
            block=(threads, 1, 1),
            arguments=arguments(g, *tensors),
        )

    return Design(
        name="depthwise",
        summary="four outputs of a column a thread, lanes along W or along channels, for one channel per group",
        mirrors="conv2d: naive, for one channel per group",
        refuses=takes_everything,
        configs=lambda problem, target: [{"THREADS": threads}],
        launches=launches,
    )


def _direct():
    space = [{"KT": 8}, {"KT": 4}, {"KT": 16}]
    template = "conv2d::direct<{T}, {KT}, {STAGED}>"
    built = sources("conv2d/direct.cuh", [template.format(T="{T}", STAGED=s, **c) for c in space for s in ("true", "false")])

    def launches(problem, config, *tensors):
        g, bytes_ = problem, halo_bytes(problem, TILE, 16)
        staged = bytes_ <= STAGED_BYTES
        yield CudaLaunch(
            built[g.dtype],
            template.format(T=TYPES[g.dtype], STAGED="true" if staged else "false", **config),
            grid=(blocks(g, TILE, config["KT"]),),
            block=(TILE[0] * TILE[1], 1, 1),
            arguments=arguments(g, *tensors),
            shared_bytes=bytes_ if staged else 0,
        )

    return Design(
        name="direct",
        summary="8 x 4 positions per block, halo in shared memory shared out evenly, channels in registers",
        mirrors="conv2d seed: direct",
        refuses=takes_everything,
        configs=lambda problem, target: covering(problem, space),
        launches=launches,
    )


def _register_blocked():
    space = [{"KT": kt} for kt in (8, 3, 4, 6, 16)]
    template = "conv2d::register_blocked<{T}, {KT}, {UNIT}>"
    built = sources(
        "conv2d/register_blocked.cuh",
        [template.format(T="{T}", UNIT=unit, **c) for c in space for unit in ("true", "false")],
    )

    def refuses(problem, target):
        if problem.dtype == torch.float64:
            return "its sums are fp32"
        needed = blocked_bytes(problem, 16)
        if needed > STAGED_BYTES:
            return f"a tile's inputs and filters of one channel take {needed} bytes of shared memory, of {STAGED_BYTES}"
        return None

    def launches(problem, config, *tensors):
        g, bytes_ = problem, blocked_bytes(problem, config["KT"])
        channels = max(1, min(g.c // g.groups, BLOCK_BYTES // bytes_))
        unit = g.stride[1] == g.dilation[1] == 1
        yield CudaLaunch(
            built[g.dtype],
            template.format(T=TYPES[g.dtype], UNIT="true" if unit else "false", **config),
            grid=(blocks(g, BIG_TILE, config["KT"]),),
            block=(128, 1, 1),
            arguments=(*arguments(g, *tensors), channels),
            shared_bytes=channels * bytes_,
        )

    return Design(
        name="register_blocked",
        summary="2 x 4 outputs of up to 16 channels a thread, inputs slide through registers, filters are broadcast",
        mirrors="conv2d: direct, for few channels",
        refuses=refuses,
        configs=lambda problem, target: covering(problem, space),
        launches=launches,
    )


DESIGNS = (_naive(), _depthwise(), _direct(), _register_blocked())
