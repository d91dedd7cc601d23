"""Tiles of output positions times KT output channels of a group: how many there are, and which KT comes first."""

from ...launch import ceil_div


def count_tiles(problem, tile, kt):
    """How many there are of struct Tile."""
    tiles = ceil_div(problem.p, tile[0]) * ceil_div(problem.q, tile[1])
    return problem.n * problem.groups * ceil_div(problem.k // problem.groups, kt) * tiles


def covering(problem, space):
    """The configs; first the smallest KT that covers a group's output channels, else the largest."""
    ordered = sorted(space, key=lambda config: config["KT"])
    first = next((config for config in ordered if config["KT"] >= problem.k // problem.groups), ordered[-1])
    return [first, *(config for config in space if config != first)]
