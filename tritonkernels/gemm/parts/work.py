"""The Work of gemm's designs, of both packages; tile(config) gives the block tile in the analysis' terms."""

import functools

from ...choice.work import KNOWN_PROBLEMS, addition, copy, kept, product, stream_addition, streamed


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


def of_splits(tile, block, threads, blocks=lambda problem: None):
    """Of `splits` parts of K, added up by a second kernel, `block` elements a block."""
    tile_of = kept(tile)

    def work(problem, config, target):
        t = tile_of(config)
        return product(problem, t, target), addition(problem, t["splits"], block, threads, blocks=blocks(problem))

    return work


def of_streams(tile):
    """Of tiles of which the last ones are shared to the slice; a second kernel adds up those that are cut."""
    tile_of = kept(tile)

    def work(problem, config, target):
        t = tile_of(config)
        shared = streamed(-(-problem.m // t["BM"]) * -(-problem.n // t["BN"]), t["programs"], t["waves"])
        kernel = product(problem, t, target)
        if not shared:
            return (kernel,)
        return kernel, stream_addition(problem, shared, kernel.blocks, t["BM"] * t["BN"], t["threads"], blocks=shared)

    return work
