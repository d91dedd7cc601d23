"""python -m perf compare: every design of both packages, and torch, on the cases of a suite.

With --against, the times are compared with those of an earlier run: what changed by more than the threshold, and by so much
that the spreads (20 to 80 % of the rounds) do not overlap, is listed.

Exit status: 1 if a result breaks its bound, a run fails or something is slower than in --against; 2 for bad arguments.
"""

import argparse
from pathlib import Path

from tritonkernels import OPS

from ..render import plot, table
from ..render.writable import writable
from . import against, ahead, contenders, records
from .comparison import Comparison, GpuLost
from .environment import add_commit
from .suites import SUITES


def add_arguments(parser):
    parser.add_argument("--op", nargs="+", action="extend", choices=OPS, help="default: all")
    parser.add_argument("--suite", choices=SUITES, default="smoke", help="default: %(default)s")
    parser.add_argument("--design", nargs="+", action="extend", metavar="NAME", help="default: all; torch always runs")
    parser.add_argument("--json", type=writable, metavar="FILE", help="write the records there, after each case")
    parser.add_argument("--csv", type=writable, metavar="FILE", help="write the records there")
    parser.add_argument("--plot", type=_picture, metavar="FILE", help="draw speed against error, as PNG or SVG by the suffix")
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the operands and of the order of runs; default: %(default)s"
    )
    parser.add_argument(
        "--against", type=against.file, metavar="FILE", help="compare the times with those of an earlier --json"
    )
    parser.add_argument(
        "--threshold", type=against.percent, default=0.02, metavar="PCT", help="changes that count, in percent; default: 2"
    )
    parser.add_argument("--records", type=against.file, metavar="FILE", help="of a run to compare, instead of measuring")
    add_commit(parser)


def _picture(name):
    if Path(name).suffix not in plot.SUFFIXES:
        raise argparse.ArgumentTypeError(f"cannot draw {name}: its suffix must be one of {', '.join(plot.SUFFIXES)}")
    if not plot.available():
        raise argparse.ArgumentTypeError("a chart needs matplotlib: pip install 'tritonkernels[plot]'")
    return writable(name)


def main(options, parser):
    if options.records is not None:
        if options.against is None:
            parser.error("argument --records: it is compared with --against, which is missing")
        return against.report(options.against, options.records, options.threshold)
    device = contenders.device()
    if options.against is not None and device.type != "cuda":
        parser.error("argument --against: without a GPU nothing is timed; --records FILE compares two files")
    ops = options.op or OPS
    known = list(dict.fromkeys(design.name for op in ops for _, design in contenders.designs(op)))
    for name in options.design or ():
        if name not in known:
            parser.error(f"argument --design: unknown {name!r} for {', '.join(ops)} (choose from {', '.join(known)})")
    cases = [case for case in SUITES[options.suite] if case.op in ops]
    runnable = [case for case in cases if device.type == "cuda" or not case.gpu_only]
    ahead.build_all(runnable, options.design, device)
    comparison = Comparison(options.suite, options.seed, options.design, device, options.commit)
    lost = None
    with table.progress(len(runnable)) as advance:
        for case in runnable:
            advance(f"{case.op} {case.name}")
            try:
                comparison.run(case)
            except GpuLost as error:
                lost = f"Stopped at {case.op} {case.name}, the rest of the suite did not run: {error}"
                break
            finally:
                if options.json:
                    records.write_json(options.json, comparison.records)
    if options.csv:
        records.write_csv(options.csv, comparison.records)
    if options.plot:
        plot.speed_against_error(comparison.records, options.plot)
    _report(comparison, device, left_out=len(cases) - len(runnable))
    if lost:
        print(lost)
    slower = options.against is not None and against.report(options.against, comparison.records, options.threshold)
    return 0 if all(r.ok for r in comparison.records) and not lost and not slower else 1


def _report(comparison, device, left_out):
    rows, refusals = comparison.records, comparison.refusals
    table.show(rows)
    print()
    if device.type == "cpu":
        print("Without a GPU: correctness only, no times.")
    if any(r.exposed for r in rows):
        print("* Some rounds may include host time; `exposed` in the records is their share.")
    for line in refusals:
        print(f"Refused: {line}")
    for r in rows:
        if not r.ok:
            print(f"FAILED: {r.op} {r.case}, {r.implementation} {r.design}: {r.message}")
    ok = sum(r.ok for r in rows)
    print(f"{len(rows)} rows, {ok} ok, {len(rows) - ok} failed, {len(refusals)} refused, {left_out} GPU-only cases not run")
