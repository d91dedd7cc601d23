"""docs/choice.md: how a design and a config are chosen, from what figures, and how good the choice is."""

from tritonkernels.choice import efficiency, learned, model
from tritonkernels.target import Target

from .. import ROOT
from ..show.table import markdown as as_table
from . import boosting, evaluate, residuals, timed

INTRODUCTION = """\
# The choice

`make docs` writes this page, from the records in [perf/results](../perf/results) and the tables in
[tritonkernels/choice/tables](../tritonkernels/choice/tables).

A call gets its design and its config (tile sizes, warps, stages) from, in this order:

1. the caller: `design=`, `config=`;
2. the user's tuned table, or else the shipped one of this GPU, if it has an entry for such calls: see [tuning.md](tuning.md);
3. the model of time and what was learned of its errors: of every legal config of every design that does not refuse, the one
   with the least predicted seconds among those that were timed.

*Timed* are the configs of a design that has records in the call's precision, if each of their numbers (tile sizes, warps, ...)
occurs in the design's records; numbers that follow from the problem or the GPU, as the number of splits, do not count. So what
is new to the package becomes nobody's default before it has run on a GPU: `explain` ranks it, and says "never timed";
`config=`, `tune` and `perf sweep` reach it at once; after `perf sweep` and `perf fit` it competes. Where nothing timed is
willing, all compete.

Nothing is benchmarked at a call. The choice is a pure function of the problem, the GPU's figures and the tables, so it is the
same on every rank. To see what it is:

```python
import torch
import tritonkernels as tk

a, b = (torch.randn(64, 64) for _ in range(2))
print(tk.explain("gemm", a, b, target="h200"))
```

To do better for a shape of your own, tune it: `tk.tune("gemm", a, b)` on your GPU.

## The model

A design counts the work of each kernel that it launches (`Design.work`): blocks, FLOPs, bytes to and from L2 and DRAM, trips to
memory that wait for each other. The model turns counts into seconds:

    compute = blocks of the busiest SM * FLOPs of a block / (peak of an SM * share)
    cache   = blocks of the busiest SM * bytes of a block / (L2 bandwidth of an SM * share)
    memory  = bytes of all blocks / (DRAM bandwidth * share)
    latency = waves * trips of a block * (DRAM latency / share)
    epilogue = blocks of the busiest SM * FLOPs of a block after its sums / (FP32 peak of an SM * share)
    launch  = launch time / share, another one for kernels after the first

    overlapped = (compute^{overlap} + cache^{overlap} + memory^{overlap} + latency^{overlap})^(1/{overlap})
    seconds = sum over kernels of (launch + factors * (overlapped + factors of bias and activation * epilogue))

CUDA cores compute at that rate with {busy} warps of an SM or more, two for each scheduler, and slower in proportion with fewer.

`explain` gives no time below the problem's roofline: all FLOPs at the peak, compulsory bytes at the bandwidth of DRAM. None of
161,919 timed runs was below it. The choice is by what was predicted before: among predictions that are too good their order is
still the best guess.

The GPU's figures are in its [table of targets](../tritonkernels/target.py), or measured by its user
([how](tuning.md#a-gpu-that-nobody-knows)). The shares of each design, and the factors of its configs, of classes of problems
(their layouts and other fields that are no sizes) and of configs on operands that lie in some way, are data: `python -m perf
fit` fits them to recorded times, by robust least squares on the logarithm of time. Each precision of a design has its own.
Where it has few records they are about those of the design's other precisions; a design with few records gets about the shares
of its operation's other designs, and a config or a class with few records a factor near 1. Shares are of a GPU's own figures,
so the records of all GPUs of an architecture are fitted to together, here of {gpus}. The result serves every GPU, and what was
timed there counts as timed.

## What the model does not count

Bank conflicts, power, how waves of unlike blocks meet, and more: where they make the model wrong by about the same factor on
problems and configs that are alike, records show it. [boosting.py](../perf/fit/boosting.py) fits {trees} trees for each
operation and package to the logarithm of measured over predicted seconds, and above all to how it differs among the runs of
one shape, since a choice is among these; the faster a run is, the more it counts. Each asks a call {depth} questions ("is K
above 2048?", "has the config 8 warps?", "does latency take more than half of the time?") and adds the value that the answers
lead to. Operations of which fewer than {fewest} random shapes were timed have none. Trees choose only among contenders, which
the model predicts to take at most {near} times as long as the fastest; far from that records are few.
[learned.py](../tritonkernels/choice/learned.py) has the figures that they ask for.

To fit again, after new records (`python -m perf sweep`, on the GPU; with `--pick kinds` each kind of tile has its first config
timed, whether the choice thinks well of it or not; `--from classes` draws as those do that judge speed; and `--precision`,
`--family` and `--class` say of which shapes):

    python -m perf fit
    make docs

## How good it is

*chosen / best*: the measured time of what the model chooses, over that of the fastest that was measured for the same shape and
package, by figures and trees that were fitted to half of the shapes, on random shapes (`perf/measure/shapes.py`) of the other
half. The shipped ones are fitted to both halves, so they should be a little better. Not every legal config was measured for
every shape, and the model chooses among those that were; an unmeasured one may be faster. Shapes with times of kernels that
have been rewritten since are left out. [The results](results.md) show, by class, how fast the choice is compared with torch.

The gates: a geometric mean of at most {mean}, and at most {fine} for {share:.0%} of the shapes.

"""
PAGE = ROOT / "docs/choice.md"
JUDGED = "<!-- what follows is written by python -m perf fit -->\n"
HEADINGS = ["shapes", "chosen / best", "95 %", "99 %", f"at most {evaluate.FINE}", "worst"]
WORST = 20
UNNAMED = ("dtype", "out_dtype", "precision", "a_shared", "b_shared", "x_shared")
USUAL = (  # fields of most calls
    *{
        "batch": 1,
        "alpha": 1.0,
        "beta": 0.0,
        "a_layout": "row",
        "b_layout": "row",
        "aligned": True,
        "accumulate": "fp32",
    }.items(),
    *{"groups": 1, "stride": (1, 1), "padding": (0, 0), "dilation": (1, 1)}.items(),
)


def markdown(judged=None):
    """The page with these sections of GPUs, or with those that it has: `make docs` judges nothing."""
    judged = PAGE.read_text(encoding="utf-8").partition(JUDGED)[2] if judged is None else judged
    gpus = timed.of_architecture(Target.named(efficiency.REFERENCE).arch)
    figures = {
        "gpus": " and ".join(gpu.name.upper() for gpu in gpus),
        "overlap": model.OVERLAP,
        "busy": model.BUSY,
        "trees": boosting.TREES,
        "fewest": residuals.FEWEST,
        "depth": boosting.DEPTH,
        "near": learned.NEAR,
        "mean": evaluate.GATE_MEAN,
        "fine": evaluate.FINE,
        "share": evaluate.GATE_SHARE,
    }
    return INTRODUCTION.format(**figures) + JUDGED + judged


def section(gpu, outcomes):
    """The part of the page about a GPU."""
    parts = [f"\n### {gpu.upper()}\n"]
    if not outcomes:
        return "\n".join([*parts, "There are no records of random shapes yet.\n"])
    packages = sorted({outcome.chosen.package for outcome in outcomes}, reverse=True)
    summaries = {package: evaluate.summary([o for o in outcomes if o.chosen.package == package]) for package in packages}
    parts += [f"- `{package}`: the gates are {'met' if s.passes else '**not met**'}." for package, s in summaries.items()]
    parts += ["", as_table(["package", *HEADINGS], [[package, *_cells(s)] for package, s in summaries.items()]), ""]
    for package in packages:
        groups = {}
        for outcome in outcomes:
            if outcome.chosen.package == package:
                shape = outcome.chosen.shape
                groups.setdefault((shape.problem.op, shape.family), []).append(outcome)
        rows = [[op, family, *_cells(evaluate.summary(groups[op, family]))] for op, family in sorted(groups)]
        parts += [f"#### {package}, by family\n", as_table(["operation", "family", *HEADINGS], rows), ""]
    worst = sorted(outcomes, key=lambda outcome: (-outcome.lost, outcome.chosen.shape.key))[:WORST]
    parts += [f"#### The worst {len(worst)}\n", "Times in microseconds, in brackets as predicted.\n"]
    parts += [as_table(["problem", "package", "chosen / best", "chosen", "best"], map(_row, worst)), ""]
    return "\n".join(parts)


def _cells(s):
    return [str(s.shapes), f"{s.mean:.3f}", f"{s.p95:.2f}", f"{s.p99:.2f}", f"{s.fine:.1%}", f"{s.worst:.2f}"]


def _row(outcome):
    chosen = _run(outcome.chosen.run, outcome.chosen_s)
    best = _run(outcome.best.run, outcome.best_s)
    return [named(outcome.chosen.shape.problem), outcome.chosen.package, f"{outcome.lost:.2f}", chosen, best]


def _run(run, predicted):
    config = " ".join(f"{name}={value}" for name, value in run.config.items())
    return f"`{run.design}` {config}: {1e6 * run.seconds:.1f} ({1e6 * predicted:.1f})"


def named(problem):
    """The problem in a line, without the fields that are as in most calls."""
    fields = {name: value for name, value in problem.describe().items() if name not in UNNAMED}
    own = [name if value is True else f"{name} {value}" for name, value in fields.items() if (name, value) not in USUAL]
    return " ".join([problem.op, problem.precision, *(text for text in own if not text.endswith((" False", " None")))])
