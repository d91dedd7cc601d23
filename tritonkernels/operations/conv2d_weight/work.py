"""The Work of conv2d_weight's designs, for both packages."""

from ...choice.work import STORED, Work, ahead_of
from ...integers import ceil_div
from ..conv2d.work import of_product, whole


def of_tiles(problem, tile, splits, threads, of_unit, stages=1, thin=False, shared=None):
    """Tiles (BM, BN) of the weight that walk BL positions at a time, a range of them each; `thin`: each thread has all sums.
    A second kernel adds."""
    bm, bn, bl = tile
    itemsize, of_group = problem.dtype.itemsize, max(1, problem.c // problem.groups)
    if problem.channels_last:
        columns = ceil_div(bn, of_group) * whole(min(bn, of_group) * itemsize)
        a_slice = bl * (whole(min(bm, problem.rows) * itemsize) + columns)
    else:
        a_slice = (bm + bn) * whole(bl * itemsize)
    given = ceil_div(problem.terms, bl), splits, a_slice, of_unit, threads, stages, shared
    one = of_product(problem, problem.rows, problem.columns, tile, *given, adds=False)
    return one._replace(registers=min(255, 40 + bm * bn)) if thin else one


def of_pieces(problem, share, tile, threads, of_unit, stages, registers, turns=0):
    """Blocks that share the tiles (BM, BN) of the weight as the Cut `share` says, in slices of BL positions. The last to arrive
    adds up the parts of a tile in so many `turns`; with none a second kernel does."""
    (bm, bn, bl), itemsize = tile, problem.dtype.itemsize
    shared = share.left > 0 and share.parts > 1
    return Work(
        share.blocks,
        threads,
        2.0 * bm * bn * bl * share.longest,
        of_unit,
        share.longest * (bm + bn) * itemsize * bl + (4 * bm * bn * (1 + (share.parts if turns else 0)) if shared else 0),
        problem.bytes,
        2 + share.longest / ahead_of(stages) + (turns if shared else 0),
        registers,
        stages * (bm + bn) * itemsize * bl,
        bm * bn * STORED,
    )
