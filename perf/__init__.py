"""Checks and times both packages' designs against torch: python -m perf compare | campaign."""
