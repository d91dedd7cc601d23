"""The patches of a convolution, or its filters, copied into rows of a matrix (operations/conv2d/unfolded.py).

Both in one launch: the second copy would wait for the last program of the first. A program copies 8 KB, some columns of some
rows, by words of up to 8 bytes: lanes go along rows, and over as many rows as runs are short. What is left of the
sectors of a run is read for the next rows by the same program, from L1.

Mirrors cuda_reference/conv2d/parts/unfolded.cuh.
"""

from typing import Any, NamedTuple

from ..launch import TritonLaunch
from ..operations.conv2d.unfolded import THREADS
from ..problem import needs_wide_offsets
from .overlap import wait_for_earlier_kernels
from .position_sums import position
from .tiles import block_of
from .triton import tl, triton

WORD = 8  # the widest in bytes: of Triton's types
CONFIG = triton.Config({}, num_warps=THREADS // 32, num_stages=1)


class Patches(NamedTuple):
    """A tensor and its steps, in words, along the rows (n, p, q) and the columns (x, y, z) of the matrix."""

    ptr: Any
    P: Any
    Q: Any
    n: Any
    p: Any
    q: Any
    Y: Any
    Z: Any
    x: Any
    y: Any
    z: Any


class Unfolded(NamedTuple):
    """A matrix, in words; and how it is copied.

    programs  that copy it
    ROWS, COLUMNS  of a program
    WORD      bytes
    """

    ptr: Any
    programs: Any
    rows: Any
    columns: Any
    pitch: Any
    ROWS: Any
    COLUMNS: Any
    WORD: Any


@triton.jit
def _unfold_kernel(a: Patches, of_a: Unfolded, b: Patches, of_b: Unfolded, WIDE: tl.constexpr):
    """One or two copies; the programs of the first come first."""
    wait_for_earlier_kernels()
    program = tl.program_id(0)
    if b is None or program < of_a.programs:
        _copy(a, of_a, program, of_a.ROWS, of_a.COLUMNS, of_a.WORD, WIDE)
    else:
        _copy(b, of_b, program - of_a.programs, of_b.ROWS, of_b.COLUMNS, of_b.WORD, WIDE)


@triton.jit
def _copy(
    patches: Patches, matrix: Unfolded, program, ROWS: tl.constexpr, COLUMNS: tl.constexpr, WORD: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    words = tl.pointer_type(tl.int64 if WORD == 8 else tl.int32 if WORD == 4 else tl.int16)
    across = tl.cdiv(matrix.columns, COLUMNS)
    row = block_of(program // across, ROWS, WIDE)
    column = block_of(program % across, COLUMNS, WIDE)
    n, p, q = position(row, patches.P, patches.Q)
    x, y, z = position(column, patches.Y, patches.Z)
    of_row = n * patches.n + p * patches.p + q * patches.q
    of_column = x * patches.x + y * patches.y + z * patches.z
    inside = (row < matrix.rows)[:, None] & (column < matrix.columns)[None, :]
    values = tl.load(patches.ptr.to(words) + of_row[:, None] + of_column[None, :], mask=inside, other=0)
    tl.store(matrix.ptr.to(words) + row[:, None] * matrix.pitch + column[None, :], values, mask=inside)


def unfold(*copies):
    arguments, programs = [], 0
    for copy in copies:
        words = copy.words(WORD)
        tile = words.tile()
        count = words.blocks(tile)
        arguments.append(Patches(copy.tensor, *words[4:]))
        arguments.append(Unfolded(copy.matrix, count, *words[1:4], *map(tl.constexpr, (*tile, words.size))))
        programs += count
    wide = needs_wide_offsets(*(t for copy in copies for t in (copy.tensor, copy.matrix)))
    return TritonLaunch(_unfold_kernel, (programs,), CONFIG, *(*arguments, None, None)[:4], WIDE=wide)
