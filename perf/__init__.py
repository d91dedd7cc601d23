"""Checks and times both packages' designs against torch: python -m perf --help."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
