"""What the config spaces share."""

from ...launch import ceil_div


def tiles(problem, rows, cols):
    """Tiles that cover one matrix of the result."""
    return ceil_div(problem.m, rows) * ceil_div(problem.n, cols)
