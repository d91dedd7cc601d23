"""Checks and times both packages' designs against torch: python -m perf --help in a checkout, else tritonkernels --help."""

import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent  # of a checkout, or where an installed package is
IS_CHECKOUT = (ROOT / "pyproject.toml").exists()
COMMAND = "python -m perf" if __name__ == "perf" else "tritonkernels"


def version():
    """tritonkernels.__version__, without importing it, and so torch."""
    return re.search(r'^__version__ = "(.+)"$', (ROOT / "tritonkernels/__init__.py").read_text(), re.MULTILINE)[1]
