"""python -m perf sweep: times of random shapes, of the choice's first candidates and some others, to fit the choice to.

Shapes are of families (shapes.py), or drawn as the classes are that speed is judged by, none of them by a judge. Of each shape
and package some contenders run (trial.py): most are the first of the choice's ranking, some are random, and some were never
timed, as new designs and configs are; or, to see what the choice misses, they are the first of each kind. Each result is
checked, and they are timed together, with torch. Kernels are built on all cores meanwhile. It ends in time, and keeps what it
has measured in DIR, one file an operation (sweep_records.py). A second call goes on where the first one ended; changed sources
begin again. On several GPUs each process takes a share: CUDA_VISIBLE_DEVICES=1 python -m perf sweep --share 1/2 ...

Exit status: 1 if a contender was wrong or a process failed, 2 without a GPU, without shapes or for bad arguments.
"""

import argparse
import collections
import itertools
import os
import sys
import time
from pathlib import Path

from tritonkernels.choice import efficiency
from tritonkernels.target import Target

from .. import arguments
from ..arguments import folder, positive
from . import classes, contenders, schedule, shapes, trial
from .environment import add_commit, environment
from .sweep_records import Writer

TELL = 10.0  # seconds between lines of progress
SOURCES = {"families": shapes.FAMILIES.get, "classes": classes.families_of}


def add_arguments(parser):
    parser.add_argument("op", nargs="+", choices=shapes.FAMILIES, metavar="OP", help=f"of {', '.join(shapes.FAMILIES)}")
    parser.add_argument("--shapes", type=arguments.count, default=300, metavar="N", help="per operation; default: %(default)s")
    parser.add_argument(
        "--seconds", type=positive("seconds"), default=360.0, metavar="S", help="the limit of it all; default: %(default)g"
    )
    parser.add_argument(
        "--contenders", type=arguments.count, default=10, metavar="N", help="per shape and package; default: %(default)s"
    )
    parser.add_argument("--pick", choices=trial.PICKS, default="any", help="how they are picked; default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, metavar="K", help="of the shapes; default: %(default)s")
    parser.add_argument("--package", choices=contenders.PACKAGES.values(), help="default: both")
    parser.add_argument(
        "--from", dest="source", choices=SOURCES, default="families", help="of which shapes are drawn; default: %(default)s"
    )
    for name, example in (("precision", "fp16"), ("family", "'long K'"), ("class", "'aligned False'")):
        only = f"only shapes of it, as {example}; may be repeated; default: all"
        parser.add_argument(f"--{name}", action="append", metavar=name[0].upper(), help=only)
    parser.add_argument("--out", type=folder, default=Path("build/sweep"), metavar="DIR", help="default: %(default)s")
    parser.add_argument(
        "--workers", type=arguments.count, default=max(1, len(os.sched_getaffinity(0)) - 2), metavar="W", help="that build"
    )
    parser.add_argument("--share", type=_share, default=(0, 1), metavar="I/N", help="only every N-th shape, from the I-th on")
    add_commit(parser)
    parser.add_argument("--dry-run", action="store_true", help="count what would be built and measured, and stop")


def _share(text):
    index, of = map(int, text.split("/"))
    if not 0 <= index < of:
        raise argparse.ArgumentTypeError(f"{text} is not I/N with I from 0 to N - 1")
    return index, of


def main(options, parser):
    begun, device = time.monotonic(), contenders.device()
    if device.type != "cuda" and not options.dry_run:
        print("sweep needs a GPU and torch sees none; --dry-run counts what it would measure", file=sys.stderr)
        return 2
    packages = [options.package] if options.package else list(contenders.PACKAGES.values())
    target = Target.live(device) if device.type == "cuda" else shapes.H200
    draws = {op: shapes.draw(op, options.shapes, options.seed, SOURCES[options.source](op)) for op in options.op}
    drawn = interleaved({op: list(_wanted(own, options)) for op, own in draws.items()}, *options.share)
    if not drawn:
        print("none of the shapes is of that precision, family and class", file=sys.stderr)
        return 2
    if options.dry_run:
        count(jobs(drawn, packages, target, options.contenders, pick=options.pick))
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    writers, described = {}, environment(device, options.commit)
    index, of = options.share
    for op in options.op:
        path = options.out / (f"{op}.{index}of{of}.jsonl" if of > 1 else f"{op}.jsonl")
        writers[op] = Writer(path, described, contenders=options.contenders, seed=options.seed)
    done = {op: writer.done for op, writer in writers.items()}
    planned = jobs(drawn, packages, target, options.contenders, done, options.pick)
    return run(planned, options.workers, options.seconds - (time.monotonic() - begun), writers)


def _wanted(drawn, options):
    """The shapes that the options leave: of one of the precisions, of the families, and of the classes of problems."""
    for shape in drawn:
        traits = {"precision": {shape.problem.precision}, "family": {shape.family}}
        traits["class"] = set(itertools.chain(*efficiency.classes(shape.problem)))
        wanted = ((own, getattr(options, name)) for name, own in traits.items())
        if all(asked is None or not own.isdisjoint(asked) for own, asked in wanted):
            yield shape


def interleaved(by_op, index=0, of=1):
    """Every `of`-th shape of each operation from the index-th on, the operations in turn, so that any part of it has all."""
    in_turn = itertools.zip_longest(*(drawn[index::of] for drawn in by_op.values()))
    return [shape for together in in_turn for shape in together if shape]


def jobs(drawn, packages, target, number, done=None, pick="any"):
    """A Job of `number` contenders for each shape and package that is not done yet."""
    trials = [
        trial.plan(shape, package, target, number, pick)
        for shape in drawn
        for package in packages
        if (shape.key, package) not in (done or {}).get(shape.problem.op, ())
    ]
    return [schedule.Job(t, _keys(t, target)) for t in trials if t.contenders]


def _keys(planned, target):
    """What each contender's build makes: the sources of CUDA kernels, which several may share; a Triton kernel of its own."""
    if planned.package != "cuda_reference":
        return tuple((planned.shape.key, i) for i in range(len(planned.contenders)))
    return tuple(
        frozenset(launch.source for launch in trial.launches(planned.shape.case, planned.package, target, contender))
        for contender in planned.contenders
    )


def count(planned):
    """Print what the jobs would build and measure."""
    for op in dict.fromkeys(job.trial.shape.problem.op for job in planned):
        for package in dict.fromkeys(job.trial.package for job in planned):
            own = [job for job in planned if (job.trial.shape.problem.op, job.trial.package) == (op, package)]
            families = len({job.trial.shape.family for job in own})
            timed, builds = sum(len(job.keys) for job in own), len({key for job in own for key in job.keys})
            print(f"{op}, {package}: {len(own)} shapes of {families} families, {timed} contenders, {builds} builds")


def run(planned, workers, seconds, writers, **stand_ins):
    """Do the jobs, tell how far they came, and return the exit status."""
    counts, said = collections.Counter(), time.monotonic()

    def record(row):
        nonlocal said
        writers[row["op"]].write(row)
        counts.update(timed=len(row["times"]), wrong=len(row["wrong"]), failed=len(row["failed"]))
        counts.update(left_out=row["left_out"], faults=row["faults"])
        title = f"{row['package']}.{row['op']}, {row['family']}"
        for design, config, why in row["wrong"]:
            print(f"WRONG: {title}: {design} {config}: {why}: {row['problem']}", flush=True)
        for design, config, why in row["failed"][:1]:
            print(f"{len(row['failed'])} failed: {title}: {design} {config}: {why}", flush=True)
        if "fault" in row:
            print(f"GIVEN UP: {title}: {row['fault']}: {row['problem']}", flush=True)
        if time.monotonic() - said > TELL:
            said = time.monotonic()
            print(f"{under_way.measured} of {len(planned)} measured, {under_way.built} builds, {dict(counts)}", flush=True)

    under_way = schedule.Schedule(planned, workers, seconds, record, **stand_ins)
    under_way.run()
    print(f"{under_way.measured} of {len(planned)} measured, {under_way.built} builds, {dict(counts)}")
    return 1 if counts["wrong"] or counts["faults"] else 0
