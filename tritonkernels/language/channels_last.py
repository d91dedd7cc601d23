"""Images of any strides copied into pixels whose channels lie side by side, in whole chunks of 16 bytes for each group, the
last with zeros.

Both operands of a kernel in one launch. A program copies 8 KB, some channels of some pixels. Where pixels of an image lie side
by side (NCHW), a lane reads 16 bytes of a plane, or as many as all planes begin at a multiple of: CUDA shifts words of 16 bytes
there.

Mirrors cuda_reference/conv2d_weight/parts/channels_last.cuh.
"""

import math
from typing import Any, NamedTuple

import torch

from ..integers import ceil_div
from ..operations.conv2d.chunks import padded
from ..operations.conv2d.work import rewritten
from .overlap import wait_for_earlier_kernels
from .position_sums import position
from .structs import Images
from .tiles import block_of, multiple, span
from .triton import tl, triton
from .two_copies import copy_one_of, launch_of_copies

PATCH = 8192  # bytes of a program: with 8 warps 32 a lane, whose loads are all under way
CHANNELS = 8, 32, 64  # of a patch, the least that are enough or the most
PLANE = 32  # pixels: of smaller planes, as filters are, most lanes would read nothing
CONFIG = triton.Config({}, num_warps=8, num_stages=1)


class Rows(NamedTuple):
    """A result: (N, H, W, pitch), contiguous, with C channels and zeros; and how it is copied.

    programs  that copy it
    of_group  places of a group, own of them channels: of several groups (GROUPED)
    PIXELS, CHANNELS  of a patch
    CHUNK     elements of 16 bytes, of which pitch is a multiple
    OF        planes begin at multiples of so many pixels; 0 of images that are no planes
    """

    ptr: Any
    programs: Any
    pixels: Any
    C: Any
    H: Any
    W: Any
    pitch: Any
    of_group: Any
    own: Any
    PIXELS: Any
    CHANNELS: Any
    CHUNK: Any
    OF: Any
    GROUPED: Any


@triton.jit
def _channels_last_kernel(a: Images, of_a: Rows, b: Images, of_b: Rows, WIDE: tl.constexpr):
    wait_for_earlier_kernels()
    copy_one_of(_copy, a, of_a, b, of_b, WIDE)


@triton.jit
def _copy(images: Images, rows: Rows, program, WIDE: tl.constexpr):
    OF: tl.constexpr = rows.OF
    across = tl.cdiv(rows.pitch, rows.CHANNELS)
    place = span(program % across * rows.CHANNELS, rows.CHANNELS, WIDE)
    if rows.GROUPED:
        c = place // rows.of_group * rows.own + place % rows.of_group
        exists = (place % rows.of_group < rows.own) & (c < rows.C)
    else:
        c = place
        exists = place < rows.C
    if OF > 0:
        plane = multiple(rows.H * rows.W, OF)
        along = tl.cdiv(plane, rows.PIXELS)
        image = program // across // along
        if WIDE:
            image = image.to(tl.int64)
        pixel = span(program // across % along * rows.PIXELS, rows.PIXELS, WIDE)
        inside = pixel < plane
        places = images.ptr + image * multiple(images.n, OF) + (c * multiple(images.c, OF))[:, None] + pixel[None, :]
        values = tl.trans(tl.load(places, mask=exists[:, None] & inside[None, :], other=0.0))
        pixel += image * plane
    else:
        pixel = block_of(program // across, rows.PIXELS, WIDE)
        inside = pixel < rows.pixels
        n, h, w = position(pixel, rows.H, rows.W)
        places = images.ptr + (n * images.n + h * images.h + w * images.w)[:, None] + (c * images.c)[None, :]
        values = tl.load(places, mask=inside[:, None] & exists[None, :], other=0.0)
    pitch = multiple(rows.pitch, rows.CHUNK)
    tl.store(rows.ptr + pixel[:, None] * pitch + place[None, :], values, mask=inside[:, None] & (place < pitch)[None, :])


def are_in_chunks(images):
    """Whether each pixel's channels are contiguous, in whole and aligned chunks."""
    apart = (images.stride(dim) for dim in (0, 2, 3) if images.shape[dim] > 1)
    chunk = 16 // images.element_size()
    whole = images.shape[1] % chunk == 0 and images.stride(1) == 1 and images.data_ptr() % 16 == 0
    return whole and all(stride % chunk == 0 for stride in apart)


def in_chunks(*operands, groups=1):
    """(one or two operands in that layout, the launches that copy them, at most one). Each comes with suits(images): whether it
    need not be copied. Of several groups each one's channels are in whole chunks."""
    results, copies = [], []
    for images, suits in operands:
        n, c, h, w = images.shape
        pitch = groups * padded(c // groups, images.element_size())
        if suits(images) and (groups == 1 or c == pitch):
            results.append(_apart(images) if are_in_chunks(images) else images)
            continue
        rows = torch.empty(n, h, w, pitch, dtype=images.dtype, device=images.device)
        results.append(rows.movedim(-1, 1))
        if rows.numel():
            copies.append((Images.of(images), _rows(images, rows, groups)))
    return results, [launch_of_copies(_channels_last_kernel, CONFIG, copies)] if copies else []


def _apart(images):
    """With strides of whole chunks also of dimensions of one, along which kernels step to what is outside."""
    shape = images.shape
    strides = [step if size > 1 or dim == 1 else shape[1] for dim, (size, step) in enumerate(zip(shape, images.stride()))]
    return images.as_strided(shape, strides)


def _rows(images, rows, groups):
    (n, c, h, w), of, itemsize, pitch = images.shape, _multiple_of(images), images.element_size(), rows.shape[-1]
    sizes = _programs(n, pitch, h * w, of > 0, itemsize), n * h * w, c, h, w, pitch, pitch // groups, c // groups
    return Rows(rows, *sizes, *map(tl.constexpr, (*_patch(pitch, itemsize), 16 // itemsize, of, groups > 1)))


def _multiple_of(images):
    """Which power of two, up to a chunk's, divides the places where planes begin; 0 if they are too small, or none."""
    (n, c, h, w), (image, channel, row, pixel) = images.shape, images.stride()
    dense = h * w >= PLANE and (w == 1 or pixel == 1) and (h == 1 or row == w)
    return math.gcd(16 // images.element_size(), h * w, image if n > 1 else 0, channel if c > 1 else 0) if dense else 0


def _patch(channels, itemsize):
    """(pixels, channels) of a patch."""
    across = next((few for few in CHANNELS if channels <= few), CHANNELS[-1])
    return PATCH // itemsize // across, across


def _programs(images, pitch, plane, dense, itemsize):
    """The number of programs. No patch has pixels of two images if they are dense."""
    pixels, across = _patch(pitch, itemsize)
    along = images * ceil_div(plane, pixels) if dense else ceil_div(images * plane, pixels)
    return along * ceil_div(pitch, across)


def copied(problem, *operands, groups=1):
    """The Work of the copy of operands, each with (images, channels, pixels of one), if they lie as the problem says."""
    programs, size, itemsize = 0, 0, problem.dtype.itemsize
    for images, channels, plane in operands:
        pitch = groups * padded(channels // groups, itemsize)
        if not problem.channels_last or channels != pitch:
            programs += _programs(images, pitch, plane, plane >= PLANE and not problem.channels_last, itemsize)
            size += images * plane * (channels + pitch) * itemsize
    return (rewritten(programs, 32 * CONFIG.num_warps, size),) if programs else ()
