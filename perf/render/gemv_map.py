"""The map over (M, N) of the gemv design that Triton calls get, as a table for docs/gemv.md."""

import torch

from tritonkernels.gemv import prepare
from tritonkernels.launch import LIBRARY
from tritonkernels.target import Target

from ..show import table

NS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 10**6)
MS = (1, 16, 64, 256, 1024, 4096, 16384, 65536, 10**6)
LARGEST = 2**33  # elements


def regimes(target, dtype):
    """A row for each M: the design for each N and its predicted microseconds."""
    machine, dtype = Target.named(target), getattr(torch, dtype)

    def cell(m, n):
        if m * n > LARGEST:
            return ""
        problem = prepare(torch.empty(m, n, dtype=dtype, device="meta"), torch.empty(n, dtype=dtype, device="meta")).problem
        best = LIBRARY.ranking(problem, machine)[0]
        return f"{best.design.name} {best.estimate.seconds * 1e6:.3g}"

    return table.markdown(["M \\ N", *map(str, NS)], [[str(m), *(cell(m, n) for n in NS)] for m in MS])
