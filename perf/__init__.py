"""Checks and times both packages' designs against torch: python -m perf --help in a checkout, else tritonkernels --help."""

from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent  # of a checkout, or where an installed package is
IS_CHECKOUT = (ROOT / "pyproject.toml").exists()
COMMAND = "python -m perf" if __name__ == "perf" else "tritonkernels"
