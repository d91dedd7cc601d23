"""conv2d_bias in CUDA C++."""

from tritonkernels.conv2d.autograd import call_bias
from tritonkernels.conv2d_bias import prepare
from tritonkernels.conv2d_weight.space import splits_for
from tritonkernels.design import Design, takes_everything

from ..conv2d.parts.operands import TYPES, sources
from ..conv2d.splits import ADD, launches_of_splits
from ..launch import LIBRARY, ceil_div

THREADS = 256


def conv2d_bias(grad_output, *, out=None, design=None, config=None):
    """tritonkernels.conv2d_bias, by the CUDA designs: arguments, result, error bound and errors are documented there."""
    return call_bias(LIBRARY, prepare, **locals())


def _channel_sums():
    space = [{"CHANNELS": 1}, {"CHANNELS": 32}]
    template = f"conv2d_bias::channel_sums<{{T}}, {THREADS}, {{CHANNELS}}>"
    built = sources("conv2d_bias/channel_sums.cuh", [*(template.format(T="{T}", **c) for c in space), ADD])

    def configs(problem, target):
        for config in reversed(space) if problem.channels_last else space:
            blocks = ceil_div(problem.k, config["CHANNELS"])
            yield config | {"SPLITS": splits_for(problem, target, blocks, THREADS // config["CHANNELS"], 4)}

    def launches(problem, config, grad_output, out):
        g, kernels = problem, [name.format(T=TYPES[problem.dtype], **config) for name in (template, ADD)]
        sizes = (g.n, 1, 1, 1, g.k, 1, 1, g.p, g.q, 1, 1, 0, 0, 1, 1, 1)
        strides = (0, 0, 0, 0, out.stride(0), 0, 0, 0, 0, *grad_output.stride())
        splits = config["SPLITS"]
        yield from launches_of_splits(
            built[g.dtype],
            kernels,
            grid=(ceil_div(g.k, config["CHANNELS"]), splits),
            threads=THREADS,
            splits=splits,
            before=(grad_output, out),
            after=(sizes, strides, ceil_div(g.terms, splits)),
            geometry=(sizes, strides),
            out=out,
        )

    return Design(
        name="channel_sums",
        summary="channels and positions over blocks, partial sums in registers, added up in a fixed order",
        mirrors="conv2d_bias: a sum per channel",
        refuses=takes_everything,
        configs=configs,
        launches=launches,
    )


DESIGNS = (_channel_sums(),)
