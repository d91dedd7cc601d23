"""Registers of a thread, as nvcc compiles for sm_90, of kernels that multiply on CUDA cores: they decide how many blocks fit on
an SM."""

TWO_BLOCKS = 128  # with which two blocks of 256 threads fit: nvcc keeps to it where launch bounds ask for two


def of_product(sums, holds_slices):
    """Registers for so many sums of a blocked product. Kernels that hold the next slice in registers, or that add up others'
    sums, take more."""
    return max(sums + 60, min(TWO_BLOCKS, sums + 92)) if holds_slices else sums + 60
