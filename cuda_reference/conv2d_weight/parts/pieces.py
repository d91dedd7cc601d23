"""The workspace of blocks that share tiles (pieces.cuh)."""

from tritonkernels.operations.gemm.split_counts import GROUP
from tritonkernels.workspace import counters, partial_sums

from ...launch import ceil_div


def workspace(share, sums, adders, out):
    """(the parts of the tiles that several blocks share, of so many sums each; counters of arrivals: of a tile's parts, then of
    each of its groups of parts, for each of the `adders`, which add them up side by side), or Nones."""
    if not share.left or share.parts == 1:
        return None, None
    arrivals = share.left * (1 + ceil_div(share.parts, GROUP)) * adders
    return partial_sums(share.left * share.parts, sums, out), counters(arrivals, out)
