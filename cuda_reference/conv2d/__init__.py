"""conv2d in CUDA C++."""

import torch

from tritonkernels.conv2d import prepare
from tritonkernels.conv2d.autograd import call
from tritonkernels.conv2d.parts.regime import BIG_TILE, STAGED_BYTES, TILE, blocked_bytes, halo_bytes
from tritonkernels.conv2d.parts.regime import expected as expected
from tritonkernels.conv2d.parts.regime import prefer as prefer
from tritonkernels.design import Design, takes_everything

from ..launch import LIBRARY, CudaLaunch, Source, ceil_div
from . import grouped, implicit_gemm, pointwise, winograd
from .parts.operands import TYPES, arguments, short_rows, sources

BLOCK_BYTES = 24 * 1024  # what leaves room for several blocks on an SM


def conv2d(
    input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, *, precision=None, out=None, design=None, config=None
):
    """tritonkernels.conv2d, computed by the CUDA designs: arguments, result, error bound and errors are documented there."""
    return call(LIBRARY, prepare, **locals())


def blocks(problem, tile, kt):
    """How many there are of struct Tile."""
    tiles = ceil_div(problem.p, tile[0]) * ceil_div(problem.q, tile[1])
    return problem.n * problem.groups * ceil_div(problem.k // problem.groups, kt) * tiles


def covering(problem, space):
    """The configs, that with the fewest output channels per thread that cover the group's first, else the one with most."""
    ordered = sorted(space, key=lambda c: c["KT"])
    first = next((c for c in ordered if c["KT"] >= problem.k // problem.groups), ordered[-1])
    return [first, *(c for c in space if c != first)]


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


def width(dtype):
    """Channels that a lane of `depthwise` loads at once: 128 bits of fp32 and fp64, 64 of the 16-bit types."""
    return 2 if dtype == torch.float64 else 4


def takes_channels(problem, *images):
    """Whether there is one filter a channel, and WIDTH channels of every pixel of the images are an aligned piece of memory."""
    unit = width(problem.dtype)
    return (
        problem.c == problem.groups == problem.k
        and problem.k % unit == 0
        and all(
            t.stride(1) == 1
            and t.data_ptr() % (unit * t.element_size()) == 0
            and all(stride % unit == 0 for size, stride in zip(t.shape, t.stride()) if size > 1 and stride != 1)
            for t in images
        )
    )


def _depthwise():
    threads, lanes = 128, 8
    unrolled = (*((taps, step) for taps in (3, 5) for step in (1, 2)), (0, 1))
    template = f"conv2d::depthwise<{{T}}, {threads}, {{TAPS}}, {{STEP}}, {{RUN}}>"
    of_channels = f"conv2d::depthwise_channels<{{T}}, {threads}, {{TAPS}}, {{STEP}}, {{RUN}}, {{WIDTH}}>"

    def kernel(dtype, wide, run, taps, step):
        return (of_channels if wide else template).format(T=TYPES[dtype], TAPS=taps, STEP=step, RUN=run, WIDTH=width(dtype))

    def runs(wide):
        return (7,) if wide else (7, 14)

    built = {
        (dtype, wide): Source(
            "conv2d/depthwise.cuh", tuple(kernel(dtype, wide, run, *of) for run in runs(wide) for of in unrolled)
        )
        for dtype in TYPES
        for wide in (False, True)
    }

    def launches(problem, config, input, weight, bias, out):
        g, channels = problem, lanes * width(problem.dtype)
        filters = g.r * g.s * (channels + 4) * max(4, g.dtype.itemsize)  # rows begin in other banks
        wide = takes_channels(g, input, out) and filters <= STAGED_BYTES
        slides = g.dilation[0] == 1 and (g.r == g.s or not wide) and short_rows(input)
        taps, step = (g.r, g.stride[0]) if slides and (g.r, g.stride[0]) in unrolled else (0, 1)
        run = runs(wide)[-1] if g.p > 7 else 7
        columns = g.n * ceil_div(g.p, run) * g.q
        blocks = ceil_div(g.k, channels) * ceil_div(columns, threads // lanes) if wide else ceil_div(g.k * columns, threads)
        yield CudaLaunch(
            built[g.dtype, wide],
            kernel(g.dtype, wide, run, taps, step),
            grid=(blocks,),
            block=(threads, 1, 1),
            arguments=arguments(g, input, weight, bias, out),
            shared_bytes=filters if wide else 0,
        )

    return Design(
        name="depthwise",
        summary="runs of outputs of a column a thread, lanes along W or along channels, for one channel per group",
        mirrors="conv2d: naive, for one channel per group",
        refuses=takes_everything,
        configs=lambda problem, target: [{"THREADS": threads}],
        launches=launches,
    )


def tile_bytes(problem):
    """Shared memory of a channel in `direct`: its rows may begin up to a piece of 16 bytes, less one element, earlier."""
    return halo_bytes(problem, TILE, 16, before=16 // problem.dtype.itemsize - 1)


def _direct():
    space = [{"KT": 8}, {"KT": 4}, {"KT": 16}]
    template = "conv2d::direct<{T}, {KT}, {STAGED}>"
    built = sources("conv2d/direct.cuh", [template.format(T="{T}", STAGED=s, **c) for c in space for s in ("true", "false")])

    def launches(problem, config, *tensors):
        g, bytes_ = problem, tile_bytes(problem)
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


def _prefetched():
    space = [{"KT": 8}, {"KT": 4}, {"KT": 16}]
    template = "conv2d::prefetched<{T}, {KT}>"
    built = sources("conv2d/prefetched.cuh", [template.format(T="{T}", **config) for config in space])

    def shared_bytes(problem, config):
        unit = problem.dtype.itemsize
        halo = tile_bytes(problem) // max(4, unit) * unit
        return 2 * (halo + ceil_div(problem.r * problem.s * config["KT"] * unit, 16) * 16)

    def fitting(problem):
        return [config for config in space if shared_bytes(problem, config) <= STAGED_BYTES]

    def refuses(problem, target):
        if missing := target.lacks("cp.async", 80):
            return missing
        if not fitting(problem):
            needed = min(shared_bytes(problem, config) for config in space)
            return f"two channels' inputs and filters take {needed} bytes of shared memory, of {STAGED_BYTES}"
        return None

    def launches(problem, config, *tensors):
        yield CudaLaunch(
            built[problem.dtype],
            template.format(T=TYPES[problem.dtype], **config),
            grid=(blocks(problem, TILE, config["KT"]),),
            block=(TILE[0] * TILE[1], 1, 1),
            arguments=arguments(problem, *tensors),
            shared_bytes=shared_bytes(problem, config),
        )

    return Design(
        name="prefetched",
        summary="direct with the next channel's inputs and filters under way, by cp.async or in registers",
        mirrors="conv2d seed: the next channel's inputs and the next filter are prefetched",
        refuses=refuses,
        configs=lambda problem, target: covering(problem, fitting(problem)),
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


DESIGNS = (
    _naive(),
    _depthwise(),
    grouped.DESIGN,
    _direct(),
    _prefetched(),
    _register_blocked(),
    pointwise.DESIGN,
    implicit_gemm.DESIGN,
    winograd.DESIGN,
)
