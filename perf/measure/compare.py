"""python -m perf compare: every design of both packages, and torch, on the cases of a suite.

With --against, the times are compared with those of an earlier run: what changed by more than the threshold, and by so much
that the spreads (20 to 80 % of the rounds) do not overlap, is listed.

With --peers, what users could call instead is compared, too; no ratio to torch and no exit status depends on it.

Exit status: 1 if a result breaks its bound, a run fails or something is slower than in --against; 2 for bad arguments; 130
after Ctrl-C, which keeps the cases before it.
"""

import argparse
from pathlib import Path

from tritonkernels import OPS

from ..arguments import writable
from ..render import plot, table
from . import against, ahead, contenders, records
from .comparison import Comparison, GpuLost
from .environment import add_commit
from .monitor import Monitor
from .peers import PEERS, entrants
from .suites import SUITES


def add_arguments(parser):
    parser.add_argument("--op", nargs="+", action="extend", choices=OPS, help="default: all")
    parser.add_argument("--suite", choices=SUITES, default="smoke", help="default: %(default)s")
    parser.add_argument("--design", nargs="+", action="extend", metavar="NAME", help="default: all; torch always runs")
    parser.add_argument(
        "--implementation", nargs="+", action="extend", choices=contenders.PACKAGES, help="default: both; torch always runs"
    )
    parser.add_argument(
        "--peers",
        nargs="+",
        action="extend",
        choices=(*PEERS, "all"),
        default=[],
        metavar="NAME",
        help=f"compare these, too: {', '.join(PEERS)}, or all that are installed; default: none",
    )
    parser.add_argument("--list", action="store_true", help="print the cases and designs, and run nothing")
    parser.add_argument("--quiet", action="store_true", help="no table, no bar: only failures, and how many rows of what")
    parser.add_argument("--refusals", action="store_true", help="list what was refused, and why")
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
    parser.add_argument(
        "--records", nargs="+", type=against.file, metavar="FILE", help="show, plot or compare these instead of measuring"
    )
    add_commit(parser)


def _picture(name):
    if Path(name).suffix not in plot.SUFFIXES:
        raise argparse.ArgumentTypeError(f"cannot draw {name}: its suffix must be one of {', '.join(plot.SUFFIXES)}")
    if not plot.available():
        raise argparse.ArgumentTypeError("a chart needs matplotlib: pip install 'tritonkernels[plot]'")
    return writable(name)


def main(options, parser):
    if options.records:
        if options.json:
            parser.error("argument --json: nothing is measured with --records")
        return _of_records(options, [record for file in options.records for record in file])
    device = contenders.device()
    if options.against is not None and device.type != "cuda":
        parser.error("argument --against: without a GPU nothing is timed; --records FILE compares two files")
    ops, implementations = options.op or OPS, options.implementation or list(contenders.PACKAGES)
    designs = [
        design.name for op in ops for implementation, design in contenders.designs(op) if implementation in implementations
    ]
    known = list(dict.fromkeys(designs))
    for name in options.design or ():
        if name not in known:
            parser.error(f"argument --design: unknown {name!r} for {', '.join(ops)} (choose from {', '.join(known)})")
    cases = [case for case in SUITES[options.suite] if case.op in ops]
    if options.list:
        return _list(cases, options.design, implementations, device)
    runnable = [case for case in cases if device.type == "cuda" or not case.gpu_only]
    ahead.build_all(runnable, implementations, options.design, device, options.quiet)
    names = PEERS if "all" in options.peers else options.peers
    with entrants.Entrants(names, device, options.seed) as peers, Monitor(device) as monitor:
        comparison = Comparison(
            options.suite, options.seed, options.design, device, options.commit, implementations, peers, monitor
        )
        stopped, status = _run(comparison, runnable, options)
    rows, refusals = comparison.records, comparison.refusals
    _write(options, rows)
    _show(rows, options.quiet)
    if options.refusals:
        for record, why in refusals:
            print(f"Refused: {record.op} {record.case}, {record.implementation} {record.design}: {why}")
    elif refusals and not options.quiet:
        print(f"Refused: {len(refusals)}, by designs that are not for the case; --refusals says why")
    if options.refusals or not options.quiet:
        for line in peers.lines(options.refusals):
            print(line)
    if stopped:
        print(stopped)
    print(f"{_counted(rows)}, {len(refusals)} refused, {len(cases) - len(runnable)} GPU-only cases not run{_peers(rows)}")
    slower = options.against is not None and against.report(options.against, rows, options.threshold)
    return status or (1 if slower else _status(rows))


def _list(cases, names, implementations, device):
    for op in dict.fromkeys(case.op for case in cases):
        print(op)
        for case in cases:
            if case.op == op:
                print(f"    {case.name}{' (on a GPU only)' if case.gpu_only else ''}")
        found = list(contenders.contenders(op, names, implementations))
        for implementation in dict.fromkeys(contender.implementation for contender in found):
            print(f"  {implementation}: {', '.join(c.design for c in found if c.implementation == implementation)}")
    print("peers, with --peers")
    for peer in PEERS.values():
        print(f"    {peer.name}{f' (not here: {why})' if (why := peer.missing(device)) else ''}")
    return 0


def _run(comparison, cases, options):
    """Run the cases, with the records so far in --json after each: what stopped it and the exit status, or (None, 0)."""
    with table.progress(len(cases), options.quiet) as advance:
        for case in cases:
            title, whole = f"{case.op} {case.name}", (len(comparison.records), len(comparison.refusals))
            advance(title)
            try:
                comparison.run(case)
            except GpuLost as error:
                return f"Stopped at {title}, the rest of the suite did not run: {error}", 1
            except KeyboardInterrupt:
                del comparison.records[whole[0] :], comparison.refusals[whole[1] :]
                return f"Stopped by Ctrl-C at {title}: the cases before it are kept", 130
            finally:
                if options.json:
                    records.write_json(options.json, comparison.records)
    return None, 0


def _of_records(options, rows):
    _write(options, rows)
    if options.against is not None:
        return against.report(options.against, rows, options.threshold)
    _show(rows, options.quiet)
    print(_counted(rows) + _peers(rows))
    return _status(rows)


def _write(options, rows):
    if options.csv:
        records.write_csv(options.csv, rows)
    if options.plot:
        plot.speed_against_error(rows, options.plot)


def _show(rows, quiet):
    """The table, unless quiet, and the failures. Peers of a smaller precision than their case have a table of their own."""
    if not quiet:
        table.show([r for r in rows if not r.is_apart])
        print()
        if apart := [r for r in rows if r.is_apart]:
            print("Peers whose error is that of a smaller precision than the case asks for, and which have no ratio:")
            table.show(apart)
            print()
        if rows and all(r.backend != "gpu" for r in rows):
            print("Without a GPU: correctness only, no times.")
        if any(r.exposed for r in rows):
            print("* Some rounds may include host time; `exposed` in the records is their share.")
        if slowed := sorted({r.throttled for r in rows if r.throttled}):
            print(f"! The GPU kept its clocks down, also when the case was timed once more: {'; '.join(slowed)}.")
    for r in rows:
        if not r.ok:
            print(f"FAILED: {r.op} {r.case}, {r.implementation} {r.design}: {r.message}")


def _status(rows):
    return 0 if all(r.ok for r in rows if not r.is_peer) else 1


def _counted(rows):
    own = [r for r in rows if not r.is_peer]
    ok = sum(r.ok for r in own)
    return f"{len(own)} rows, {ok} ok, {len(own) - ok} failed"


def _peers(rows):
    own = [r for r in rows if r.is_peer]
    return f"; {len(own)} rows of peers, {sum(r.ok for r in own)} ok, {sum(r.is_apart for r in own)} apart" if own else ""
