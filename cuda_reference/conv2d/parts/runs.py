"""What `depthwise`, `depthwise_channels` and `grouped` share: filters that are unrolled, channels that are loaded together."""

import torch

UNROLLED = ((3, 1), (3, 2), (5, 1), (5, 2))  # TAPS of a column, STEP between outputs
ANY = (0, 1)  # what takes any filter, tap by tap
LANES = 8  # of a position, where they lie along the output channels


def together(dtype):
    """Channels that a lane loads at once, where they lie side by side: 128 bits of fp32 and fp64, 64 of the 16-bit types."""
    return 2 if dtype == torch.float64 else 4


def are_pieces(t, channels):
    """Whether so many channels of every pixel of an image lie side by side, aligned to their size, of 16 bytes at most."""
    apart = [stride for dim, (size, stride) in enumerate(zip(t.shape, t.stride())) if dim != 1 and size > 1]
    piece = min(channels, 16 // t.element_size())
    return t.stride(1) == 1 and t.data_ptr() % (piece * t.element_size()) == 0 and all(stride % piece == 0 for stride in apart)


def unrolled(problem, input):
    """(TAPS, STEP) where taps of a column are neighbours and 32 bits hold the bytes from a row to the next, else ANY."""
    filter_and_step = problem.r, problem.stride[0]
    slides = problem.dilation[0] == 1 and input.stride(2) * input.element_size() < 2**31
    return filter_and_step if slides and filter_and_step in UNROLLED else ANY


def filter_bytes(problem, kt, lanes):
    """Shared memory for the filters of an input channel and a block's output channels: struct Filters."""
    channels = kt * lanes
    return problem.r * problem.s * max(4, problem.dtype.itemsize) * (channels if channels == 4 else channels + 4)
