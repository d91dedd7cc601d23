"""Config spaces of the gemm designs."""

from ...launch import ceil_div, configs_of

SEED = (128, 128, 8, 8, 8)  # the write-up's tile; the others are for few tiles, for longer slices, and for fewer loads per FMA
SMALL, LONG, WIDE = (64, 64, 16, 4, 4), (128, 128, 16, 8, 8), (128, 256, 8, 8, 16)


def tiles(*sizes, **also):
    """Configs of these (BM, BN, BK, TM, TN), each extended by the values in `also`."""
    return [config | also for config in configs_of("BM BN BK TM TN", *sizes)]


def each(space, **choices):
    """The space, repeated for each value of one more choice, as in each(space, GROUP=(1, 4))."""
    ((name, values),) = choices.items()
    return [config | {name: value} for value in values for config in space]


def tile_grid(problem, config):
    """(rows, columns) of tiles of C."""
    return ceil_div(problem.m, config["BM"]), ceil_div(problem.n, config["BN"])


def count_tiles(problem, config):
    """How many tiles of BM x BN cover C."""
    down, across = tile_grid(problem, config)
    return down * across
