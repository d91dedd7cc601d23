"""The launches of a kernel whose partial sums are added up by a second one (splits.cuh)."""

from tritonkernels.workspace import partial_sums

from ..launch import CudaLaunch, ceil_div

ROWS = 16
ADD = f"conv2d::add_splits<{{T}}, {ROWS}>"


def launches_of_splits(source, kernels, grid, threads, splits, before, after, geometry, out):
    """kernels[0](*before, sums, *after), then kernels[1] where there are several splits; `source` holds both.

    The kernel takes `sums` (splits, elements of out) where there are several, else a null pointer and writes out itself.
    """
    main, add = kernels
    sums = partial_sums(splits, out.numel(), out) if splits > 1 else None
    yield CudaLaunch(source, main, grid, (threads, 1, 1), (*before, sums, *after))
    if sums is not None:
        sizes, strides = geometry
        blocks = ceil_div(out.numel(), 32)
        yield CudaLaunch(source, add, (blocks,), (32 * ROWS, 1, 1), (sums, out, splits, sizes, strides))
