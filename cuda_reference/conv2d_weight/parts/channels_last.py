"""The copies of channels_last.cuh: images whose channels lie side by side, in whole chunks of 16 bytes for each group."""

import torch

from tritonkernels.operations.conv2d.work import rewritten

from ...conv2d.parts.taps import are_in_chunks
from ...launch import CudaLaunch, Source, ceil_div

THREADS, OF_PATCH, COLUMNS = 256, 4096, 64  # COLUMNS: of a patch of OF_PATCH elements, if there are as many


def padded(channels, itemsize):
    """A group's channels in whole chunks."""
    chunk = 16 // itemsize
    return ceil_div(channels, chunk) * chunk


def in_chunks(images, groups, suits=are_in_chunks):
    """(the images in that layout, the launch that copies them, if any: where suits(images, channels of a group) is not so)."""
    (n, c, h, w), itemsize = images.shape, images.element_size()
    channels = c // groups
    if suits(images, channels):
        return images, ()
    pitch = padded(channels, itemsize)
    rows = torch.empty(n, h, w, groups * pitch, dtype=images.dtype, device=images.device)
    bits = {2: "uint16_t", 4: "uint32_t"}[itemsize]
    kernels = [f"conv2d_weight::channels_last<{bits}, {columns}>" for columns in (16 // itemsize, COLUMNS)]
    patches, columns = _patches(n * h * w, groups * pitch, itemsize)
    launch = CudaLaunch(
        Source("conv2d_weight/parts/channels_last.cuh", tuple(kernels)),
        kernels[columns == COLUMNS],
        (patches,),
        (THREADS, 1, 1),
        (images, rows, n * h * w, h, w, groups, channels, pitch, images.stride()),
    )
    return rows.movedim(-1, 1), (launch,) if rows.numel() else ()


def _patches(pixels, channels, itemsize):
    """(how many patches, how many columns each): one chunk, if there is no more."""
    columns = COLUMNS if channels * itemsize > 16 else 16 // itemsize
    return ceil_div(pixels, OF_PATCH // columns) * ceil_div(channels, columns), columns


def copied(problem, pixels, channels):
    """The Work of a copy of so many pixels, if they lie as the problem says."""
    itemsize, of_group = problem.dtype.itemsize, channels // problem.groups
    pitch = padded(of_group, itemsize)
    if problem.channels_last and of_group == pitch:
        return ()
    patches, _ = _patches(pixels, problem.groups * pitch, itemsize)
    return (rewritten(patches, THREADS, pixels * (channels + problem.groups * pitch) * itemsize),)
