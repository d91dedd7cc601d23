"""The Work of the convolutions' designs, for both packages."""

import functools

import torch

from ...analysis.sectors import SECTOR
from ...choice.work import KNOWN_PROBLEMS, STORED, Work, ahead_of


def whole(size):
    """Bytes of the sectors that `size` contiguous bytes take."""
    return -(-size // SECTOR) * SECTOR


def unit(problem):
    """The unit of the CUDA cores that computes it."""
    return "fp64" if problem.dtype == torch.float64 else "ieee"


def touched(problem, rows, cols, channels, of):
    """Bytes of the sectors that `channels` channels of rows x cols pixels take, of images of `of` channels."""
    itemsize = problem.dtype.itemsize
    if problem.channels_last:
        return rows * min(cols * whole(channels * itemsize), whole(cols * of * itemsize))
    return channels * rows * whole(cols * itemsize)


def strip(problem, run, count):
    """(rows, columns, how many such pieces) of `count` runs of `run` outputs below each other, side by side along rows."""
    cols = max(1, min(problem.q, count))
    lines = -(-count // cols)
    tall = max(1, min(lines, -(-problem.p // run)))
    return run * tall, cols, -(-lines // tall)


def of_outputs(problem, target, blocks, threads, piece, channels, steps, outputs=None, taps=None, registers=48, shared=0):
    """A kernel on CUDA cores whose blocks compute `channels` output channels of a piece of outputs.

    piece    rows, columns, how many
    steps    trips to memory for the sums
    outputs  of a block with those of idle lanes, if not those of the piece
    taps     bytes of a block's filters, if not those of the weight
    """
    rows, cols, pieces = piece
    flops, cores, size, filter_size, per_group, of_group, image, (step_h, step_w), (reach_h, reach_w) = _facts(problem)
    height = min(problem.h, rows * problem.r, (rows - 1) * step_h + reach_h)
    width = min(problem.w, cols * problem.s, (cols - 1) * step_w + reach_w)
    written = min(channels, problem.k)
    inputs = touched(problem, height, width, of_group * -(-channels // per_group), problem.c)
    results = touched(problem, min(rows, problem.p), min(cols, problem.q), written, problem.k)
    if image > target.l2_bytes:  # it is read again for other output channels
        size += (-(-per_group // channels) - 1) * problem.n * problem.groups * image
    return Work(
        blocks,
        threads,
        (outputs or pieces * rows * cols * channels) * flops,
        cores,
        pieces * (inputs + results) + (written * filter_size if taps is None else taps),
        size,
        steps + 2,
        registers,
        shared,
    )


@functools.lru_cache(KNOWN_PROBLEMS)
def _facts(problem):
    """What all configs have in common: FLOPs of an output, unit, compulsory bytes, bytes of an output channel's filter, output
    and input channels of a group, bytes of its inputs in an image, step and reach of the taps."""
    itemsize, terms, of_group = problem.dtype.itemsize, problem.terms, problem.c // problem.groups
    return (
        2.0 * terms + problem.has_bias,
        unit(problem),
        problem.bytes,
        whole(terms * itemsize),
        max(1, problem.k // problem.groups),
        of_group,
        of_group * problem.h * problem.w * itemsize,
        problem.stride,
        tuple((taps - 1) * apart + 1 for taps, apart in zip((problem.r, problem.s), problem.dilation)),
    )


def of_product(problem, m, n, tile, slices, splits, a_slice, unit, threads, stages=1, shared=None, adds=True, besides=40):
    """A product of matrices (m, n) of each group, gathered from images: `splits` blocks for each tile (BM, BN, BK), which share
    its `slices` of BK; the last of them `adds`, or else a second kernel. a_slice: bytes that a block fetches for a slice.
    besides: registers of a thread that are neither sums nor, as many, their addresses and operands."""
    bm, bn, bk = tile
    itemsize, own = problem.dtype.itemsize, -(-slices // splits)
    words = bm * bn // threads * max(1, itemsize // 4)  # of sums
    return Work(
        problem.groups * -(-m // bm) * -(-n // bn) * splits,
        threads,
        bm * bn * (2.0 * bk * own + problem.has_bias),
        unit,
        own * a_slice + bm * bn * (itemsize if splits == 1 else 8 if adds else 4),
        problem.bytes,
        2 + own / ahead_of(stages) + (2 if splits > 1 and adds else 0),
        min(255, 2 * words + besides),
        (bm + bn) * bk * itemsize * stages if shared is None else shared,
        bm * bn * STORED,
    )


def gathered(problem, tile, by_element):
    """Bytes that a block of implicit_gemm fetches for a slice: a sector for each element of `by_element` rows or columns that
    are not fetched in vectors, else whole sectors of a pixel's channels."""
    bm, bn, bk = tile
    of_pixel = max(1, problem.c // problem.groups) * problem.dtype.itemsize
    vectors = max(0, bm + bn - by_element)
    return bk * (by_element * SECTOR + vectors * problem.dtype.itemsize * whole(of_pixel) / of_pixel)


def rewritten(blocks, threads, size):
    """A kernel that reads and writes `size` bytes in all."""
    return Work(blocks, threads, 0.0, "ieee", size / max(1, blocks), size, 2)


ADDED = 32  # elements of a block that adds partial sums


def addition(problem, splits, threads, at_once):
    """The kernel that adds `splits` sums of each element of the result, `at_once` in flight; nothing where there is one."""
    if splits == 1:
        return ()
    itemsize, size = problem.dtype.itemsize, max(4, problem.dtype.itemsize)
    blocks, dram, steps = -(-problem.outputs // ADDED), problem.outputs * itemsize, 1 + -(-splits // at_once)
    return (Work(blocks, threads, ADDED * splits, unit(problem), ADDED * (splits * size + itemsize), dram, steps),)


def of_winograd(problem, outputs, images, sizes, of_product, block):
    """The transforms of filters, inputs and products, of `images` images at a time, around the Works `of_product`.

    sizes  rows, columns and depth of the product at a point of a group; a transform's block has `block` of its elements
    """
    (rows, cols, depth), points, size = sizes, (outputs + 2) ** 2, max(4, problem.dtype.itemsize)
    itemsize, inside = problem.dtype.itemsize, problem.channels_last
    of_u, of_v = (depth * cols, rows * depth) if inside else (rows * depth, depth * cols)

    def over(elements, read, written):
        count = problem.groups * elements
        size = count * (read + written)
        return Work(-(-count // block), block, 8.0 * points * block, unit(problem), block * (read + written), size, 3)

    found = []
    for first in range(0, max(1, problem.n), images):  # an empty call is estimated too
        if first == 0 and of_u:
            found.append(over(of_u, 9 * itemsize, points * size))
        if of_v:
            found.append(over(of_v, points * itemsize, points * size))
        found += [*of_product, over(rows * cols, points * size, outputs**2 * itemsize)]
    return tuple(found)
