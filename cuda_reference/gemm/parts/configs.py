"""Config spaces of the gemm rungs, and which of its space's configs a problem gets: pure functions of Problem and Target."""

from ...launch import ceil_div, configs_of

OPERAND_FMAS = 24  # FMAs in the time that a block takes to fetch an operand: fits the tiles' order on an H200
ALONE = 1.15  # slower by this is a block with an SM to itself: nobody works while it waits; 4 stages wait too seldom to matter
LONG_SINGLES = 1.2  # slower by this is a slice of 16 k that is read float by float: it has no registers for so many addresses
WORKSPACE_FMAS = 50  # FMAs in the time that an SM of an H200 writes and reads a float: 8 bytes at 20 B/clock, 128 FMA/clock

SEED = (128, 128, 8, 8, 8)  # the seed's tile; the others are for few tiles, for longer slices, and for fewer loads per FMA
SMALL, LONG, WIDE = (64, 64, 16, 4, 4), (128, 128, 16, 8, 8), (128, 256, 8, 8, 16)


def tiles(*sizes, **also):
    """Configs of these (BM, BN, BK, TM, TN), each with what else is given."""
    return [config | also for config in configs_of("BM BN BK TM TN", *sizes)]


def each(space, **choices):
    """The space once for every value of the one choice."""
    ((name, values),) = choices.items()
    return [config | {name: value} for value in values for config in space]


def tile_grid(problem, config):
    """Tiles of C down and across."""
    return ceil_div(problem.m, config["BM"]), ceil_div(problem.n, config["BN"])


def count_tiles(problem, config):
    """How many tiles of BM x BN cover C."""
    down, across = tile_grid(problem, config)
    return down * across


def fewest_rounds(space, problem, target):
    """First the tile that is done soonest: rounds of one tile per SM, times what a tile costs."""
    return sorted(space, key=lambda config: _rounds(problem, config, target) * _tile_cost(problem, config))


def _rounds(problem, config, target, splits=1):
    return ceil_div(count_tiles(problem, config) * splits, max(target.sms, 1))


def _tile_cost(problem, config):
    """In FMAs per k: one an element, and BM + BN operands to fetch for BM * BN of them."""
    fmas = config["BM"] * config["BN"] + OPERAND_FMAS * (config["BM"] + config["BN"])
    if config["BK"] > 8 and config["TM"] * config["TN"] >= 64 and (problem.n % 4 or problem.k % 4):
        fmas *= LONG_SINGLES
    return fmas * (ALONE if _alone(config) and config.get("STAGES", 0) < 4 else 1)


def _alone(config):
    """More than 64 sums a thread: there are registers for one block an SM (Shape in tile_io.cuh)."""
    return config["TM"] * config["TN"] > 64


def squarest_wave(space, problem, target):
    """`fewest_rounds`, and of its equals first the one whose blocks, running at a time, read the fewest rows and columns."""

    def operands(config):
        down, across = tile_grid(problem, config)
        rows = min(config["GROUP"] or down, down)
        cols = min(ceil_div(max(target.sms, 1), max(rows, 1)), across)
        return rows * config["BM"] + cols * config["BN"]

    return fewest_rounds(sorted(space, key=operands), problem, target)


def enough_splits(space, problem, target):
    """First the tile and number of splits that are done soonest, the partial sums' way through memory included."""

    def time(config):
        splits = config["SPLITS"]
        length = ceil_div(ceil_div(problem.k, config["BK"]), splits) * config["BK"]
        multiply = _rounds(problem, config, target, splits) * _tile_cost(problem, config) * length
        return multiply + splits * problem.m * problem.n / max(target.sms, 1) * WORKSPACE_FMAS

    return sorted(space, key=time)


def a_block_per_slot(space, problem, target):
    """With the blocks that the target runs at a time as BLOCKS. The largest tile that leaves every block a slice comes first:
    here no tile costs a tail."""
    slots = max(target.sms, 2)  # in the emulation, few enough to share tiles
    space = [config | {"BLOCKS": slots * (1 if _alone(config) else 2)} for config in space]

    def idles(config):
        return count_tiles(problem, config) * ceil_div(problem.k, config["BK"]) < config["BLOCKS"]

    return sorted(space, key=lambda config: (idles(config), -config["BM"] * config["BN"]))
