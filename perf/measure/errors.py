"""python -m perf errors: errors of every fp32 mode of matmul on ill-conditioned operands, against float64.

It runs every mode of both packages, and torch's fp32 and tf32. Errors are relative to |A||B|, element by element: the largest
and the root mean square. For ill-conditioned inner products there is also the error relative to the result. fp16x3 may refuse
elements, which are then NaN: their share is reported, and they do not count as errors.

Without a GPU it uses small sizes, Triton's interpreter and the SIMT emulation. Exit status: 1 if a bound is broken.
"""

import contextlib
import dataclasses
import functools
import importlib
from dataclasses import dataclass
from typing import Any

import torch

from tritonkernels import numerics
from tritonkernels.errors import UnsupportedError
from tritonkernels.matmul import prepare

from ..arguments import writable
from ..show import table
from . import ahead, baselines, contenders, records, trial
from .cases import matmul
from .environment import add_commit, environment
from .stress import CONDITIONS, STRESSES, ill_conditioned
from .suites import MODES

SIZES = {"cuda": (256, 4096, 65536, 256), "cpu": (16, 256, 1024, 8)}  # of M and N, K, long K, and inner products


@dataclass
class Errors:
    """The errors of one mode of a design, on one kind of operands."""

    operands: str
    shape: list[int]  # of the product and K
    implementation: str
    design: str
    backend: str
    precision: str
    worst: float | None = None  # this and the next are relative to |A||B|; None where everything is refused
    typical: float | None = None
    of_result: float | None = None  # the median of errors relative to the exact result
    bound: float | None = None  # of the worst element, also relative to |A||B|
    refused: float = 0.0  # share of elements that are NaN
    ok: bool = False  # within the bound, or NaN where the mode may refuse
    seed: int = 0
    environment: dict[str, Any] = dataclasses.field(default_factory=dict, repr=False)


def add_arguments(parser):
    parser.add_argument("--json", type=writable, metavar="FILE", help="write the records there")
    parser.add_argument("--implementation", nargs="+", choices=("triton", "cuda", "torch"), default=("triton", "cuda", "torch"))
    parser.add_argument("--seed", type=int, default=0, help="of the operands; default: %(default)s")
    add_commit(parser)


def main(options, parser):
    device = contenders.device()
    rows = list(measured(options.implementation, options.seed, device, options.commit))
    if options.json:
        records.write_json(options.json, rows)
    for title, headings, body in tables([dataclasses.asdict(row) for row in rows]):
        print(f"\n{title}")
        table.print_table(headings, body)
    if device.type == "cpu":
        print("\nWithout a GPU: small sizes, in Triton's interpreter and the SIMT emulation.")
    for row in rows:
        if not row.ok:
            print(f"FAILED: {row.operands}, {row.implementation} {row.precision}: {row.worst} above {row.bound}")
    return 0 if all(row.ok for row in rows) else 1


def measured(implementations, seed, device, commit=None):
    """The Errors of every mode of every design, on every kind of operands."""
    origin = environment(device, commit)
    size, k, long_k, count = SIZES[device.type]
    kinds = {name: functools.partial(draw, m=size, n=size, k=k) for name, draw in STRESSES.items()}
    for name in ("normal", "uniform, 0 to 1"):
        kinds[f"{name}, K = {long_k}"] = functools.partial(STRESSES[name], m=size, n=size, k=long_k)
    for condition in CONDITIONS:
        kinds[f"inner products of condition {condition:.0e}"] = functools.partial(
            ill_conditioned, count=count, k=min(k, 512), condition=condition
        )
    ahead.build_all([matmul(size, size, k, precision=mode) for mode in MODES], implementations, None, device)
    with table.progress(len(kinds)) as advance:
        for name, draw in kinds.items():
            advance(name)
            a, b = (t.to(device) for t in draw(torch.Generator().manual_seed(seed)))
            exact, magnitude = numerics.reference("matmul", a, b), numerics.magnitude("matmul", a, b)
            for implementation, mode, design, call in _methods(implementations, a, b, device):
                row = Errors(name, [*exact.shape, a.shape[-1]], implementation, design, "", mode, seed=seed, environment=origin)
                row.backend = contenders.backend_of(implementation, device)
                _judge(row, call(), exact, magnitude, a, b)
                yield row


def _methods(implementations, a, b, device):
    """(implementation, precision, design, call) of every method that can compute the product."""
    for implementation in implementations:
        if implementation == "torch":
            for mode in ("ieee", "tf32") if device.type == "cuda" else ("ieee",):
                yield implementation, mode, "matmul", functools.partial(_by_torch, mode, a, b)
            continue
        package, library = contenders.PACKAGES[implementation], trial.library(contenders.PACKAGES[implementation])
        for mode in MODES:
            design = design_of(library, prepare(a, b, precision=mode).problem, library.target(a.device))
            if design is not None:
                multiply = importlib.import_module(package).matmul
                yield implementation, mode, design, functools.partial(multiply, a, b, precision=mode, design=design)


def design_of(library, problem, target):
    """The name of the choice's first design that multiplies in the problem's precision, if any: a call may get ieee instead."""
    with contextlib.suppress(UnsupportedError):
        for choice in library.ranking(problem, target):
            if choice.design.as_rounded(problem) == problem:
                return choice.design.name
    return None


def _by_torch(mode, a, b):
    with baselines.precision(mode):
        return torch.matmul(a, b)


def _judge(row, computed, exact, magnitude, a, b):
    verdict = numerics.judge(prepare(a, b, precision=row.precision).problem, computed, a, b, precision=row.precision)
    row.ok, row.bound = verdict.ok, verdict.bound
    kept = ~computed.isnan() & (magnitude > 0)
    row.refused = computed.isnan().double().mean().item()
    if kept.any():
        error = (computed.double() - exact).abs()[kept]
        relative = error / magnitude[kept]
        row.worst, row.typical = relative.max().item(), relative.square().mean().sqrt().item()
        row.of_result = (error / exact.abs()[kept]).median().item()


def tables(rows):
    """(title, headings, rows of text) of records, as dicts: errors relative to |A||B|, and to the results of inner products."""
    methods = dict.fromkeys((row["implementation"], row["precision"]) for row in rows)
    kinds = dict.fromkeys(row["operands"] for row in rows)
    by_name = {(row["operands"], row["implementation"], row["precision"]): row for row in rows}

    def body(names, value):
        return [[name, *(_cell(by_name.get((name, *method)), value) for method in methods)] for name in names]

    headings = ["operands", *(" ".join(method) for method in methods)]
    yield "The largest error relative to |A||B|", headings, body(kinds, "worst")
    inner = [name for name in kinds if name.startswith("inner products")]
    yield "The median error relative to the result", headings, body(inner, "of_result")


def _cell(row, value):
    if row is None:
        return "-"
    number = [] if row[value] is None else [f"{row[value]:.1e}"]
    return ", ".join(number + ([f"{row['refused']:.1%} NaN"] if row["refused"] else []))


def chapter(path):
    """The tables of a file of records as markdown, with a first line that says where they come from."""
    rows = records.read_rows(path)
    e, (m, n, k) = rows[0]["environment"], rows[0]["shape"]
    origin = f"{e['device']}, {e['date'][:10]}, torch {e['torch']}, triton {e['triton']}, CUDA {e['cuda']}"
    parts = [f"{origin}; {m} x {n} x {k} where not said otherwise."]
    for title, headings, body in tables(rows):
        parts += [f"{title}:", table.markdown(headings, [[cell.replace("|", "\\|") for cell in cells] for cells in body])]
    return "\n\n".join(parts)
