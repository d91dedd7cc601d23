"""What a folder of records knows of a design on its GPU: a time of each package, and its machine code."""

import functools
from dataclasses import dataclass
from pathlib import Path

from ...fit.choice_page import named
from ...measure import kernels, measured, packed, records, sweep_records


@dataclass(frozen=True)
class Gpu:
    """A design on a GPU. `codes` and `times` are by implementation, and have what was recorded."""

    folder: Path
    codes: dict[str, dict]  # rows of `perf inspect`
    case: measured.Case | None
    times: dict[str, records.Record]

    @property
    def name(self):
        return self.folder.name


def gpus(twin):
    """A Gpu for each folder that has records of the design."""
    found = [_gpu(folder, twin.op, twin.rung.name) for folder in measured.gpus()]
    return [gpu for gpu in found if gpu.codes or gpu.case]


def _gpu(folder, op, design):
    rows = {package: _codes(folder).get((op, package, design)) for package in measured.PACKAGES}
    case = _case(folder, op, design)
    times = {r.implementation: r for r in case.designs if r.design == design} if case else {}
    return Gpu(folder, {package: row for package, row in rows.items() if row}, case, times)


@functools.cache
def _codes(folder):
    file = folder / "code.json"
    rows = records.read_rows(file) if packed.find(file).exists() else []
    return {(row["op"], row["implementation"], row["design"]): row | _described(row) for row in rows if "fault" not in row}


def _described(row):
    """What the page says of a row, besides its numbers."""
    environment = row["environment"]
    compilers = {"triton": f"Triton {environment['triton']}", "cuda": f"nvcc, {environment['nvcc']}"}
    return {
        "named": named(sweep_records.problem_of(row["op"], row["problem"])),
        "compiler": compilers[row["implementation"]],
        "is_current": kernels.is_current(row),
    }


def _case(folder, op, design):
    """The case that compares the design with most others of its operation; of several such the one with most arithmetic."""
    cases = [case for cases in measured.suites(folder).values() for case in cases if case.op == op]
    timed = [case for case in cases if any(r.design == design for r in case.designs)]
    return max(timed, key=lambda case: (len(_own(case)), _flops(case)), default=None)


def _own(case):
    """The case's times by designs of its operation itself."""
    return [r for r in case.designs if "." not in r.design]


def _flops(case):
    return sweep_records.problem_of(case.op, case.vendor.problem).flops
