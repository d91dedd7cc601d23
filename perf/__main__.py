"""python -m perf compare | sweep | tune | calibrate | torch | fit | errors | gate | campaign | inspect | report | docs"""

import argparse
import sys

from .fit import command as fit
from .gate import gate
from .measure import calibrate, campaign, compare, errors, in_torch, sweep, tune
from .offline import inspection
from .render import docs
from .render.report import command as report

COMMANDS = {
    "compare": compare,
    "sweep": sweep,
    "tune": tune,
    "calibrate": calibrate,
    "torch": in_torch,
    "fit": fit,
    "errors": errors,
    "gate": gate,
    "campaign": campaign,
    "inspect": inspection,
    "report": report,
    "docs": docs,
}


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m perf", description=sys.modules["perf"].__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, module in COMMANDS.items():
        summary = module.__doc__.splitlines()[0].partition(": ")[2]
        subparser = commands.add_parser(name, help=summary, description=module.__doc__)
        subparser.formatter_class = argparse.RawDescriptionHelpFormatter
        module.add_arguments(subparser)
        subparser.set_defaults(run=lambda options, module=module, subparser=subparser: module.main(options, subparser))
    options = parser.parse_args(argv)
    return options.run(options)


if __name__ == "__main__":
    sys.exit(main())
