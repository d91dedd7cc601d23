"""Splits of K: how long they are, and the workspace through which the last block of a tile adds up its splits."""

from tritonkernels.operations.gemm.split_counts import groups_of, without_empty
from tritonkernels.workspace import counters, partial_sums

from ...launch import ceil_div


def splits_of(problem, config, k_bytes):
    """(how many there are, slices of so many bytes of K in each); none is empty."""
    slices = max(1, ceil_div(problem.k * problem.dtype.itemsize, k_bytes))
    splits = without_empty(config["SPLIT_K"], slices)
    return splits, ceil_div(slices, splits)


def workspace(splits, blocks, config, out):
    """(partial sums, counters of arrivals) of so many tiles; None of both if nothing is split."""
    if splits == 1:
        return None, None
    return partial_sums(splits, blocks * config["BM"] * config["BN"], out), counters(blocks * (1 + groups_of(splits)), out)
