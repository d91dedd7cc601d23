"""Tiles of outputs, how many there are, and what they hold in shared memory and registers; for both packages."""

import functools

from ...choice.work import KNOWN_PROBLEMS

TILE = 4, 8  # outputs of `direct`
BIG_TILE = 16, 64  # of `register_blocked`
STAGED_BYTES = 48 * 1024  # shared memory of a block on every architecture
MOST_TAPS = 16  # of a row, which Triton's `register_blocked` unrolls
COLUMN_TAPS = 7  # of a column, which `grouped` holds in registers
COLUMN_ROWS = 24  # of inputs that a run of its outputs meets, unrolled


def refuses_what_follows(problem, target):
    """Why a design that writes the sums and bias alone refuses the problem, or None."""
    return f"it adds no more than a bias, and this has {' and '.join(problem.after)}" if problem.after else None


@functools.lru_cache(KNOWN_PROBLEMS)
def halo_bytes(problem, tile, row_unit, before=0):
    """Shared memory for the inputs that a tile of outputs needs of a channel, and `before` columns; rows are padded to
    `row_unit` bytes of inputs."""
    rows, cols = (
        (outputs - 1) * step + (taps - 1) * dilation + 1
        for outputs, step, taps, dilation in zip(tile, problem.stride, (problem.r, problem.s), problem.dilation)
    )
    unit = row_unit // problem.dtype.itemsize
    return rows * -(-(before + cols) // unit) * unit * max(4, problem.dtype.itemsize)


def blocked_bytes(problem, kt):
    """Shared memory of `register_blocked` for a channel's inputs and the filters of kt output channels, in whole quads."""
    return halo_bytes(problem, BIG_TILE, 32) + problem.r * problem.s * -(-kt // 4) * 16


def tiles_of_outputs(problem, tile, channels):
    """How many tiles (rows, columns) of `channels` output channels of a group cover the result."""
    of_planes = -(-problem.p // tile[0]) * -(-problem.q // tile[1])
    return problem.n * problem.groups * -(-(problem.k // problem.groups) // channels) * of_planes
