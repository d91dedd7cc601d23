"""The tables of perf/results/README.md: which run each file of records is of, and what each sweep measured."""

from ..measure import records, sweep_records
from . import measured, table

OF_FILES = ("file", "measured", "commit", "rows", "not right")
OF_SWEEPS = ("operation", "measured", "commit", "shapes in Triton", "in CUDA", "times", "wrong")
PACKAGES = ("tritonkernels", "cuda_reference")


def files(folder):
    """A row for each file of `perf compare`'s rows of a GPU, and each commit that they are of."""
    found = []
    for path in measured.files(measured.RESULTS / folder):
        runs = _by_commit(row["environment"] | {"row": row} for row in records.read_rows(path))
        for (commit, date), rows in runs.items():
            wrong = sum(not row["row"]["ok"] for row in rows)
            found.append([path.name.partition(".")[0], date, commit, str(len(rows)), str(wrong)])
    return table.markdown(OF_FILES, found)


def sweeps(folder):
    """A row for each operation and commit that random shapes were timed at on a GPU."""
    found, by_op = [], {}
    for path in sweep_records.files(measured.RESULTS / folder):
        for environment, row in sweep_records.read(path):
            by_op.setdefault(row["op"], []).append(environment | {"row": row})
    for op in sorted(by_op):
        for (commit, date), rows in sorted(_by_commit(by_op[op]).items(), key=lambda run: run[0][1]):
            shapes = [str(sum(row["row"]["package"] == package for row in rows)) for package in PACKAGES]
            counts = [str(sum(len(row["row"][name]) for row in rows)) for name in ("times", "wrong")]
            found.append([op, date, commit, *shapes, *counts])
    return table.markdown(OF_SWEEPS, found)


def _by_commit(rows):
    """{(the commit, the day): rows}, each with the fields of its environment."""
    runs = {}
    for row in rows:
        runs.setdefault((row["commit"][:12], row["date"][:10]), []).append(row)
    return runs
