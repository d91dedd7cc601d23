"""A convolution's patches as a matrix, and its filters as another: views where strides allow them, else copies by one kernel.

A patch is a row, in the order (c, r, s), or (r, s, c) where an image's channels lie inside: so both sides of a copy have the
same runs, which it moves by words. An image of one patch is a row as it lies, and so is each pixel if there is one tap. Other
patches are R runs of the image, or C R. Where they do not overlap, no input is copied twice.
"""

import functools
import math
from typing import NamedTuple

import torch

from ...analysis.sectors import SECTOR
from ...analysis.warp import WARP
from ...integers import ceil_div, next_power_of_2
from ...problem import is_aligned
from .work import rewritten

PATCH, THREADS = 8192, 128  # bytes that a block copies, and its threads
LEAST, MOST = 8, 32  # columns of a block, in words (cuda_reference/conv2d/parts/unfolded.cuh knows the least)


def overlap(problem):
    """Whether two patches do, as rectangles."""
    axes = zip(_extent((problem.r, problem.s), problem.dilation), problem.stride, (problem.p, problem.q))
    return any(1 < extent > step and count > 1 for extent, step, count in axes)


def is_unpadded(problem):
    """Whether the patches are those that the image has: no padding on any side."""
    axes = zip((problem.h, problem.w), _extent((problem.r, problem.s), problem.dilation), problem.stride)
    counts = tuple((size - extent) // step + 1 for size, extent, step in axes)
    return problem.padding == (0, 0) and counts == (problem.p, problem.q)


def _extent(taps, apart):
    """Rows and columns from the first tap to the last."""
    return [(count - 1) * step + 1 for count, step in zip(taps, apart)]


class Copy(NamedTuple):
    """A tensor of six dimensions, and a matrix for it: the first three are its rows, the others its columns."""

    tensor: torch.Tensor
    matrix: torch.Tensor  # (rows, columns or more)

    def words(self, widest):
        """Its Words, of up to `widest` bytes: as many as all runs have whole ones, at multiples of their size."""
        t = self.tensor
        (_, p, q), rows, columns = t.shape[:3], t.stride()[:3], _joined(t, range(3, 6))
        axes = [(1, 0)] * (3 - len(columns)) + columns
        itemsize = word = t.element_size()
        run, step = axes[-1]
        if step == 1:
            apart = [stride for dim, stride in enumerate(rows) if t.shape[dim] > 1] + [stride for _, stride in axes[:-1]]
            word = math.gcd(widest, t.data_ptr(), *(itemsize * elements for elements in (run, *apart)))
        each = word // itemsize
        strides = [stride // each for stride in (*rows, *(stride for _, stride in axes[:-1]))]
        sizes = math.prod(t.shape[:3]), math.prod(t.shape[3:]) // each, self.matrix.stride(0) // each
        return Words(word, *sizes, p, q, *strides[:3], axes[1][0], run // each, *strides[3:], 1 if step == 1 else step)


class Words(NamedTuple):
    """A Copy, counted in words: row (n, p, q), column (x, y, z) is at n * step_n + ... + z * step_z of the tensor."""

    size: int  # bytes of one
    rows: int
    columns: int
    pitch: int
    P: int
    Q: int
    step_n: int
    step_p: int
    step_q: int
    Y: int
    Z: int
    step_x: int
    step_y: int
    step_z: int

    def tile(self):
        """(rows, columns) of a block: powers of two, PATCH bytes. A warp with c columns reads c / Z lines, in which
        neighbouring patches follow each other, and writes 32 / c: the fewest where c is the root of 32 Z."""
        fewest = next_power_of_2(math.isqrt(WARP * self.Z))
        columns = max(LEAST, min(MOST, fewest, next_power_of_2(self.columns)))
        return PATCH // self.size // columns, columns

    def blocks(self, tile):
        return ceil_div(self.rows, tile[0]) * ceil_div(self.columns, tile[1])


def operands(problem, input, weight):
    """(patches (N, P, Q, C R S), filters (K, C R S), the Copies that fill them)."""
    inside, copies = lies_inside(input), []
    patches = patches_of(problem, input, inside)
    pixels = _as_one(patches, range(3, 6))
    if pixels is None or _as_one(pixels, range(1, 3)) is None:
        pixels, copies = _copied(patches)
        pixels = pixels.unflatten(0, patches.shape[:3])
    filters = filters_of(weight, inside)
    rows = as_matrix(filters)
    if rows is None or (copies and not (rows.stride(1) == 1 and is_aligned(rows))):  # else each design would copy it itself
        rows, copy = _copied(filters)
        copies = copies + copy
    return pixels, rows, copies


def in_rows(pixels):
    """(a matrix of (N, P, Q, columns), as (N, P, Q, columns), the Copies that fill it)."""
    rows, copies = _copied(pixels[..., None, None])
    return rows.unflatten(0, pixels.shape[:3]), copies


def matrix(t, turned):
    """(a tensor of six dimensions as (rows, columns), the Copies that fill it): at most one, if it does not lie so. The lines
    of a copy that is `turned` are its columns."""
    found = as_matrix(t)
    if found is not None:
        return found, []
    if turned:
        found, copies = _copied(t.permute(3, 4, 5, 0, 1, 2))
        return found.mT, copies
    return _copied(t)


def lies_inside(images):
    """Whether channels are closer together than the pixels of a row."""
    return images.stride(1) < images.stride(3)


def patches_of(problem, images, inside):
    """(N, P, Q, C, R, S), or `inside` (N, P, Q, R, S, C): a view."""
    return _patches(images, (problem.r, problem.s), problem.dilation, problem.stride, inside)


def filters_of(weight, inside):
    """(K, 1, 1, C, R, S), or `inside` (K, 1, 1, R, S, C): a filter is an image of one patch."""
    return _patches(weight, weight.shape[2:], (1, 1), (1, 1), inside)


def _patches(images, taps, apart, steps, inside):
    height, width = _extent(taps, apart)
    rectangles = images.unfold(2, height, steps[0]).unfold(3, width, steps[1])
    windows = rectangles[..., :: apart[0], :: apart[1]]
    return windows.permute(0, 2, 3, 4, 5, 1) if inside else windows.permute(0, 2, 3, 1, 4, 5)


def _joined(t, dims):
    """[(size, stride)] of these dimensions, without those of one element, neighbours as one where nothing moves by it."""
    found = []
    for size, stride in ((t.shape[dim], t.stride(dim)) for dim in dims):
        if found and found[-1][1] == size * stride:
            found[-1] = found[-1][0] * size, stride
        elif size != 1:
            found.append((size, stride))
    return found


def _as_one(t, dims):
    """The tensor with these dimensions as a single one, None where its elements are not evenly spaced."""
    axes = _joined(t, dims) if t.numel() else []
    if len(axes) > 1:
        return None
    one = (math.prod(t.shape[dim] for dim in dims), axes[0][1] if axes else 1)
    size, stride = ((*of[: dims.start], value, *of[dims.stop :]) for of, value in zip((t.shape, t.stride()), one))
    return t.as_strided(size, stride, t.storage_offset())


def as_matrix(t):
    """The first three dimensions as rows, the others as columns; None where they do not lie so."""
    rows = _as_one(t, range(3, 6))
    return None if rows is None else _as_one(rows, range(3))


def _copied(t):
    """(a matrix whose rows begin at whole sectors, [the Copy that fills it])."""
    rows, columns, of_sector = math.prod(t.shape[:3]), math.prod(t.shape[3:]), SECTOR // t.element_size()
    room = torch.empty(rows, ceil_div(columns, of_sector) * of_sector, dtype=t.dtype, device=t.device)
    return room[:, :columns], [Copy(t, room)]


def as_they_lie(problem):
    """(input, weight, result), as the problem says that they lie, without memory."""
    like = {"dtype": problem.dtype, "device": "meta"}
    like["memory_format"] = torch.channels_last if problem.channels_last else torch.contiguous_format
    shapes = "nchw", "kcrs", "nkpq"
    return tuple(torch.empty([getattr(problem, size) for size in shape], **like) for shape in shapes)


@functools.lru_cache(1024)
def copied(problem):
    """The Work of a convolution's Copies."""
    input, weight, _ = as_they_lie(problem)
    return copies_work(operands(problem, input, weight)[2])


def copies_work(copies):
    """The Work of Copies: one kernel, or none."""
    size = sum(copy.tensor.numel() * copy.tensor.element_size() for copy in copies)
    return (rewritten(ceil_div(size, PATCH), THREADS, 2 * size),) if size else ()
