"""The patches of a convolution, or its filters, copied into rows of a matrix (operations/conv2d/unfolded.py).

Both in one launch. A program copies 8 KB, some columns of some rows, by words of up to 8 bytes: lanes go along rows, and over
as many rows as runs are short. What is left of the sectors of a run is read for the next rows by the same program, from L1.

Mirrors cuda_reference/conv2d/parts/unfolded.cuh.
"""

from typing import Any, NamedTuple

from ..operations.conv2d.unfolded import THREADS
from .overlap import wait_for_earlier_kernels
from .position_sums import position
from .tiles import block_of
from .triton import tl, triton
from .two_copies import copy_one_of, launch_of_copies

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
    wait_for_earlier_kernels()
    copy_one_of(_copy, a, of_a, b, of_b, WIDE)


@triton.jit
def _copy(patches: Patches, matrix: Unfolded, program, WIDE: tl.constexpr):
    words = tl.pointer_type(tl.int64 if matrix.WORD == 8 else tl.int32 if matrix.WORD == 4 else tl.int16)
    across = tl.cdiv(matrix.columns, matrix.COLUMNS)
    row = block_of(program // across, matrix.ROWS, WIDE)
    column = block_of(program % across, matrix.COLUMNS, WIDE)
    n, p, q = position(row, patches.P, patches.Q)
    x, y, z = position(column, patches.Y, patches.Z)
    of_row = n * patches.n + p * patches.p + q * patches.q
    of_column = x * patches.x + y * patches.y + z * patches.z
    inside = (row < matrix.rows)[:, None] & (column < matrix.columns)[None, :]
    values = tl.load(patches.ptr.to(words) + of_row[:, None] + of_column[None, :], mask=inside, other=0)
    tl.store(matrix.ptr.to(words) + row[:, None] * matrix.pitch + column[None, :], values, mask=inside)


def unfold(*copies):
    return launch_of_copies(_unfold_kernel, CONFIG, [_structs(copy) for copy in copies])


def _structs(copy):
    words = copy.words(WORD)
    tile = words.tile()
    constants = map(tl.constexpr, (*tile, words.size))
    return Patches(copy.tensor, *words[4:]), Unfolded(copy.matrix, words.blocks(tile), *words[1:4], *constants)
