"""python -m perf tune: times an operation's configs on this GPU and keeps the fastest in the user's tuned table.

The cases are a suite's, or those of a JSON file, in the words of cases.py:
    [{"m": 4096, "n": 11008, "k": 4096, "dtype": "bfloat16", "b": "col"}]    for matmul, gemm; gemv: m, n
    [{"image": [8, 64, 56, 56], "weight": [64, 64, 3, 3], "padding": 1, "layout": "channels_last"}]    for conv2d
What the table has is left out, so that a second call goes on where the first one ended.
--ship also copies what the table has of the cases into the tables of the package (tritonkernels/choice/tables/GPU/tuned.json).

Exit status: 1 if a case could not be tuned, 2 without a GPU or for bad arguments, 130 after Ctrl-C.
"""

import importlib
import itertools
import sys
from pathlib import Path

from tritonkernels import OPS
from tritonkernels.choice import tuner
from tritonkernels.errors import TritonKernelsError, TuningError, UnsupportedError

from ..arguments import positive
from ..show import table
from . import cases as calls
from . import contenders, suites

HEADINGS = ("problem", "package", "default us", "tuned us", "speedup", "tried", "choice")


def add_arguments(parser):
    parser.add_argument("op", choices=OPS, metavar="OP", help=f"one of {', '.join(OPS)}")
    cases = parser.add_mutually_exclusive_group(required=True)
    cases.add_argument("--suite", choices=suites.SUITES, metavar="S", help=f"one of {', '.join(suites.SUITES)}")
    cases.add_argument("--shapes", type=Path, metavar="FILE", help="a JSON list of cases")
    parser.add_argument(
        "--budget", type=positive("seconds"), default=60.0, metavar="SECONDS", help="per case; default: %(default)g"
    )
    parser.add_argument("--package", choices=contenders.PACKAGES.values(), help="default: both")
    parser.add_argument("--again", action="store_true", help="also what the table has")
    parser.add_argument("--ship", action="store_true", help="copy what is found into the package's table of this GPU")


def main(options, parser):
    try:
        cases = calls.read(options.op, options.shapes) if options.shapes else suites.SUITES[options.suite]
    except (OSError, ValueError, TypeError) as error:
        parser.error(f"argument --shapes: {options.shapes}: {error}")
    cases = [case for case in cases if case.op == options.op]
    if not cases:
        parser.error(f"argument --suite: {options.suite} has no case of {options.op}")
    device = contenders.device()
    if device.type != "cuda":
        print("tune needs a GPU and torch sees none: times without one say nothing", file=sys.stderr)
        return 2
    packages = [options.package] if options.package else list(contenders.PACKAGES.values())
    return run(cases, packages, device, options.budget, options.again, options.ship)


def run(cases, packages, device, budget, again, ship=False):
    """Tune each case in each package, show what came of it, and return the exit status."""
    rows, notes, failed, current, stopped = [], [], 0, 0, False
    with table.progress(len(cases) * len(packages)) as advance:
        for case, package in itertools.product(cases, packages):
            library, title = importlib.import_module(f"{package}.launch").LIBRARY, f"{package}.{case.op} {case.name}"
            advance(title)
            args, kwargs = case.arguments(0, device)

            def tell(tried, of, fastest, title=title):
                advance(f"{title}: {tried} of {of}, best so far {fastest}", 0)

            try:
                if not again and is_current(library, case.op, args, kwargs):
                    current += 1
                else:
                    rows.append(_row(case, tuner.tune(library, case.op, args, kwargs, budget, again, tell)))
                if ship:
                    library.shipped.store(known(library, case.op, args, kwargs))
            except UnsupportedError as refusal:
                notes.append(f"Refused: {title}: {refusal}")
            except TritonKernelsError as error:
                failed += 1
                notes.append(f"FAILED: {title}: {error}")
                if isinstance(error, TuningError):  # of the table or the GPU: no other case would fare better
                    break
            except KeyboardInterrupt:
                stopped = True
                notes.append(f"Stopped by Ctrl-C at {title}: the table has the cases before it")
                break
    table.print_table(HEADINGS, rows)
    print("\n".join(["", *notes, f"{len(rows)} tuned, {current} were in the table, {failed} failed"]))
    return 130 if stopped else 1 if failed else 0


def is_current(library, op, args, kwargs):
    """Whether the table has the finished tuning of such a call, by the present compiler."""
    entry = known(library, op, args, kwargs)
    return entry is not None and not entry.tried


def known(library, op, args, kwargs):
    """The table's Entry of such a call, by the present compiler, or None."""
    call = library.operation(op).prepare(*args, **kwargs)
    target = library.target(call.result.device)
    return library.tuned.find(library.package, call.problem, target.name, library.compiler)


def _row(case, report):
    winner, default = report["winner"], report["default"]
    choice = " ".join((winner["design"], *(f"{name}={value}" for name, value in winner["config"].items())))
    times = (f"{1e3 * t['ms']:.1f}" if isinstance(t, dict) else "failed" for t in (default, winner))
    tried = sum(report[outcome] for outcome in ("timed", "wrong", "failed"))
    speedup = f"{report['speedup']:.2f}" if report["speedup"] else ""
    return [f"{case.op} {case.name}", report["library"], *times, speedup, f"{tried} of {tried + report['left']}", choice]
