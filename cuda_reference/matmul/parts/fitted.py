"""Tiles of the design persistent that fill whole waves: any multiple of 8 is a number of columns that wgmma multiplies by.

768 x 3584 are 72 tiles of 128 x 192 on 132 SMs, and 84 of 128 x 256; of 128 x 168 they are 132. A tile has 64, 128 or 192 along
one side, 64 for each consumer, and along the other one, of `span`, so many that the tiles are a number of waves, or hardly
fewer. That side is columns of the tile, or if the tile is SWAPPED rows (swapped.cuh).

A small tile needs more bytes a product than a large one: for the 272 rows of slices of 128 x 144 L2 takes 1.4 times as long as
its products. So tiles side by side are clusters, which share them: of 4 x 2 each tile's part is 32 + 72 rows. Of 128 x 320 a
pair shares the 320, and fetches 288 rows a tile instead of 448.
"""

import functools
import itertools

from tritonkernels.choice.model import reached_by

from ...launch import ceil_div, config_of

SLICE, BOX = 128, 64 * 128  # bytes of a line of a slice; of a box of the result
MOST_BYTES = 227 * 1024  # of a block's shared memory on Hopper
MOST_STAGES, FEW_STAGES, LEAST = 12, 4, 64
MOST_SPAN = {1: 256, 2: 256, 3: 192}  # of so many consumers, whose threads have half as many sums
OF_PAIRS = {2: 320, 3: 192}  # that share the span: L2 sends them less
EACH = 2  # tiles of a side, direction and cluster: those that take the least time
# (tiles side by side along the span, which share slices of the other side, and across it, which share those of the span)
CLUSTERS = (1, 1), (2, 1), (1, 2), (2, 2), (4, 2), (2, 4)
ONE_WGMMA, BOX_ACROSS_K = 256, 64  # columns, at most; of 16 bits
PAIRS = (192, 192, 3, False, 2, 1), (128, 320, 2, False, 1, 2)  # of sizes that others have alone
OVERHEAD = 16  # of a tile, as if its span were so much longer
WHOLE_ROWS = range(129, 321)  # columns of tiles that have all of a product's, in turn: fewer are of several tiles


def lines_of_slices(config, itemsize, a_by_k=True, b_by_k=True):
    """How many lines of 128 bytes a stage has: one for each row or column of the tile, across K whole boxes."""
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


def that_fill_waves(problem, target, others):
    """Configs of tiles for problems whose result TMA writes, without those of the sizes of `others`, but PAIRS of these."""
    along_k = problem.a_layout == "row", problem.b_layout == "col"
    if not _may_have_any_span(problem, along_k):
        return
    known = {(config["BM"], config["BN"]) for config in others}
    slices_of = functools.partial(lines_of_slices, itemsize=problem.dtype.itemsize, a_by_k=along_k[0], b_by_k=along_k[1])
    for swapped, consumers, (along, across) in itertools.product((True, False), MOST_SPAN, CLUSTERS):
        length, other = (problem.m, problem.n) if swapped else (problem.n, problem.m)
        across_k = problem.dtype.itemsize == 2 and not along_k[not swapped]
        broken = across_k and not any(along_k)  # boxes: of the other direction's tiles they would be broken as well
        unit = 16 if problem.precision == "int8" else BOX_ACROSS_K if across_k and not broken else 8
        side, walkers = 64 * consumers, reached_by(target.sms, along * across) // (along * across) or 3
        lines = problem.batch * ceil_div(ceil_div(other, side), across)
        rounds = {}  # of the walkers
        for span in _spans(unit, side, consumers, swapped, (along, across), across_k):
            if ((span, side) if swapped else (side, span)) not in known:
                rounds[span] = ceil_div(ceil_div(ceil_div(length, span), along) * lines, walkers)
        small = along > 1 < across  # clusters both ways are for one round: tiles of more are large enough without
        for span in sorted(rounds, key=lambda span: rounds[span] * (span + OVERHEAD))[: 1 if small else EACH]:
            if not small or rounds[span] == 1:
                yield _config(slices_of, side, span, consumers, swapped, along, across)
    yield from (_config(slices_of, *pair) for pair in PAIRS)


def of_whole_rows(problem):
    """Tiles of 64 rows and all columns, if few, for two consumers in turn: A is read once, and lines are written whole.
    131072 x 320 x 256 takes 46 us by 64 x 320, where 128 x 160 takes 56 and in turn 49 (H200)."""
    along_k = problem.a_layout == "row", problem.b_layout == "col"
    if not _may_have_any_span(problem, along_k) or problem.n not in WHOLE_ROWS:
        return
    across_k = problem.dtype.itemsize == 2 and not along_k[1]
    unit = BOX_ACROSS_K if across_k else 16 if problem.n > ONE_WGMMA or problem.precision == "int8" else 8
    slices_of = functools.partial(lines_of_slices, itemsize=problem.dtype.itemsize, a_by_k=along_k[0], b_by_k=along_k[1])
    config = {"BM": 64, "BN": ceil_div(problem.n, unit) * unit, "CONSUMERS": 2}
    yield config_of(**config, STAGES=_stages(config, slices_of(config)), GROUP=8, CLUSTER=1, IN_TURN=True)


def _may_have_any_span(problem, along_k):
    """Edges of boxes overlap, so nothing that may be the result's memory is read after the first is written; scales of rows are
    for whole lines of lanes; and what lies across K of tf32 has tiles of its own (transposed.cuh)."""
    if problem.beta or problem.scales == "rows" or problem.accumulate == "fp16" or problem.n * problem.out_dtype.itemsize % 16:
        return False
    return problem.precision != "tf32" or all(along_k)


def _spans(unit, side, consumers, swapped, cluster, across_k):
    """The multiples of `unit` that a tile may span, along K in whole eights for each of those that share it. What one wgmma
    does not multiply by has two halves, or whole boxes. What a pair of large tiles shares is the longer side."""
    step, pair = unit if across_k else max(unit, 8 * cluster[1]), cluster == (1, 2)
    for span in range(max(LEAST, step), (OF_PAIRS.get(consumers, 0) if pair else MOST_SPAN[consumers]) + 1, step):
        halves = span <= ONE_WGMMA or span % (BOX_ACROSS_K if across_k else 2 * unit) == 0
        if halves and not (swapped and span % 128 == 0 and consumers > 1) and (not pair or span > side):
            yield span


def _config(slices_of, side, span, consumers, swapped, along, across):
    bm, bn = (span, side) if swapped else (side, span)
    config = {"BM": bm, "BN": bn, "CONSUMERS": consumers}
    config |= {"STAGES": _stages(config, slices_of(config)), "GROUP": 8}
    shared = {"CLUSTER": along * across, "SHARE_A": across if swapped else along} if along * across > 1 else {}
    return config_of(**config, **shared, **({"SWAPPED": True} if swapped else {}))


def _stages(config, lines):
    """As many as fit with two boxes of each consumer, or with one if they are too few."""
    of_boxes = [shared_bytes(config | {"STAGES": 0}, boxes) for boxes in (2, 1)]
    fit = [(MOST_BYTES - others) // (SLICE * lines + 16) for others in of_boxes]
    return min(MOST_STAGES, fit[0] if fit[0] >= FEW_STAGES else fit[1])
