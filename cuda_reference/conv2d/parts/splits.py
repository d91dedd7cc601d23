"""The launches of a kernel with splits, whose partial sums a second kernel adds up (splits.cuh)."""

from tritonkernels.operations.conv2d.work import addition
from tritonkernels.workspace import partial_sums

from ...launch import CudaLaunch, ceil_div

ROWS = 16
ADD = f"conv2d::add_splits<{{T}}, {ROWS}>"


def launches_of_splits(source, kernels, grid, threads, before, after, out, shared_bytes=0):
    """Launches kernels[0](*before, sums, *after), then kernels[1] if there are several splits, grid[1]. Both are in `source`.

    `out` is (K, C, R, S). `sums` is (splits, elements of out) for several splits, else null: the kernel writes `out` itself.
    """
    (main, add), (_, splits) = kernels, grid
    sums = partial_sums(splits, out.numel(), out) if splits > 1 else None
    yield CudaLaunch(source, main, grid, (threads, 1, 1), (*before, sums, *after), shared_bytes, tuple(kernels))
    if sums is not None:
        blocks = ceil_div(out.numel(), 32)
        given = sums, out, splits, tuple(out.shape), out.stride()
        yield CudaLaunch(source, add, (blocks,), (32 * ROWS, 1, 1), given, part=tuple(kernels))


def added(problem, splits):
    """The Work of adding them up: a row of threads has the loads of four sums in flight."""
    return addition(problem, splits, 32 * ROWS, 4 * ROWS)
