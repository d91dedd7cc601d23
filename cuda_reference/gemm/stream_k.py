"""FP32 GEMM, stream_k: the configs and launches of stream_k.cuh."""

from tritonkernels.choice.work import product, streamed
from tritonkernels.design import Design
from tritonkernels.operations.gemm.float32_only import float32_only
from tritonkernels.operations.gemm.split_counts import ALONE, most_parts, one_by_one
from tritonkernels.operations.gemm.work import last_adds
from tritonkernels.workspace import counters, partial_sums

from ..launch import Kernel, ceil_div, in_order
from .parts.configs import SEED, SMALL, WIDE, count_tiles, tiles
from .parts.launches import arguments, block_tile, group, instance, threads, with_vector
from .parts.packed_rows import may_pack_rows

WAVES = 2  # that are shared: the rest and a full one, so that every block's run is long enough
SPACE = tiles(WIDE, SEED, SMALL, GROUP=4)
KERNEL = Kernel("gemm::stream_k<{BM}, {BN}, {BK}, {TM}, {TN}, {VECTOR}, {SHIFTED}>", with_vector(SPACE))


def configs(problem, target):
    """The tiles with as many BLOCKS as the GPU holds at a time, one an SM where sums fill its registers; in the emulation so
    few that blocks share tiles."""
    slots = max(target.sms, 2)
    return [c | {"BLOCKS": slots * (1 if c["TM"] * c["TN"] > 64 else 2)} for c in in_order(SPACE, target)]


def cut(problem, config):
    """(whole tiles, the others, the blocks that share these): so few that one block can add up the parts of a tile."""
    count, slices = count_tiles(problem, config), max(1, ceil_div(problem.k, config["BK"]))
    left = streamed(count, config["BLOCKS"], WAVES)
    parts = max(2, most_parts(ALONE // (4 * config["BM"] * config["BN"])))
    return count - left, left, min(config["BLOCKS"], left * min(slices, parts))


def launches(problem, config, a, b, c, out):
    whole, left, sharers = cut(problem, config)
    parts = arrivals = None
    if left != sharers:  # a cut goes through a tile
        parts, arrivals = partial_sums(2 * sharers, config["BM"] * config["BN"], out), counters(2 * sharers + left, out)
    given = *arguments(problem, a, b, c, out), group(problem, config), parts, arrivals, whole, sharers
    blocks = max(sharers, min(config["BLOCKS"], whole))
    yield KERNEL.launch(config | instance(a, b, out), (blocks,), threads(config), given)


def tile(config):
    return block_tile(config, holds_slices=True) | {"programs": config["BLOCKS"], "waves": WAVES}


def work(problem, config, target):
    """A tile that is cut has a part more than it has cuts, and a block cuts one: each part is written and read, `product` has
    counted one."""
    whole, left, sharers = cut(problem, config)
    t = tile(config) | ({"sharers": sharers} if left else {})
    kernel = product(problem, t, target)
    if left == sharers:
        return (kernel,)
    tiles_cut = min(left, sharers)
    tiles, parts, share = 1 + 3 * tiles_cut / sharers, 1 + sharers / tiles_cut, tiles_cut / (whole + left)
    return (last_adds(kernel, problem, t, one_by_one(int(parts)), tiles, share),)


DESIGN = may_pack_rows(Design(refuses=float32_only, configs=configs, launches=launches, work=work))
