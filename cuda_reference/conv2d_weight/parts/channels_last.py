"""The copies of channels_last.cuh: images whose channels lie side by side, in whole chunks of 16 bytes for each group."""

import torch

from tritonkernels.operations.conv2d.chunks import padded
from tritonkernels.operations.conv2d.work import rewritten

from ...launch import CudaLaunch, Source, ceil_div

THREADS, PATCH_BYTES = 128, 8192  # of a block
COLUMNS = 32, 64  # of a patch, if a pixel has more than a chunk
PLANE = 32  # pixels: of smaller planes, as filters are, most lanes would read nothing
_KERNELS = tuple(f"conv2d_weight::channels_last<uint{bits}_t>" for bits in (16, 32))
_NO_COPY = None, None, (0,) * 14


def in_chunks(*operands, groups=1):
    """(one or two operands in that layout, the launch that copies them, if any). Each comes with suits(images, channels of a
    group): whether it need not be copied."""
    results, copies = [], []
    for images, suits in operands:
        n, c, h, w = images.shape
        if suits(images, c // groups):
            results.append(images)
            continue
        columns = groups * padded(c // groups, images.element_size())
        rows = torch.empty(n, h, w, columns, dtype=images.dtype, device=images.device)
        results.append(rows.movedim(-1, 1))
        if rows.numel():
            copies.append((images, rows, _copied(images, groups)))
    return results, _launches(copies)


def _launches(copies):
    if not copies:
        return ()
    kernel = _KERNELS[copies[0][0].element_size() // 4]
    arguments = [argument for copy in (*copies, _NO_COPY)[:2] for argument in copy]
    blocks = sum(members[0] for _, _, members in copies)
    source = Source("conv2d_weight/parts/channels_last.cuh", _KERNELS)
    return (CudaLaunch(source, kernel, (blocks,), (THREADS, 1, 1), tuple(arguments), part=(kernel,)),)


def _copied(images, groups):
    """The members of Copied."""
    (n, c, h, w), stride, itemsize = images.shape, images.stride(), images.element_size()
    pitch = padded(c // groups, itemsize)
    dense = h * w >= PLANE and (w == 1 or stride[3] == 1) and (h == 1 or stride[2] == w)
    blocks, columns = _patches(n, h * w, dense, groups * pitch, itemsize)
    extent = 1 + sum((size - 1) * step for size, step in zip(images.shape, stride))
    return blocks, columns, h * w if dense else n * h * w, int(dense), extent, h, w, groups, c // groups, pitch, *stride


def _patches(images, plane, dense, channels, itemsize):
    """(how many patches, how many columns each). No patch has pixels of two images if they are dense."""
    chunk = 16 // itemsize
    columns = chunk if channels == chunk else COLUMNS[channels > COLUMNS[0]]
    pixels = PATCH_BYTES // itemsize // columns
    along = images * ceil_div(plane, pixels) if dense else ceil_div(images * plane, pixels)
    return along * ceil_div(channels, columns), columns


def copied(problem, *operands, groups=1):
    """The Work of the copy of operands, each with (images, channels, pixels of one), if they lie as the problem says."""
    itemsize, blocks, size = problem.dtype.itemsize, 0, 0
    for images, channels, plane in operands:
        pitch = padded(channels // groups, itemsize)
        if not problem.channels_last or channels // groups != pitch:
            dense = plane >= PLANE and not problem.channels_last
            blocks += _patches(images, plane, dense, groups * pitch, itemsize)[0]
            size += images * plane * (channels + groups * pitch) * itemsize
    return (rewritten(blocks, THREADS, size),) if blocks else ()
