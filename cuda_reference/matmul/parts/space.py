"""What the config spaces share."""

from ...gemm.parts.configs import in_order
from ...launch import ceil_div

__all__ = ["in_order", "tiles"]


def tiles(problem, rows, cols):
    """Tiles that cover one matrix of the result."""
    return ceil_div(problem.m, rows) * ceil_div(problem.n, cols)
