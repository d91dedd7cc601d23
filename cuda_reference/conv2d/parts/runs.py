"""Shared by `depthwise`, `depthwise_channels` and `grouped`: which filters are unrolled, and how many channels a load reads."""

import torch

UNROLLED = tuple((taps, step) for taps in (3, 5, 7, 9, 11, 13) for step in (1, 2))  # TAPS per column, STEP between outputs
FEW_TAPS = 5  # of the columns that `grouped` unrolls: it holds the sums and inputs of several channels
ANY = (0, 1)  # the kernel for any filter, with a loop over taps
LANES = 8  # per position, if lanes lie along the output channels


def channels_per_load(dtype):
    """Contiguous channels that a lane loads at once: 128 bits of fp32 and fp64, 64 of the 16-bit types."""
    return 2 if dtype == torch.float64 else 4


def are_pieces(t, channels):
    """Whether every `channels` channels of each pixel are contiguous and aligned to their size, or to 16 bytes."""
    apart = [stride for dim, (size, stride) in enumerate(zip(t.shape, t.stride())) if dim != 1 and size > 1]
    piece = min(channels, 16 // t.element_size())
    return t.stride(1) == 1 and t.data_ptr() % (piece * t.element_size()) == 0 and all(stride % piece == 0 for stride in apart)


def unrolled(problem, input):
    """(TAPS, STEP) of an UNROLLED filter without dilation in H whose input rows are less than 2^31 bytes apart, else ANY."""
    return (problem.r, problem.stride[0]) if slides(problem) and input.stride(2) * input.element_size() < 2**31 else ANY


def slides(problem):
    """Whether taps of a column lie side by side, and are UNROLLED."""
    return problem.dilation[0] == 1 and (problem.r, problem.stride[0]) in UNROLLED


def inputs_at_once(problem, run, slides):
    """Inputs of a channel that a thread holds for a run of outputs: those of a column, or one for each output."""
    return (run - 1) * problem.stride[0] + problem.r if slides else run


def columns_at_once(problem, slides):
    """Trips to memory for a channel of a run: the loads of a column of inputs are in flight together, or those of a tap."""
    return problem.s * (1 if slides else problem.r)


def are_channels_inside(problem):
    """Whether the channels of pixels lie side by side, in contiguous tensors."""
    return problem.channels_last or problem.h * problem.w == problem.p * problem.q == 1


def filter_bytes(problem, kt, lanes):
    """Shared memory for the filters of one input channel and a block's output channels, as struct Filters."""
    channels = kt * lanes
    return problem.r * problem.s * max(4, problem.dtype.itemsize) * (channels if channels == 4 else channels + 4)
