"""python -m perf fit: what every design sustains of a GPU, fitted to records of times, for the choice of designs and configs.

What a design sustains is a share of the GPU's own figures, so records of all GPUs of one architecture count together: those in
perf/results, or the files named, which are of GPU. Written are tritonkernels/choice/tables/GPU/sustained/*.json: the same
records give the same files, but for designs that are other kernels since they were timed (remade.py). Short calls, which
`perf compare` times in a row, do not wait for their launches. With them go learned/*.npz: what the model with these figures
gets wrong (boosting.py).

The choice is judged by a model that is fitted to half of the shapes only, by a hash of them, on the others;
docs/choice.md has it. What is written is then fitted to all of them. Needs no GPU.

Exit status: 2 if there are no records.
"""

from pathlib import Path

from tritonkernels.choice import efficiency, learned
from tritonkernels.errors import BackendError
from tritonkernels.target import Target

from .. import processes
from ..show.table import print_table
from . import choice_page, counted, evaluate, remade, residuals, table, timed

HEADINGS = ("half", "package", "shapes", "chosen / best", "99 %", "at most 1.25", "worst")


def add_arguments(parser):
    parser.add_argument("--gpu", default="h200", help="a name of the table of targets; default: %(default)s")
    parser.add_argument("--records", type=Path, nargs="+", metavar="FILE", help="default: those in perf/results")
    parser.add_argument("--judged", type=Path, default=choice_page.PAGE, metavar="FILE", help="default: %(default)s")


def main(options, parser):
    try:
        target = Target.named(options.gpu)
        targets = [target] if options.records else timed.of_architecture(target.arch)
        shapes = {gpu: timed.of_gpu(gpu.name, options.records) for gpu in targets}
    except (BackendError, OSError, ValueError, KeyError) as error:
        parser.error(str(error))
    runs = [run for gpu, own in shapes.items() for run in counted.counted(own.shapes, gpu)]
    today, folder = remade.of_today(runs), table.folder(target.name)
    if not today:
        parser.error(f"no records of {target.name} to fit to")
    _judge(runs, *_fitted([run for run in today if run.shape.half == "fit"], runs, target), targets, options.judged)
    designs, trees = _fitted(today, runs, target)
    commit = max(shapes.values(), key=lambda own: own.date).commit
    written = table.texts([gpu.name for gpu in targets], commit, len(today), designs)
    files = {folder / name: content for name, content in written.items()}
    files |= {learned.path_of(target.name, *key): residuals.content(own) for key, own in trees.items()}
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)  # the first table of a GPU
        processes.replace(path, content)
    print(f"{folder}: {len(today)} records of {len({id(run.shape) for run in today})} shapes")
    return 0


def _fitted(learnt, runs, target):
    """(designs, trees) fitted to the records `learnt`; of designs that none is of, what the shipped table has."""
    known = efficiency.sustained(target.name) if table.folder(target.name).exists() else {}
    designs = table.fitted(learnt, runs) | remade.kept(learnt, known)
    return designs, residuals.fitted(learnt, designs)


def _judge(runs, designs, trees, targets, path):
    """Print how good the choice by `designs` and `trees` is, and write a page of how good on the half that they do not know."""
    judged = remade.of_today_only(runs)
    print_table(HEADINGS, [row for half in ("fit", "judge") for row in _rows(half, judged, designs, trees)])
    drawn = [run for run in judged if run.shape.judges and run.shape.half == "judge"]
    sections = (
        choice_page.section(gpu.name, evaluate.outcomes([run for run in drawn if run.target is gpu], designs, trees))
        for gpu in targets
    )
    processes.replace(path, choice_page.markdown("".join(sections)))


def _rows(half, runs, designs, trees):
    own = evaluate.outcomes([run for run in runs if run.shape.half == half], designs, trees)
    for package in dict.fromkeys(outcome.chosen.package for outcome in own):
        s = evaluate.summary([outcome for outcome in own if outcome.chosen.package == package])
        yield [half, package, str(s.shapes), f"{s.mean:.3f}", f"{s.p99:.2f}", f"{s.fine:.1%}", f"{s.worst:.2f}"]
