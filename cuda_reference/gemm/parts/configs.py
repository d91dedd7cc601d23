"""Config spaces of the gemm designs, and their order for a problem: pure functions of Problem and Target."""

from ...launch import ceil_div, configs_of

OPERAND_FMAS = 24  # FMAs in the time that a block takes to fetch an operand: fits the tiles' order on an H200
ALONE = 1.15  # slowdown of a single block per SM: nothing hides its waits. With 4 stages it hardly waits
LONG_SINGLES = 1.2  # slowdown of slices of 16 k that are read float by float: their addresses take too many registers
WORKSPACE_FMAS = 50  # FMAs in the time that an SM of an H200 writes and reads a float: 8 bytes at 20 B/clock, 128 FMA/clock

SEED = (128, 128, 8, 8, 8)  # the seed's tile; the others are for few tiles, for longer slices, and for fewer loads per FMA
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


def fewest_rounds(space, problem, target):
    """The least predicted time first: rounds of one tile per SM, times the cost of a tile."""
    return sorted(space, key=lambda config: _rounds(problem, config, target) * _tile_cost(problem, config))


def _rounds(problem, config, target, splits=1):
    return ceil_div(count_tiles(problem, config) * splits, max(target.sms, 1))


def _tile_cost(problem, config):
    """In FMAs per k: BM * BN products, and BM + BN operands to fetch."""
    fmas = config["BM"] * config["BN"] + OPERAND_FMAS * (config["BM"] + config["BN"])
    if config["BK"] > 8 and config["TM"] * config["TN"] >= 64 and (problem.n % 4 or problem.k % 4):
        fmas *= LONG_SINGLES
    return fmas * (ALONE if _alone(config) and config.get("STAGES", 0) < 4 else 1)


def _alone(config):
    """Whether a thread has more than 64 sums, which leaves registers for one block per SM only (Shape in tile_io.cuh)."""
    return config["TM"] * config["TN"] > 64


def squarest_wave(space, problem, target):
    """`fewest_rounds`; of equals, the one whose waves read the fewest rows and columns first."""

    def operands(config):
        down, across = tile_grid(problem, config)
        rows = min(config["GROUP"] or down, down)
        cols = min(ceil_div(max(target.sms, 1), max(rows, 1)), across)
        return rows * config["BM"] + cols * config["BN"]

    return fewest_rounds(sorted(space, key=operands), problem, target)


def enough_splits(space, problem, target):
    """The tile and splits of the least predicted time first, with the time to write and read the partial sums."""

    def time(config):
        splits = config["SPLITS"]
        length = ceil_div(ceil_div(problem.k, config["BK"]), splits) * config["BK"]
        multiply = _rounds(problem, config, target, splits) * _tile_cost(problem, config) * length
        return multiply + splits * problem.m * problem.n / max(target.sms, 1) * WORKSPACE_FMAS

    return sorted(space, key=time)


def a_block_per_slot(space, problem, target):
    """BLOCKS is the number of blocks that run at a time. The largest tile that gives each block a slice comes first: stream-K
    has no tail effect, so small tiles have no advantage.
    """
    slots = max(target.sms, 2)  # in the emulation 2, so that blocks share tiles
    space = [config | {"BLOCKS": slots * (1 if _alone(config) else 2)} for config in space]

    def idles(config):
        return count_tiles(problem, config) * ceil_div(problem.k, config["BK"]) < config["BLOCKS"]

    return sorted(space, key=lambda config: (idles(config), -config["BM"] * config["BN"]))
