"""The page of `python -m perf report`: what it shows (gather), its charts, its template, style and script."""
