"""Tables of machine code and of accesses to memory in a chapter: making them takes compilers and minutes.

So they are made by `perf docs --compile` only. The last line of each has a digest of what it was made from, by which
`perf docs --check` sees that it is out of date.
"""

import hashlib
import json
import re

import torch
import triton

import cuda_reference.launch
from cuda_reference import toolchain
from cuda_reference.trace import trace
from tritonkernels.gemm import prepare
from tritonkernels.launch import LIBRARY
from tritonkernels.target import Target

from ..measure import inspection, kernels
from ..show import table
from ..show.table import three_digits
from . import conv_trace

TILE = {"BM": 128, "BN": 128, "BK": 8}  # of the lessons
MADE_FROM = "Made from sources `{}`"


def inspected(op, architecture):
    """The table of `perf inspect`, each design's two programs one below the other."""
    target = Target.named(architecture)
    rows = [row for name in _names(op) for row in inspection.inspect(op, target, name) if "fault" not in row]
    nvcc = re.search(r"cuda_([\d.]+)", toolchain.nvcc().version)[1].rstrip(".")
    made = f"{MADE_FROM.format(digest(op, architecture))} by Triton {triton.__version__} and nvcc {nvcc}."
    return f"{table.markdown(*inspection.table_of(rows))}\n\n{made}"


def traced(op):
    """The cost of the CUDA kernels' accesses, counted in the emulation: of gemm's lessons, or of conv2d's on CUDA cores."""
    found = conv_trace.traced() if op == "conv2d" else _traced_lessons(op)
    return f"{found}\n\n{MADE_FROM.format(_digest_of_trace(op))}."


def _traced_lessons(op):
    a, b, c = torch.randn(256, 64), torch.randn(64, 256), torch.randn(256, 256)
    call = prepare(a, b, c, beta=0.5)
    columns = {
        "stores of A": ("shared", "write", ("a_tile",)),
        "stores of B": ("shared", "write", ("b_tile",)),
        "loads of A": ("shared", "read", ("a_tile",)),
        "loads of B": ("shared", "read", ("b_tile",)),
        "global loads of A and B": ("global", "read", ("argument 0", "argument 1")),
        "global stores of C": ("global", "write", ("argument 3",)),
    }
    body = []
    for design in cuda_reference.launch.LIBRARY.designs(op):
        if design.name in _names(op, "lesson"):
            configs = list(design.configs(call.problem, Target.named("simt")))
            config = next((x for x in configs if TILE.items() <= x.items()), configs[0])
            found = [x for t in trace(*design.launches(call.problem, config, *call.parts[0])) for x in t.accesses]
            body.append([design.name, *(_cost(found, *column) for column in columns.values())])
    return table.markdown(["lesson", *columns], body)


def _cost(accesses, space, kind, arrays):
    return conv_trace.cost(x for x in accesses if (x.space, x.kind) == (space, kind) and x.array in arrays)


def is_current(kind, words, text):
    """Whether a marked part of a chapter is of today's sources; other kinds than these two always are."""
    made_from = {"inspect": digest, "trace": _digest_of_trace}
    return kind not in made_from or MADE_FROM.format(made_from[kind](*words.split())) in text


def _digest_of_trace(op):
    return _hash(conv_trace.sources()) if op == "conv2d" else digest(op)


def digest(op, architecture=None):
    """A hash of the sources of the operation's kernels and, if the table has them, of default configs and predicted times."""
    facts = [kernels.digests()[op]]
    if architecture:
        target = Target.named(architecture)
        for row in (row for name in _names(op) for row in inspection.inspect(op, target, name, compiled=False)):
            predicted = [three_digits(1e6 * row["predicted_s"]), row["bound_by"]] if "predicted_s" in row else []
            facts.append([row["implementation"], row["design"], row.get("config"), *predicted])
    return _hash(facts)


def _hash(facts):
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]


def _names(op, kind=None):
    return [rung.name for rung in LIBRARY.operation(op).own if kind in (None, rung.kind)]
