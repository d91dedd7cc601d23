"""docs/designs.md: the designs of every operation, twins side by side, as the packages declare them."""

from pathlib import Path

import tritonkernels
from tritonkernels.launch import LIBRARY

from ..show import table

INTRODUCTION = """\
# Designs

Every design of every operation, simplest first. Pick one with `design="naive"`; a call without `design=` uses the one that
`explain` names. A *lesson* teaches one technique in a file that stands alone: it takes plain problems only, and is used by
name, never chosen. A *contender* is what a call may get. A *write-up* is the published text that an operation's first
designs follow. `make docs` writes this page from the designs.
"""


def markdown():
    blocks = (block for op in tritonkernels.OPS for block in (f"## {op}", *_section(LIBRARY.operation(op))))
    return INTRODUCTION + "".join(f"\n{block}\n" for block in blocks)


def _section(operation):
    """The operation's own designs as a table, then a sentence for each operation whose designs it has too."""
    if operation.own:
        yield table.markdown(*_rows(operation))
    for reduction in operation.reductions:
        of, lent = reduction.to, list(filter(reduction.lends, operation.lent_by(reduction.operation)))
        example = operation.named(reduction, lent[-1].name)
        former = f" Records of earlier commits call it `{reduction.formerly}`." if reduction.formerly else ""
        yield f"The designs of [{of}](#{of}), by names such as `{example}`, also answer {reduction.summary}.{former}"


def _rows(operation):
    body = []
    for rung in operation.own:
        kernels = (f"tritonkernels/{operation.name}/{rung.name}.py",) if rung.is_in("tritonkernels") else ()
        launches = (f"cuda_reference/{operation.name}/{rung.name}.cuh",) if rung.is_in("cuda_reference") else ()
        body.append([f"`{rung.name}`", rung.kind, rung.summary, _link(kernels), _link(launches), rung.mirrors])
    return ["design", "kind", "what it does", "Triton", "CUDA", "mirrors"], body


def _link(files):
    return next((f"[{Path(file).name}](../{file})" for file in files), "-")
