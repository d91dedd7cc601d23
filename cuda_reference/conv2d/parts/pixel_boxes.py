"""What TMA's maps of pixels (launch.PixelMap) say of a convolution: the inputs of its positions."""

from ...launch import PixelMap
from .taps import are_in_chunks


def beyond_maps(problem):
    """Why TMA does not find them, or None."""
    for first, last, step, reach in _axes(problem):
        if step > 8 or first < -128 or not -128 <= last <= 127 or reach > 254:
            return "TMA takes strides up to 8, padding up to 128 and taps up to 254 apart"
    return None


def are_pixels(images, channels):
    """Whether TMA can read the images as they are."""
    return are_in_chunks(images, channels) and all(images.stride(dim) > 0 or images.shape[dim] == 1 for dim in (0, 2, 3))


def map_of_inputs(problem, input, box):
    """The map of the first tap's pixels of all positions."""
    first, last, steps, _ = zip(*_axes(problem))
    return PixelMap(input, box, first, last, steps, problem.precision == "tf32")


def _axes(problem):
    """Along H and W: the corners of the positions' inputs, from the first pixel and the last one; the step; the taps' reach."""
    for size, positions, taps, step, padding, apart in zip(
        (problem.h, problem.w),
        (problem.p, problem.q),
        (problem.r, problem.s),
        problem.stride,
        problem.padding,
        problem.dilation,
    ):
        yield -padding, (positions - 1) * step + 1 - padding - size, step, (taps - 1) * apart
