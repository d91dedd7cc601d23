"""The Work of gemm's designs, of both packages; tile(config) gives the block tile in the analysis' terms."""

import functools

from ...choice.work import KNOWN_PROBLEMS, copy, kept, product, sharers_of, stream_addition, streamed


def of_tiles(tile):
    """`work` of a design with one kernel."""
    tile_of = kept(tile)
    return lambda problem, config, target: (product(problem, tile_of(config), target),)


def of_packed_tiles(tile):
    """The same of a design that first packs an A that does not lie along M, and a B that does not along N."""
    tile_of = kept(tile)

    @functools.lru_cache(KNOWN_PROBLEMS)
    def copies(problem):
        m, n, k = problem.m, problem.n, problem.k
        packs_a, packs_b = problem.a_layout != "col" or m % 16, problem.b_layout != "row" or n % 16
        return (*((copy(1, m, k, 4),) if packs_a else ()), *((copy(1, n, k, 4),) if packs_b else ()))

    def work(problem, config, target):
        return (*copies(problem), product(problem, tile_of(config), target))

    return work


def of_splits(tile, splits, one_by_one=int):
    """The work of splits(problem, config) parts of K; the last block of a tile adds them up, one_by_one(parts) in turn."""
    tile_of = kept(tile)

    def work(problem, config, target):
        t, parts = tile_of(config), splits(problem, config)
        kernel = product(problem, t | {"splits": parts}, target)
        return (last_adds(kernel, problem, t, one_by_one(parts), 1 + 1 / parts) if parts > 1 else kernel,)

    return work


UNDER_WAY = 64  # registers of a thread for the parts that it reads


def last_adds(kernel, problem, t, parts, tiles, share=1):
    """The Work of a product, with what the last block to arrive does for its `share` of the result: it reads `parts` sums of a
    tile and writes the tile. That is the bytes of so many `tiles` for a block on average, and trips after its own sums."""
    steps = 2 + parts * t["BM"] * t["BN"] / t["threads"] / UNDER_WAY
    return kernel.and_also(4.0 * t["BM"] * t["BN"] * tiles, steps, share * problem.m * problem.n * problem.out_dtype.itemsize)


def of_streams(tile):
    """The work of tiles whose last ones are shared to the slice; a second kernel adds up the cut ones."""
    tile_of = kept(tile)

    def work(problem, config, target):
        t = tile_of(config)
        shared = streamed(-(-problem.m // t["BM"]) * -(-problem.n // t["BN"]), t["programs"], t["waves"])
        slices = max(1, -(-problem.k // t["BK"]))
        kernel = product(problem, t, target)
        if -(-shared * slices // sharers_of(shared, slices, t["programs"])) % slices == 0:  # no tile is cut
            return (kernel,)
        return kernel, stream_addition(problem, shared, kernel.blocks, t["BM"] * t["BN"], t["threads"])

    return work
