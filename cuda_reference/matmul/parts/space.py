"""The order of a config space, the likely best first: pure functions of Problem and Target."""

from ...launch import ceil_div


def tiles(problem, rows, cols):
    """Tiles that cover one matrix of the result."""
    return ceil_div(problem.m, rows) * ceil_div(problem.n, cols)


def filling(space, problem, target):
    """The largest tile that gives each SM a block first, or the smallest if none does. The space begins with the largest."""
    enough = [c for c in space if problem.batch * tiles(problem, c["BM"], c["BN"]) >= target.sms]
    return enough + [c for c in reversed(space) if c not in enough]


def fastest(space, problem, target, operand_fmas):
    """The least predicted time first: rounds of one tile per SM, times the tile's multiply-adds and fetched operands."""

    def time(config):
        rounds = ceil_div(tiles(problem, config["BM"], config["BN"]) * problem.batch, max(target.sms, 1))
        return rounds * (config["BM"] * config["BN"] + operand_fmas * (config["BM"] + config["BN"]))

    return sorted(space, key=time)
