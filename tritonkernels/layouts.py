"""The layouts that results are given in, by strides, which a tensor has inside of torch's transforms too."""

from .problem import holds


def is_column_major(tensor):
    """Whether its matrices (the last two dimensions) are contiguous ones, transposed."""
    return tensor.ndim > 1 and holds(tensor.stride(-2) == 1) and holds(tensor.stride(-1) == tensor.shape[-2])


def is_channels_last(tensor):
    """Whether torch takes images or filters for channels_last. In memory those of one channel or of one pixel are contiguous
    too: then the strides of their dimensions of one decide."""
    if tensor.ndim != 4 or not _is_dense(tensor, (1, 3, 2, 0)):
        return False
    if not _is_dense(tensor, (3, 2, 1, 0)):
        return True
    _, c, h, w = tensor.shape
    channels_last = zip(tensor.stride(), (c * h * w, 1, c * w, c))
    return holds(c * h * w != 1) and all(holds(step == other) for step, other in channels_last)


def _is_dense(tensor, dimensions):
    """Whether these dimensions, the innermost first, follow on each other in memory."""
    expected = 1
    for dimension in dimensions:
        if not holds(tensor.shape[dimension] == 1) and not holds(tensor.stride(dimension) == expected):
            return False
        expected *= tensor.shape[dimension]
    return True
