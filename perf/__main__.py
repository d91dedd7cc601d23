"""The command line: python -m perf COMMAND, of which --help lists all. A command's module is imported when it is called."""

import argparse
import ast
import functools
import importlib
import sys

from . import COMMAND, HERE, version
from . import __doc__ as description

COMMANDS = {
    "compare": "measure.compare",
    "sweep": "measure.sweep",
    "pack": "measure.pack",
    "tune": "measure.tune",
    "calibrate": "measure.calibrate",
    "torch": "measure.in_torch",
    "models": "measure.models.command",
    "fit": "fit.command",
    "choice": "measure.choice",
    "errors": "measure.errors",
    "counters": "measure.counters",
    "gate": "gate.gate",
    "campaign": "measure.campaign",
    "inspect": "measure.inspection",
    "doctor": "offline.doctor",
    "report": "render.report.command",
    "twins": "render.twins.command",
    "docs": "render.docs",
    "site": "render.site.command",
}
# they need its examples, tests or docs, or write into it
OF_A_CHECKOUT = ("torch", "fit", "gate", "campaign", "pack", "twins", "docs", "site")


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog=COMMAND, description=description)
    parser.add_argument("--version", action="version", version=f"tritonkernels {version()}")
    commands = parser.add_subparsers(dest="command", required=True)
    called = next((word for word in argv if not word.startswith("-")), None)
    for name, module in COMMANDS.items():
        doc = _docstring(module).replace("python -m perf", COMMAND)
        subparser = commands.add_parser(name, help=doc.splitlines()[0].partition(": ")[2], description=doc)
        subparser.formatter_class = argparse.RawDescriptionHelpFormatter
        if name == called:
            command, own = importlib.import_module(f".{module}", __package__), subparser
            command.add_arguments(own)
    options = parser.parse_args(argv)
    if options.command in OF_A_CHECKOUT and __package__ != "perf":
        print(f"{options.command} needs the repository: run `python -m perf {options.command}` in it", file=sys.stderr)
        return 2
    try:
        return command.main(options, own)
    except KeyboardInterrupt:
        print("Stopped by Ctrl-C.", file=sys.stderr)
        return 130


@functools.cache
def _docstring(module):
    """Read, not imported: that would import torch, which takes seconds."""
    return ast.get_docstring(ast.parse(HERE.joinpath(*module.split(".")).with_suffix(".py").read_text()))


if __name__ == "__main__":
    sys.exit(main())
