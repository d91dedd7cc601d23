"""Images of any strides copied into pixels whose channels lie side by side, in whole chunks of 16 bytes, the last with zeros.

Mirrors cuda_reference/conv2d_weight/parts/channels_last.cuh.
"""

import torch

from ..integers import ceil_div
from ..launch import TritonLaunch
from ..operations.conv2d.work import rewritten
from ..problem import needs_wide_offsets
from .overlap import wait_for_earlier_kernels
from .position_sums import position
from .structs import Images
from .tiles import block_of, span
from .triton import tl, triton

CONFIG = triton.Config({"PIXELS": 64, "CHANNELS": 64}, num_warps=8, num_stages=1)


@triton.jit
def _channels_last_kernel(
    images: Images, out, pixels, C, H, W, pitch, PIXELS: tl.constexpr, CHANNELS: tl.constexpr, WIDE: tl.constexpr
):
    """out: (pixels, pitch), contiguous."""
    wait_for_earlier_kernels()
    tiles = tl.cdiv(pitch, CHANNELS)
    pixel = block_of(tl.program_id(0) // tiles, PIXELS, WIDE)
    c = span(tl.program_id(0) % tiles * CHANNELS, CHANNELS, WIDE)
    n, h, w = position(pixel, H, W)
    of_pixel = n * images.n + h * images.h + w * images.w
    inside = (pixel < pixels)[:, None]
    values = tl.load(images.ptr + of_pixel[:, None] + c[None, :] * images.c, mask=inside & (c < C)[None, :], other=0.0)
    tl.store(out + pixel[:, None] * pitch + c[None, :], values, mask=inside & (c < pitch)[None, :])


def padded(channels, itemsize):
    """Channels in whole chunks."""
    chunk = 16 // itemsize
    return ceil_div(channels, chunk) * chunk


def are_in_chunks(images):
    """Whether each pixel's channels are contiguous, in whole and aligned chunks."""
    apart = (images.stride(dim) for dim in (0, 2, 3) if images.shape[dim] > 1)
    chunk = 16 // images.element_size()
    whole = images.shape[1] % chunk == 0 and images.stride(1) == 1 and images.data_ptr() % 16 == 0
    return whole and all(stride % chunk == 0 for stride in apart)


def in_chunks(images, suits=are_in_chunks):
    """(the images in that layout, the launches that copy them: where suits(images) is not so)."""
    if suits(images):
        return images, []
    n, c, h, w = images.shape
    pitch = padded(c, images.element_size())
    out = torch.empty(n, h, w, pitch, dtype=images.dtype, device=images.device)
    wide = needs_wide_offsets(images, out)
    grid = (_blocks(n * h * w, pitch),)
    launch = TritonLaunch(_channels_last_kernel, grid, CONFIG, Images.of(images), out, n * h * w, c, h, w, pitch, WIDE=wide)
    return out.movedim(-1, 1), [launch]


def _blocks(pixels, pitch):
    return ceil_div(pixels, CONFIG.kwargs["PIXELS"]) * ceil_div(pitch, CONFIG.kwargs["CHANNELS"])


def copied(problem, pixels, channels):
    """The Work of a copy of so many pixels, if they lie as the problem says."""
    itemsize = problem.dtype.itemsize
    pitch = padded(channels, itemsize)
    if problem.channels_last and channels == pitch:
        return ()
    return (rewritten(_blocks(pixels, pitch), 256, pixels * (channels + pitch) * itemsize),)
