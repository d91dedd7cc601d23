"""docs/designs.md: the designs of every operation, the twins of one name side by side, from what the packages declare."""

import importlib
from pathlib import Path

import cuda_reference
import tritonkernels

from .. import ROOT
from . import table

INTRODUCTION = """\
# Designs

Every design of every operation, simplest first. Pick one with `design="naive"`; without, a call takes the one that `explain`
names. `make docs` writes this page from the designs themselves.
"""


def markdown():
    return INTRODUCTION + "".join(f"\n## {op}\n\n{table.markdown(*_rows(op))}\n" for op in tritonkernels.OPS)


def _rows(op):
    folder = getattr(importlib.import_module(f"tritonkernels.{op}"), "REDUCES_TO", op)  # whose designs these are
    triton, cuda = ({d.name: d for d in package.designs(op)} for package in (tritonkernels, cuda_reference))
    body = []
    for name in dict.fromkeys([*cuda, *triton]):
        design = triton.get(name) or cuda[name]
        kernels = (f"tritonkernels/{folder}/{name}.py",) if name in triton else ()
        launches = (f"cuda_reference/{folder}/{name}.cuh", f"cuda_reference/{folder}/{name}.py") if name in cuda else ()
        body.append([f"`{name}`", design.summary, _link(kernels), _link(launches), design.mirrors])
    return ["design", "what it does", "Triton", "CUDA", "mirrors"], body


def _link(files):
    """To the first of the files that there is: a design without a kernel of its own launches another's."""
    return next((f"[{Path(file).name}](../{file})" for file in files if (ROOT / file).exists()), "-")
