"""python -m perf compare: every design of both packages, and torch, on the cases of a suite.

With --against, the times are compared with those of an earlier run: what changed by more than the threshold, and by so much
that the spreads (20 to 80 % of the rounds) do not overlap, is listed.

With --peers, what users could call instead is compared, too; no ratio to torch and no exit status depends on it.

With --contender, your own kernel is: a Python function that is called as the operation of --op is, with the same arguments but
`out`, and returns a tensor. It is checked and timed as a design is; whatever is wrong with it fails its row.
    {"m": 4096, "n": 11008, "k": 4096, "dtype": "bfloat16", "b": "col"}     in the list of --shapes for matmul, gemm; gemv: m, n
    {"image": [8, 64, 56, 56], "weight": [64, 64, 3, 3], "padding": 1}      for conv2d

With --suite classes, calls of each class that speed is judged by are drawn afresh from --seed. What a call gets that names no
design is compared with torch's best way, and a table has each class, its goals and its five slowest cases. Cases whose rows are
in --json already, of the same seed, kernels and GPU, are kept: a second call goes on where --minutes ended the first one. All
GPUs that are visible share the cases.

Exit status: 1 if a result breaks its bound, a run fails or something is slower than in --against; 2 for bad arguments; 130
after Ctrl-C, which keeps the cases before it.
"""

import argparse
from pathlib import Path

from tritonkernels import OPS

from ..arguments import writable
from ..show import plot, table
from . import against, ahead, class_run, classes, contenders, own, records
from . import class_table as by_class
from .cases import read
from .comparison import Comparison, GpuLost
from .environment import add_commit
from .monitor import Monitor
from .peers import PEERS, entrants
from .suites import SUITES

SMOKE = "smoke"


def add_arguments(parser):
    parser.add_argument("--op", nargs="+", action="extend", choices=OPS, help="default: all")
    cases = parser.add_mutually_exclusive_group()
    cases.add_argument("--suite", choices=(*SUITES, classes.SUITE), help=f"default: {SMOKE}")
    cases.add_argument("--shapes", type=Path, metavar="FILE", help="a JSON list of cases of the operation of --op, instead")
    parser.add_argument(
        "--design",
        nargs="+",
        action="extend",
        metavar="NAME",
        help="default: all; torch runs on operations that have one",
    )
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
    parser.add_argument(
        "--contender",
        nargs="+",
        action="extend",
        type=own.function,
        default=[],
        metavar="MODULE:FUNCTION",
        help="compare your own kernel of the operation of --op, too",
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
        "--records",
        nargs="+",
        type=against.file,
        metavar="FILE",
        help="show, plot or compare these instead of measuring; --suite, --op, --design, --implementation say which rows",
    )
    add_commit(parser)
    class_run.add_arguments(parser)


def _picture(name):
    if Path(name).suffix not in plot.SUFFIXES:
        raise argparse.ArgumentTypeError(f"cannot draw {name}: its suffix must be one of {', '.join(plot.SUFFIXES)}")
    if not plot.available():
        raise argparse.ArgumentTypeError("a chart needs matplotlib: pip install 'tritonkernels[plot]'")
    return writable(name)


def main(options, parser):
    class_run.check(options, parser)
    if options.records:
        return _of_records(options, _asked_for(options, parser))
    if options.suite == classes.SUITE:
        return class_run.main(options)
    device = contenders.device()
    if options.against is not None and device.type != "cuda":
        parser.error("argument --against: without a GPU nothing is timed; --records FILE compares two files")
    ops, implementations = options.op or OPS, options.implementation or list(contenders.PACKAGES)
    designs = {op: [design.name for key, design in contenders.designs(op) if key in implementations] for op in ops}
    if options.design:
        _check_names(parser, options.design, designs, ", ".join(ops))
        ops = [op for op in ops if not set(options.design).isdisjoint(designs[op])]
    cases = _cases(options, parser, ops)
    if options.list:
        return _list(cases, options.design, implementations, device)
    runnable = [case for case in cases if device.type == "cuda" or not case.gpu_only]
    ahead.build_all(runnable, implementations, options.design, device, options.quiet)
    names = PEERS if "all" in options.peers else options.peers
    with entrants.Entrants(names, device, options.seed) as peers, Monitor(device) as monitor:
        wanted = options.design, device, options.commit, implementations
        suite = str(options.shapes or options.suite or SMOKE)
        comparison = Comparison(suite, options.seed, *wanted, peers, monitor, options.contender)
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


def _check_names(parser, names, designs, where):
    """An error for a name that is none of the designs {operation: names}."""
    known = list(dict.fromkeys(name for own in designs.values() for name in own))
    for name in names:
        if name not in known:
            parser.error(f"argument --design: unknown {name!r} for {where} (choose from {', '.join(known)})")


def _cases(options, parser, ops):
    """The cases to compare, of these operations."""
    for name in ("shapes", "contender"):
        if getattr(options, name) and len(options.op or ()) != 1:
            parser.error(f"argument --{name}: say of which operation, by --op and one name")
    if not options.shapes:
        return [case for case in SUITES[options.suite or SMOKE] if case.op in ops]
    try:
        return read(ops[0], options.shapes)
    except (OSError, ValueError, TypeError) as error:
        parser.error(f"argument --shapes: {options.shapes}: {error}")


def _asked_for(options, parser):
    """The rows of --records that the other arguments name; torch's, peers' and users' own are with the designs."""
    for name in ("json", "shapes", "contender", "peers", "list", "refusals"):
        if getattr(options, name):
            parser.error(f"argument --{name}: nothing is measured with --records")
    there = [record for file in options.records for record in file]
    if options.classes:
        there = [r for r in there if r.case.partition(":")[0] in options.classes]
    rows = [r for r in there if options.suite in (None, r.suite) and (not options.op or r.op in options.op)]
    ours = [r for r in rows if r.implementation in (options.implementation or contenders.PACKAGES)]
    if options.design:
        _check_names(parser, options.design, {op: [r.design for r in ours if r.op == op] for op in OPS}, "these records")
        ours = [r for r in ours if r.design in options.design]
    if options.design or options.implementation:
        ops = {r.op for r in ours}
        rows = [r for r in rows if r.op in ops and (r.implementation not in contenders.PACKAGES or r in ours)]
    if there and not rows:
        parser.error("argument --records: no row is what --suite, --op, --design and --implementation ask for")
    return rows


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
    if options.suite == classes.SUITE:
        return by_class.show(by_class.of_records(rows), options.quiet)
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
