"""The tables of perf/results/README.md: the days, GPU, versions and commits of each file of records and of each sweep."""

import json

from ..measure import measured, packed, sweep_records
from ..show import table

ORIGIN = ("measured", "GPU", "versions", "commit")
OF_FILES = ("file", *ORIGIN, "rows", "not right")
OF_SWEEPS = ("operation", *ORIGIN, "shapes in Triton", "in CUDA", "times", "wrong")
PACKAGES = ("tritonkernels", "cuda_reference")
APART = ("campaign.json", "gate.json")  # of other forms; the README of the repository shows the gate's
VERSIONS = {"torch": "torch", "triton": "Triton", "cuda": "CUDA", "driver": "driver"}


def files(folder):
    """A row for each file of a GPU but the sweep's, and each commit and day that its rows are of."""
    folder, found = measured.RESULTS / folder, []
    for path in sorted(folder.glob("*.json*")):
        name = path.name.removesuffix(packed.SUFFIX)
        if name.endswith(".json") and name not in APART:
            for origin, rows in _by_origin(_of_file(path)).items():
                wrong = str(sum(not row["ok"] for row in rows)) if "ok" in rows[0] else "-"
                found.append([name.removesuffix(".json"), *origin, str(len(rows)), wrong])
    return table.markdown(OF_FILES, found)


def sweeps(folder):
    """A row for each operation and commit that random shapes were timed at on a GPU."""
    found, by_op = [], {}
    for path in sweep_records.files(measured.RESULTS / folder):
        for environment, row in sweep_records.read(path):
            by_op.setdefault(row["op"], []).append((environment, row))
    for op in sorted(by_op):
        for origin, rows in sorted(_by_origin(by_op[op]).items(), key=lambda run: run[0][0]):
            shapes = [str(sum(row["package"] == package for row in rows)) for package in PACKAGES]
            counts = [str(sum(len(row[name]) for row in rows)) for name in ("times", "wrong")]
            found.append([op, *origin, *shapes, *counts])
    return table.markdown(OF_SWEEPS, found)


def _of_file(path):
    """(environment, row) of each row."""
    file = json.loads(packed.read(path))
    environments = file["environments"] if "environments" in file else [file["environment"]]
    return [(environments[row.get("environment", 0)], row) for row in file["records"]]


def _by_origin(rows):
    """{(day, GPU, versions, commit): rows}"""
    found = {}
    for environment, row in rows:
        versions = ", ".join(f"{title} {environment[name]}" for name, title in VERSIONS.items() if environment.get(name))
        origin = environment["date"][:10], environment.get("device", ""), versions, environment["commit"][:12]
        found.setdefault(origin, []).append(row)
    return found
