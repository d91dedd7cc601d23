"""The Work of matmul's designs, of both packages; tile(config) gives the block tile in the analysis' terms."""

import functools

from ...choice.work import KNOWN_PROBLEMS, Work, addition, copy, kept, lines_of, product
from ...problem import PACKED
from ..gemm.split_counts import at_once, one_by_one
from .schemes import AGAIN, SCHEMES, padded


@functools.lru_cache(KNOWN_PROBLEMS)
def lines_of_rows(problem):
    """lines_of A's and B's rows as they lie."""
    rows = problem.row_bytes
    return lines_of(rows["a"]), lines_of(rows["b"])


def main_kernel(problem, tile, target, packed):
    """The kernel that multiplies; whether A and B are `packed`, in rows of whole lines of L2. The tile may have the elements of
    a `box` that is copied whole, of what lies across K."""
    packs_a, packs_b = packed
    of_a, of_b = lines_of_rows(problem)
    if box := tile.get("box"):
        if problem.a_layout != "row":
            of_a = of_a * -(-tile["BM"] // box) * box / tile["BM"]
        if problem.b_layout != "col":
            of_b = of_b * -(-tile["BN"] // box) * box / tile["BN"]
    lines = 1.0 if packs_a else of_a, 1.0 if packs_b else of_b
    return product(problem, tile, target, None, PACKED.get(problem.precision, 1), problem.batch, lines)


@functools.lru_cache(KNOWN_PROBLEMS)
def copies(problem, packs_a, packs_b):
    """The kernels that pack operands, those that the batch shares once."""
    itemsize, per_byte = problem.dtype.itemsize, PACKED.get(problem.precision, 1)
    k = -(-problem.k // per_byte)
    of_a = copy(1 if problem.a_shared else problem.batch, problem.m, k, itemsize)
    of_b = copy(1 if problem.b_shared else problem.batch, problem.n, k, itemsize)
    return (of_a,) * bool(packs_a) + (of_b,) * bool(packs_b)


def as_they_lie(problem, config):
    """`packs` of a design that packs no operand."""
    return False, False


def of_tiles(tile, packs=as_they_lie):
    """`work` of a design with one kernel after the packing of operands: packs(problem, config) says of which."""
    tile_of = kept(tile)

    def work(problem, config, target):
        packed = packs(problem, config)
        return (*copies(problem, *packed), main_kernel(problem, tile_of(config), target, packed))

    return work


def of_splits(tile, packs=as_they_lie, alone=None, rows=1, second=None):
    """The work of `splits` parts of K, which the last block of a tile adds up: in groups if they are many, or one by one up to
    `alone` bytes, above which a second kernel does it, whose blocks take `rows` rows, or which is second(problem, splits)."""
    tile_of = kept(tile)

    def work(problem, config, target):
        t = tile_of(config)
        splits, bm, bn = t["splits"], t["BM"], t["BN"]
        packed = packs(problem, config)
        kernel = main_kernel(problem, t, target, packed)
        before = copies(problem, *packed)
        if splits == 1:
            return *before, kernel
        if alone is None or (8 if problem.accumulate == "fp64" else 4) * splits * bm * bn <= alone:
            return *before, _adding(kernel, t, in_groups=alone is None)
        if second:
            return *before, kernel, second(problem, splits)
        blocks = problem.batch * -(-problem.m // bm) * -(-problem.n // bn) * (bm // rows)
        return (
            *before,
            kernel,
            addition(problem, splits, rows * bn, 128, problem.batch, blocks, at_once(splits, rows * bn, 128)),
        )

    return work


def _adding(kernel, tile, in_groups):
    """The kernel whose last block of a tile adds up all splits' sums: in groups if they are many (CUDA), where each is a trip
    after the block's own sums, the fence and the counter; or one by one (Triton), where some are on their way at once."""
    splits = tile["splits"]
    parts = 4.0 * tile["BM"] * tile["BN"] * (splits + 1) / splits  # bytes of a block, on average; the last waits for them
    trips = 4 + one_by_one(splits) if in_groups else 2 + splits / 4
    return kernel.and_also(parts, trips)


@functools.lru_cache(KNOWN_PROBLEMS)
def computed_again(problem):
    """The kernel that looks for results that planes refused, as a rule in vain: it reads how many elements may be lost."""
    if not SCHEMES[problem.precision].again:
        return ()
    tiles = problem.batch * -(-problem.m // AGAIN) * -(-problem.n // AGAIN)
    return (Work(tiles, 128, 0.0, "ieee", 8.0 * AGAIN, 4.0 * problem.batch * (problem.m + problem.n), 1),)


@functools.lru_cache(KNOWN_PROBLEMS)
def splitting(problem):
    """The kernels that split operands into planes, once each: one, or two where rows are shifted by their range."""
    scheme, whole = SCHEMES[problem.precision], padded(problem.k)
    sides = ((problem.m, problem.a_shared), (problem.n, problem.b_shared))[: 1 if problem.b_split else 2]
    return tuple(
        copy(1 if shared else problem.batch, rows, whole, 4, written)
        for rows, shared in sides
        for written in ((0, scheme.planes) if scheme.shifted else (scheme.planes,))
    )


def of_planes(tile, in_groups):
    """The work of a product of planes, which are made first. Sums of several splits of K are added up as `_adding` says."""
    tile_of = kept(tile)

    def work(problem, config, target):
        scheme = SCHEMES[problem.precision]
        t, itemsize = tile_of(config), scheme.planes * scheme.dtype.itemsize
        kernel = product(problem, t, target, itemsize=itemsize, batch=problem.batch)
        kernel = _adding(kernel, t, in_groups) if t.get("splits", 1) > 1 else kernel
        return *splitting(problem), kernel, *computed_again(problem)

    return work
