"""Whole models that others wrote, with torch's modules and with ours: what `python -m perf models` measures."""
