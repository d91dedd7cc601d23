"""A convolution's patches as a matrix, and its filters as another: views where strides allow them, else copies by one kernel.

A patch is a row, in the order (c, r, s), or (r, s, c) where an image's channels lie inside: so both sides of a copy have the
same runs, which it moves by words. An image of one patch is a row as it lies, and so is each pixel if there is one tap. Rows
of other patches are R or C R runs of the image. Taps that do not overlap copy no input twice.
"""

import functools
import math
from typing import NamedTuple

import torch

from ...analysis.sectors import SECTOR
from ...integers import ceil_div
from ...problem import is_aligned
from .work import rewritten

PATCH, THREADS = 8192, 256  # bytes that a block copies, and its threads
LEAST, MOST = 8, 64  # columns of a block, in words


def overlap(problem):
    """Whether two patches do, as rectangles."""
    axes = zip(_extent((problem.r, problem.s), problem.dilation), problem.stride, (problem.p, problem.q))
    return any(1 < extent > step and count > 1 for extent, step, count in axes)


def are_inside(problem):
    """Whether the patches are, of an image without padding above and left."""
    extent = _extent((problem.r, problem.s), problem.dilation)
    return all(map(int.__le__, _reach(extent, problem.stride, (problem.p, problem.q)), (problem.h, problem.w)))


def _extent(taps, apart):
    return [(count - 1) * step + 1 for count, step in zip(taps, apart)]


def _reach(extent, steps, counts):
    """Rows and columns of an image that its patches are in."""
    return [(count - 1) * step + size for size, step, count in zip(extent, steps, counts)]


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

    def tile(self, most=MOST):
        """(rows, columns) of a block: powers of two, PATCH bytes."""
        columns = next(count for count in (LEAST << i for i in range(64)) if count >= min(self.columns, most))
        return PATCH // self.size // columns, columns

    def blocks(self, tile):
        return ceil_div(self.rows, tile[0]) * ceil_div(self.columns, tile[1])


def operands(problem, input, weight):
    """(patches (N, P, Q, C R S), filters (K, C R S), the Copies that fill them)."""
    taps, inside, copies = (problem.r, problem.s), input.stride(1) < input.stride(3), []
    patches = _patches(input, taps, problem.dilation, problem.stride, (problem.p, problem.q), inside)
    filters = _patches(weight, taps, (1, 1), (1, 1), (1, 1), inside)
    pixels, rows = _as_it_lies(patches), _as_it_lies(filters)
    if pixels is None:
        pixels, copy = _copied(patches)
        copies.append(copy)
    if rows is None or (copies and not (rows.stride(-1) == 1 and is_aligned(rows))):  # else each design would copy it itself
        rows, copy = _copied(filters)
        copies.append(copy)
    return pixels, rows[:, 0, 0], copies


def _patches(images, taps, apart, steps, counts, inside):
    """(N, P, Q, C, R, S), or `inside` (N, P, Q, R, S, C): a view."""
    extent = _extent(taps, apart)
    rows, columns = _reach(extent, steps, counts)
    rectangles = images[:, :, :rows, :columns].unfold(2, extent[0], steps[0]).unfold(3, extent[1], steps[1])
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


def _as_it_lies(patches):
    """(N, P, Q, columns) where these, and the pixels of an image, are evenly spaced; else None."""
    columns = math.prod(patches.shape[3:])
    if patches.numel():
        pixels, steps = _joined(patches, (1, 2)), _joined(patches, range(3, 6))
        if max(len(pixels), len(steps)) > 1:
            return None
        step = steps[0][1] if steps else 1
    else:
        step = 1
    shape, strides = (*patches.shape[:3], columns), (*patches.stride()[:3], step)
    return patches.as_strided(shape, strides, patches.storage_offset())


def _copied(patches):
    """(the same of a matrix whose rows begin at whole sectors, the Copy that fills it)."""
    rows, columns = math.prod(patches.shape[:3]), math.prod(patches.shape[3:])
    of_sector = SECTOR // patches.element_size()
    matrix = torch.empty(rows, ceil_div(columns, of_sector) * of_sector, dtype=patches.dtype, device=patches.device)
    return matrix[:, :columns].unflatten(0, patches.shape[:3]), Copy(patches, matrix)


def as_they_lie(problem):
    """(input, weight, result), as the problem says that they lie, without memory."""
    like = {"dtype": problem.dtype, "device": "meta"}
    like["memory_format"] = torch.channels_last if problem.channels_last else torch.contiguous_format
    shapes = "nchw", "kcrs", "nkpq"
    return tuple(torch.empty([getattr(problem, size) for size in shape], **like) for shape in shapes)


@functools.lru_cache(1024)
def copied(problem):
    """The Work of the Copies: one kernel, or none."""
    input, weight, _ = as_they_lie(problem)
    size = sum(copy.tensor.numel() * copy.tensor.element_size() for copy in operands(problem, input, weight)[2])
    return (rewritten(ceil_div(size, PATCH), THREADS, 2 * size),) if size else ()
