"""The command line itself: what it says at once, without torch, which takes seconds to import."""

import subprocess
import sys

import pytest

import perf
import tritonkernels
from perf.__main__ import COMMANDS

ASKED = """
import sys
from perf.__main__ import main
try:
    main(sys.argv[1:])
finally:
    print(sorted({"torch", "numpy", "triton", "tritonkernels"} & sys.modules.keys()), file=sys.stderr)
"""


def asked(*arguments):
    """(exit status, output, the large packages that were imported)"""
    run = subprocess.run([sys.executable, "-c", ASKED, *arguments], capture_output=True, text=True, cwd=perf.ROOT)
    return run.returncode, run.stdout, run.stderr.splitlines()[-1]


def test_help_is_there_at_once_and_lists_every_command():
    status, out, imported = asked("--help")
    assert (status, imported) == (0, "[]")
    listed = [line.split() for line in out.splitlines() if line.startswith("    ")]
    assert [words[0] for words in listed if words[0] in COMMANDS] == list(COMMANDS)
    assert all(len(words) > 3 for words in listed if words[0] in COMMANDS), "each with its summary"


def test_version_is_there_at_once():
    assert asked("--version") == (0, f"tritonkernels {tritonkernels.__version__}\n", "[]")


@pytest.mark.parametrize("arguments", [("no-such-command",), ()], ids=("unknown", "none"))
def test_a_wrong_command_is_refused_at_once(arguments):
    assert asked(*arguments) == (2, "", "[]")
