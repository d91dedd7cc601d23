"""The command line: python -m perf COMMAND, of which --help lists all."""

import argparse
import sys

from . import COMMAND
from . import __doc__ as description
from .fit import command as fit
from .gate import gate
from .measure import calibrate, campaign, compare, counters, errors, in_torch, pack, sweep, tune
from .offline import doctor, inspection
from .render import docs
from .render.report import command as report

COMMANDS = {
    "compare": compare,
    "sweep": sweep,
    "pack": pack,
    "tune": tune,
    "calibrate": calibrate,
    "torch": in_torch,
    "fit": fit,
    "errors": errors,
    "counters": counters,
    "gate": gate,
    "campaign": campaign,
    "inspect": inspection,
    "doctor": doctor,
    "report": report,
    "docs": docs,
}
OF_A_CHECKOUT = ("torch", "fit", "gate", "campaign", "pack", "docs")  # they need its examples, tests or docs, or write into it


def main(argv=None):
    parser = argparse.ArgumentParser(prog=COMMAND, description=description)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, module in COMMANDS.items():
        summary = module.__doc__.splitlines()[0].partition(": ")[2]
        subparser = commands.add_parser(name, help=summary, description=module.__doc__.replace("python -m perf", COMMAND))
        subparser.formatter_class = argparse.RawDescriptionHelpFormatter
        module.add_arguments(subparser)
        subparser.set_defaults(run=lambda options, module=module, subparser=subparser: module.main(options, subparser))
    options = parser.parse_args(argv)
    if options.command in OF_A_CHECKOUT and __package__ != "perf":
        print(f"{options.command} needs the repository: run `python -m perf {options.command}` in it", file=sys.stderr)
        return 2
    try:
        return options.run(options)
    except KeyboardInterrupt:
        print("Stopped by Ctrl-C.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
