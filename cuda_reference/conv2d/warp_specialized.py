"""conv2d, warp_specialized: the configs, tensor maps and launches of warp_specialized.cuh."""

from tritonkernels.choice.work import MANY, STORED, Work, ahead_of, streamed
from tritonkernels.design import Design
from tritonkernels.operations.conv2d.on_hopper import refuses_on_hopper
from tritonkernels.operations.conv2d.taps import CHUNK, are_across, every_tap, lie_along, matrices
from tritonkernels.workspace import counters, partial_sums

from ..conv2d_weight.parts.channels_last import copied, in_chunks
from ..launch import Kernel, TensorMap, ceil_div, configs_of, resident
from .parts.operands import TYPES, arguments, followed, what_follows
from .parts.pixel_boxes import are_pixels, beyond_maps, map_of_inputs

ROW_BYTES = 128  # of a slice's channels
MOST_POSITIONS = 2**31 - 2**10  # numbers up to the end of the last tile fit in 32 bits
LEAST = 4  # slices of a block: fewer take less time than a part of the tile
_NAMES = "BM BN CONSUMERS STAGES CLUSTER"
SPACE = configs_of(
    _NAMES,
    (128, 256, 2, 4, 1),
    (256, 128, 2, 4, 1),
    (128, 192, 2, 5, 1),
    (128, 160, 2, 5, 1),
    (256, 96, 2, 4, 1),
    (128, 128, 2, 6, 1),
    (256, 64, 2, 5, 1),
    (128, 64, 2, 8, 1),
    (64, 256, 2, 5, 1),
    (64, 128, 2, 8, 1),
    (128, 256, 2, 4, 2),
    (256, 128, 2, 4, 2),
    (128, 192, 2, 5, 2),
    (128, 160, 2, 5, 2),
    (128, 128, 2, 6, 2),
    (128, 128, 1, 3, 1),
    (128, 96, 1, 3, 1),
    (128, 64, 1, 4, 1),
    (64, 128, 1, 4, 1),
)
_KERNEL = Kernel(
    "conv2d::warp_specialized<{T}, {BM}, {BN}, {CONSUMERS}, {STAGES}, {CLUSTER}, {ALONG_C}, {CHANNELS_INSIDE}, {HALVES}>",
    [{"CHANNELS_INSIDE": inside, "HALVES": halves} for inside in (True, False) for halves in (True, False)],
)
_FOLLOWED = followed(_KERNEL)


def refuses(problem, target):
    positions = problem.n * problem.p * problem.q
    if positions > MOST_POSITIONS:
        return f"it numbers output pixels in 32 bits, {positions} are too many"
    return refuses_on_hopper(problem, target, along=True) or beyond_maps(problem)


def configs(problem, target):
    """Each tile, with the last wave's shared to the slice, and whole."""
    for tile in SPACE:
        for blocks in (resident(target, tile["CLUSTER"], 3 - tile["CONSUMERS"]),) if target.is_gpu else (6, 64):
            for shares in (True, False):
                yield tile | {"BLOCKS": blocks, "SHARES": shares}


def _depth(dtype):
    """The channels of a slice."""
    return ROW_BYTES // dtype.itemsize


def _slices(problem):
    return problem.r * problem.s * ceil_div(problem.c, _depth(problem.dtype))


def _has_halves(problem):
    """Whether a tap's last slice has zeros in its second half, which are not multiplied."""
    depth = _depth(problem.dtype)
    return 0 < problem.c % depth <= depth // 2


def cut(problem, config):
    """(whole tiles, the others, the clusters that share these), all of clusters."""
    positions, blocks = problem.n * problem.p * problem.q, config["BLOCKS"] // config["CLUSTER"]
    count = ceil_div(positions, config["BM"] * config["CLUSTER"]) * ceil_div(problem.k, config["BN"])
    left = streamed(count, blocks, 1) if config["SHARES"] else 0
    return count - left, left, min(blocks, max(left, min(left * _slices(problem) // LEAST, left * MANY)))


def launches(problem, config, input, weight, bias, out, residual=None, taps=None):
    """taps: where the convolution's are among those of `weight`, if it has more of them or in another order."""
    across = are_across(weight)
    operands = (input, are_pixels), (weight, lambda filters, _: across or lie_along(filters, 1))
    (input, filters), copies = in_chunks(*operands)
    yield from copies
    whole, left, sharers = cut(problem, config)
    cluster, consumers, parts, arrivals = config["CLUSTER"], config["CONSUMERS"], None, None
    if left != sharers:  # a cut goes through a tile
        parts = partial_sums(2 * sharers * cluster, config["BM"] * config["BN"], out)
        arrivals = counters((2 * sharers + left) * cluster * consumers, out)
    maps = (
        map_of_inputs(problem, input, (config["BM"], _depth(problem.dtype))),
        _map_of_filters(problem, config, filters, across),
    )
    *_, geometry, strides = arguments(problem, input, filters, bias, out)
    constants = {name: config[name] for name in _NAMES.split()}
    given = *maps, bias, out, geometry, strides, taps or every_tap(problem)
    yield (_FOLLOWED if problem.after else _KERNEL).launch(
        {"T": TYPES[problem.dtype], "ALONG_C": not across, "CHANNELS_INSIDE": out.stride(1) == 1}
        | {"HALVES": _has_halves(problem), **constants},
        (cluster * max(sharers, min(config["BLOCKS"] // cluster, whole)),),
        (consumers + 1) * 128,
        (*given, parts, arrivals, whole, left, sharers, *what_follows(problem, residual)),
        shared_bytes(config, across),
    )


def _map_of_filters(problem, config, filters, across):
    """The map of their matrices: a box has a block's share of filters; across C 64 of them, or of these its share of C."""
    shares, depth = config["CLUSTER"], _depth(problem.dtype)
    rows = config["BN"] // shares
    if across:
        rows = depth if ceil_div(config["BN"], depth) % shares == 0 else depth // shares
    return TensorMap(matrices(filters, across), (rows, depth), problem.precision == "tf32")


def shared_bytes(config, across):
    """Bytes of a block: its stages and their barriers, of each consumer a box and the biases of its columns, and a flag."""
    bm, bn, consumers, stages = (config[name] for name in ("BM", "BN", "CONSUMERS", "STAGES"))
    columns = bn if bm > 64 else bn // consumers
    lines = ceil_div(bn, 64) * 64 if across else bn  # of 16 bits, as tf32 never lies across
    return stages * ((bm + lines) * ROW_BYTES + 16) + consumers * (64 * ROW_BYTES + 4 * columns + 8)


def work(problem, config, target):
    whole, left, sharers = cut(problem, config)
    bm, bn, cluster, slices = config["BM"], config["BN"], config["CLUSTER"], _slices(problem)
    depth = _depth(problem.dtype)
    walkers = max(sharers, min(config["BLOCKS"] // cluster, whole))
    tiles = ceil_div(whole, walkers)
    own = tiles * slices + (ceil_div(left * slices, sharers) if left else 0)  # slices of the block that has most
    depth -= _has_halves(problem) * depth / 2 * problem.r * problem.s / slices  # on average
    sums = 4 * bm * bn * (1 + ceil_div(sharers, left)) if left != sharers else 0
    main = Work(
        walkers * cluster,
        (config["CONSUMERS"] + 1) * 128,
        2.0 * bm * bn * own * depth,
        problem.precision,
        own * (bm + bn / cluster) * ROW_BYTES + sums + problem.outputs * problem.dtype.itemsize / (walkers * cluster),
        problem.bytes,
        2 + own / ahead_of(config["STAGES"]) + (ceil_div(sharers, left) if sums else 0),
        168 if config["CONSUMERS"] == 2 else 128,
        config["STAGES"] * (bm + bn) * ROW_BYTES,
        bm * bn * STORED * (tiles + (left > 0)),
        cluster,
    )
    return *copied(problem, (problem.n, problem.c, problem.h * problem.w), *_packed(problem)), main


def _packed(problem):
    """The filters' sizes, if they are copied."""
    if problem.r * problem.s == 1 and problem.c * problem.dtype.itemsize % CHUNK == 0:
        return ()
    return ((problem.k, problem.c, problem.r * problem.s),)


DESIGN = Design(refuses=refuses, configs=configs, launches=launches, work=work, reads_taps=True)
