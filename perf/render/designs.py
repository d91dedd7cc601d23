"""docs/designs.md: the designs of every operation, twins side by side, as the packages declare them."""

import importlib
from pathlib import Path

import cuda_reference
import tritonkernels

from .. import ROOT
from . import table

INTRODUCTION = """\
# Designs

Every design of every operation, simplest first. Pick one with `design="naive"`; a call without `design=` uses the one that
`explain` names. `make docs` writes this page from the designs.
"""


def markdown():
    return INTRODUCTION + "".join(f"\n## {op}\n\n{table.markdown(*_rows(op))}\n" for op in tritonkernels.OPS)


def _rows(op):
    folder = getattr(importlib.import_module(f"tritonkernels.{op}"), "REDUCES_TO", op)  # the operation that has the designs
    triton, cuda = ({d.name: d for d in package.designs(op)} for package in (tritonkernels, cuda_reference))
    body = []
    for name in dict.fromkeys([*cuda, *triton]):
        design = triton.get(name) or cuda[name]
        kernels = (f"tritonkernels/{folder}/{name}.py",) if name in triton else ()
        launches = (f"cuda_reference/{folder}/{name}.cuh", f"cuda_reference/{folder}/{name}.py") if name in cuda else ()
        body.append([f"`{name}`", design.summary, _link(kernels), _link(launches), design.mirrors])
    return ["design", "what it does", "Triton", "CUDA", "mirrors"], body


def _link(files):
    """A link to the first of the files that exists: a design without its own kernel launches another's."""
    return next((f"[{Path(file).name}](../{file})" for file in files if (ROOT / file).exists()), "-")
