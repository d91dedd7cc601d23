"""Tiles of the designs that multiply by wgmma: `candidates`, enumerated by loops, and `legal`, which counts what a tile takes.

Any multiple of 8 is a number of columns that wgmma multiplies by, so there are tiles that fill whole waves: 768 x 3584 are 72
tiles of 128 x 192 on 132 SMs, and 84 of 128 x 256; of 128 x 168 they are 132. Such a tile has 64, 128 or 192 along one side, 64
for each consumer, and along the other one, of `span`, so many that the tiles are a number of waves, or hardly fewer. That side
is columns of the tile, or if the tile is SWAPPED rows (swapped.cuh).

A small tile needs more bytes a product than a large one: for the 272 rows of slices of 128 x 144 L2 takes 1.4 times as long as
its products. So tiles side by side are clusters, which share them: of 4 x 2 each tile's part is 32 + 72 rows. Of 128 x 320 a
pair shares the 320, and fetches 288 rows a tile instead of 448.
"""

import functools
import itertools

import numpy

from tritonkernels.choice.model import reached_by
from tritonkernels.choice.work import KNOWN, kept

from ...launch import ceil_div, config_of, in_order

SLICE, BOX = 128, 64 * 128  # bytes of a line of a slice; of a box of the result
MOST_BYTES = 227 * 1024  # of a block's shared memory on Hopper
MOST_STAGES, FEW_STAGES, LEAST = 12, 4, 64
MOST_STAGES_ACROSS_K = 8
# Registers of a thread of so many consumers, and of these what a box of the result takes next to sums (block_memory.cuh)
REGISTERS, OF_A_BOX = {1: 255, 2: 232, 3: 160}, 64
ALL_REGISTERS, OF_A_SHORT_BOX = 240, 48  # where little follows: the producer has the rest of two consumers
MOST_PROMOTED = 64  # sums where slices have their own, too, which are two sets more

ROWS = (2, 128), (2, 256), (3, 192)  # of so many consumers
COLUMNS = 256, 192, 128, 64, 320  # of 320 last: it is two wgmmas
MOST_UNLIKE = 2.5  # sides of a tile: the longer one over the other. Longer tiles take more lines of L2 a product
FOR_TWO = (64, 64), (128, 64), (64, 128)  # tiles of which two share an SM: the next kernel's blocks are there early
ROWS_ACROSS_K = {2: (160, 96), 1: (256, 192, 160, 96)}  # of so many consumers, which hold 64 columns of B each in registers
OF_A_CONSUMER = (128, 128, 4), (128, 128, 2), (128, 192, 1), (64, 256, 2), (64, 128, 1)  # IN_TURN: rows, columns, CLUSTER
MOST_SPAN = {1: 256, 2: 256, 3: 192}  # of so many consumers, whose threads have half as many sums
OF_PAIRS = {2: 320, 3: 192}  # that share the span: L2 sends them less
EACH = 2  # tiles of a side, direction and cluster: those that take the least time
# (tiles side by side along the span, which share slices of the other side, and across it, which share those of the span)
CLUSTERS = (1, 1), (2, 1), (1, 2), (2, 2), (4, 2), (2, 4)
ONE_WGMMA, BOX_ACROSS_K = 256, 64  # columns, at most; of 16 bits
PAIRS = (192, 192, False, 2, 1), (128, 320, False, 1, 2)  # side, span, SWAPPED, CLUSTERS: of sizes that others have alone
NO_SPAN = 1 << 40
OVERHEAD = 16  # of a tile, as if its span were so much longer
WHOLE_ROWS = range(129, 321)  # columns of tiles that have all of a product's, in turn: fewer are of several tiles


def lines_of_slices(config, itemsize, a_by_k=True, b_by_k=True):
    """Lines of 128 bytes in a stage: one for each row or column of the tile, across K whole boxes."""
    box = SLICE // itemsize
    spans = (config["BM"], a_by_k), (config["BN"], b_by_k)
    return sum(span if by_k else ceil_div(span, box) * box for span, by_k in spans)


def shared_bytes(config, boxes=None, lines=None):
    """Per block: STAGES slices of both operands, of so many lines if not along K, two 8-byte mbarriers per stage; for each
    consumer another one and two boxes of the result, or one where two don't fit, and 4 bytes of bias for each column."""
    if boxes is None:
        two = shared_bytes(config, 2, lines)
        return two if two <= MOST_BYTES else shared_bytes(config, 1, lines)
    whole = config["STAGES"] * (SLICE * (lines or config["BM"] + config["BN"]) + 16)
    return whole + config["CONSUMERS"] * (boxes * BOX + 4 * config["BN"] + 8)


@kept
def sharers_of_slices(config):
    """(the blocks that share a slice of A, and of B). If the config does not say, a pair shares the larger operand's, if its
    half is whole boxes, and of four two share each."""
    if "SHARE_A" in config:
        return config["SHARE_A"], config["CLUSTER"] // config["SHARE_A"]
    if config.get("CLUSTER") == 4:
        return 2, 2
    cluster, halves_of_a, halves_of_b = config.get("CLUSTER", 1), config["BM"] % 128 == 0, config["BN"] % 128 == 0
    return (cluster, 1) if halves_of_a and (config["BM"] > config["BN"] or not halves_of_b) else (1, cluster)


def _share_whole_boxes(config):
    """Whether each block requests whole boxes of the slices that it shares."""
    share_a, share_b = sharers_of_slices(config)
    return config["BM"] % (64 * share_a) == 0 and config["BN"] % (64 * share_b) == 0


def promotes(problem):
    """Whether the sum of each slice is added to a total."""
    return problem.precision == "fp8" and problem.accumulate != "fast"


def sums(config):
    """The sums of a thread, whose consumer has all of the tile if it is one IN_TURN."""
    return config["BM"] * config["BN"] // (128 * (1 if "IN_TURN" in config else config["CONSUMERS"]))


@functools.lru_cache(KNOWN)
def taken(config, shared_bytes=shared_bytes):
    """(consumers, sums of a thread, bytes of shared memory)"""
    return config["CONSUMERS"], sums(config), shared_bytes(config)


def legal(config, problem, target, shared_bytes=shared_bytes):
    """Whether a block's slices and boxes fit in shared memory, and a thread's sums in its registers with what follows."""
    consumers, held, nbytes = taken(config, shared_bytes)
    if target.is_gpu and nbytes > target.shared_per_block:
        return False
    if problem.precision == "fp8" and consumers == 3:  # without registers for scales
        return False
    if promotes(problem) and (held > MOST_PROMOTED or "IN_TURN" in config):
        return False
    if problem.is_gated and not _fills_boxes_with_pairs(config, problem):
        return False
    by_all = consumers == 2 and held + OF_A_SHORT_BOX <= ALL_REGISTERS
    return held + OF_A_BOX <= REGISTERS[consumers] or (by_all and _is_short(problem))


def _fills_boxes_with_pairs(config, problem):
    """Whether pairs of a consumer's columns are at least a box of the result, in whole tiles of 8."""
    return not config.get("SWAPPED") and config["BN"] % 16 == 0 and config["BN"] // 2 * problem.out_dtype.itemsize >= SLICE


def _is_short(problem):
    """Whether what follows a sum is alpha alone, or where TMA writes 16 bits bias and a quick activation (activation.cuh)."""
    if problem.scales or problem.beta or problem.is_gated:
        return False
    return (problem.out_dtype.itemsize == 2 and problem.n % 8 == 0) or not (problem.bias or problem.activation)


def _tile(bm, bn, consumers, most_stages=MOST_STAGES, lines=None, **others):
    """The config of a tile, with as many stages as fit with two boxes of each consumer, or if these are few with one."""
    config = {"BM": bm, "BN": bn, "CONSUMERS": consumers}
    of_boxes = [shared_bytes(config | {"STAGES": 0}, boxes) for boxes in (2, 1)]
    fit = [(MOST_BYTES - nbytes) // (SLICE * (lines or bm + bn) + 16) for nbytes in of_boxes]
    stages = min(most_stages, fit[0] if fit[0] >= FEW_STAGES else fit[1])
    return config_of(**config, STAGES=stages, GROUP=4 if (bm, bn) == (256, 128) else 8, **others)


LARGE = [
    _tile(bm, bn, consumers, **({"CLUSTER": 1} if (bm, bn) == (256, 192) else {}))
    for (consumers, bm), bn in itertools.product(ROWS, COLUMNS)
    if max(bm, bn) <= MOST_UNLIKE * min(bm, bn)
]
SMALL = [_tile(bm, bn, 1, FEW_STAGES) for bm, bn in FOR_TWO]
DEEP = [_tile(64, bn, 1) for bn in (128, 64)]  # for one wave of small tiles


IN_CLUSTERS = [
    tile | {"CLUSTER": cluster}
    for cluster, tile in itertools.product((2, 4), LARGE)
    if tile["BN"] <= ONE_WGMMA and _share_whole_boxes(tile | {"CLUSTER": cluster})
]
# For a wave of small tiles: an SM gets half of what it multiplies by from its neighbours' requests
SMALL_FOURS = [tile | {"CLUSTER": 4} for tile in DEEP]
# SHARE_A of a cluster's blocks are side by side: four of 128 x 64 are 128 x 256, to which L2 sends each operand once
IN_ROWS = [
    _tile(bm, 64, bm // 64, CLUSTER=cluster, SHARE_A=share)
    for bm, cluster, share in ((128, 4, 4), (64, 4, 4), (64, 8, 2), (64, 8, 4))
]
ACROSS_K = [_tile(128, 64, 1)] + [
    _tile(bm, 64 * consumers, consumers, MOST_STAGES_ACROSS_K, SWAPPED=True)
    for consumers, rows in ROWS_ACROSS_K.items()
    for bm in rows
]
# Each consumer has a tile, and writes its result while the other multiplies
IN_TURN = [_tile(bm, bn, 2, CLUSTER=cluster, IN_TURN=True) for bm, bn, cluster in OF_A_CONSUMER]


def candidates(problem, target):
    """Tiles of every kind, legal or not. A config that is named by some of its numbers is the first that has them."""
    lies_across_k = problem.precision == "tf32" and (problem.a_layout, problem.b_layout) != ("row", "col")
    yield from (*in_order([*LARGE, SMALL[0]], target), *SMALL[1:], *IN_CLUSTERS, *SMALL_FOURS, *IN_ROWS)
    yield from ACROSS_K if lies_across_k else ()
    yield from DEEP
    yield from (tile for tile in that_fill_waves(problem, target) if tile not in DEEP)
    if not lies_across_k:
        yield from (*IN_TURN, *of_whole_rows(problem))


def that_fill_waves(problem, target):
    """Tiles for problems whose result TMA writes, without those of sizes that others have for every problem, but PAIRS."""
    along_k = problem.a_layout == "row", problem.b_layout == "col"
    if not _may_have_any_span(problem, along_k):
        return
    layout = problem.dtype.itemsize, *along_k
    for swapped in (True, False):
        length, other = (problem.m, problem.n) if swapped else (problem.n, problem.m)
        across_k = problem.dtype.itemsize == 2 and not along_k[not swapped]
        broken = across_k and not any(along_k)  # boxes: of the other direction's tiles they would be broken as well
        unit = 16 if problem.precision == "int8" else BOX_ACROSS_K if across_k and not broken else 8
        kinds, spans = _kinds(unit, swapped, across_k)
        side, along, across = kinds.T[:, :, None]
        lines = problem.batch * ceil_div(ceil_div(other, side), across)
        rounds = ceil_div(ceil_div(ceil_div(length, spans), along) * lines, _walkers(target.sms))
        fastest = numpy.where(spans < NO_SPAN, rounds * (spans + OVERHEAD), numpy.inf).argsort(kind="stable")[:, :EACH]
        of_kinds = (numpy.take_along_axis(values, fastest, 1).tolist() for values in (spans, rounds))
        for (side, along, across), *of_kind in zip(kinds.tolist(), *of_kinds):
            small = along > 1 < across  # clusters both ways are for one round: tiles of more are large enough without
            for span, turns in [*zip(*of_kind)][: 1 if small else EACH]:
                if span < NO_SPAN and (not small or turns == 1):
                    yield _spanning(layout, side, span, swapped, along, across)
    yield from (_spanning(layout, *pair) for pair in PAIRS)


@functools.cache
def _kinds(unit, swapped, across_k):
    """([side, along, across] of each kind of tiles, the spans that each may have, rising, NO_SPAN where there are no more)."""
    known = {(config["BM"], config["BN"]) for config in (*LARGE, SMALL[0])}
    kinds = [(64 * consumers, *cluster) for consumers, cluster in itertools.product(MOST_SPAN, CLUSTERS)]
    spans = [
        [span for span in _spans(unit, *kind, swapped, across_k) if (span, kind[0])[:: 1 if swapped else -1] not in known]
        for kind in kinds
    ]
    return numpy.array(kinds), numpy.array([*zip(*itertools.zip_longest(*spans, fillvalue=NO_SPAN))])


@functools.cache
def _walkers(sms):
    """The clusters of each kind that so many SMs hold; without a GPU three."""
    clusters = [along * across for _, (along, across) in itertools.product(MOST_SPAN, CLUSTERS)]
    return numpy.array([[reached_by(sms, cluster) // cluster or 3] for cluster in clusters])


def of_whole_rows(problem):
    """Tiles of 64 rows and all columns, if these are few, for two consumers in turn: A is read once, lines are written whole.
    131072 x 320 x 256 takes 46 us by 64 x 320, where 128 x 160 takes 56 and in turn 49 (H200)."""
    along_k = problem.a_layout == "row", problem.b_layout == "col"
    if not _may_have_any_span(problem, along_k) or problem.n not in WHOLE_ROWS:
        return
    across_k = problem.dtype.itemsize == 2 and not along_k[1]
    unit = BOX_ACROSS_K if across_k else 16 if problem.n > ONE_WGMMA or problem.precision == "int8" else 8
    columns = ceil_div(problem.n, unit) * unit
    lines = lines_of_slices({"BM": 64, "BN": columns}, problem.dtype.itemsize, *along_k)
    yield _tile(64, columns, 2, lines=lines, CLUSTER=1, IN_TURN=True)


def _may_have_any_span(problem, along_k):
    """Edges of boxes overlap, so nothing that may be the result's memory is read after the first is written; scales of rows are
    for whole lines of lanes; and what lies across K of tf32 has tiles of its own (transposed.cuh)."""
    if problem.beta or problem.scales == "rows" or problem.accumulate == "fp16" or problem.n * problem.out_dtype.itemsize % 16:
        return False
    return problem.precision != "tf32" or all(along_k)


def _spans(unit, side, along, across, swapped, across_k):
    """The multiples of `unit` that a tile may span, along K in whole eights for each of those that share it. What one wgmma
    does not multiply by has two halves, or whole boxes. What a pair of large tiles shares is the longer side."""
    step, pair, consumers = unit if across_k else max(unit, 8 * across), (along, across) == (1, 2), side // 64
    for span in range(max(LEAST, step), (OF_PAIRS.get(consumers, 0) if pair else MOST_SPAN[consumers]) + 1, step):
        halves = span <= ONE_WGMMA or span % (BOX_ACROSS_K if across_k else 2 * unit) == 0
        if halves and not (swapped and span % 128 == 0 and consumers > 1) and (not pair or span > side):
            yield span


@functools.lru_cache(KNOWN)
def _spanning(layout, side, span, swapped, along, across):
    bm, bn = (span, side) if swapped else (side, span)
    shared = {"CLUSTER": along * across, "SHARE_A": across if swapped else along} if along * across > 1 else {}
    lines = lines_of_slices({"BM": bm, "BN": bn}, *layout)
    return _tile(bm, bn, side // 64, lines=lines, **shared, **({"SWAPPED": True} if swapped else {}))
