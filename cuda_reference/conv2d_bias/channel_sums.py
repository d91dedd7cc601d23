"""conv2d_bias, channel_sums: the configs and launches of channel_sums.cuh."""

from tritonkernels.design import Design
from tritonkernels.operations.conv2d_bias.work import of_sums
from tritonkernels.operations.conv2d_weight.space import near, splits_for

from ..conv2d.parts.operands import TYPES, sources
from ..conv2d.parts.splits import ADD, added, launches_of_splits
from ..launch import ceil_div, configs_of

THREADS = 256
KERNEL = f"conv2d_bias::channel_sums<{{T}}, {THREADS}, {{CHANNELS}}>"
SPACE = configs_of("CHANNELS", (1,), (32,))
SOURCES = sources("conv2d_bias/channel_sums.cuh", [*(KERNEL.format(T="{T}", **config) for config in SPACE), ADD])


def configs(problem, target):
    """Lanes along positions or along channels; as many splits as give each SM four blocks, half and twice as many."""
    for config in SPACE:
        blocks = ceil_div(problem.k, config["CHANNELS"])
        for splits in near(splits_for(problem, target, blocks, THREADS // config["CHANNELS"], 4)):
            yield config | {"SPLITS": splits}


def launches(problem, config, grad_output, out):
    splits = config["SPLITS"]
    yield from launches_of_splits(
        SOURCES[problem.dtype],
        [name.format(T=TYPES[problem.dtype], CHANNELS=config["CHANNELS"]) for name in (KERNEL, ADD)],
        grid=(ceil_div(problem.k, config["CHANNELS"]), splits),
        threads=THREADS,
        before=(grad_output, out),
        after=(*grad_output.shape, (*grad_output.stride(), *out.stride()), ceil_div(problem.terms, splits)),
        out=out[:, None, None, None],
    )


def work(problem, config, target):
    """Four loads of a thread are in flight."""
    channels, splits = config["CHANNELS"], config["SPLITS"]
    return of_sums(problem, channels, THREADS // channels, splits, THREADS, at_once=4), *added(problem, splits)


DESIGN = Design(configs=configs, launches=launches, work=work)
