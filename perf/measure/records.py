"""What was measured: one Record per problem, implementation and design; as strict JSON or flat CSV.

In JSON each record is a line and each environment is written once; a record has its index. In CSV every row repeats it.
"""

import csv
import dataclasses
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import packed


@dataclass
class Record:
    suite: str
    case: str
    seed: int
    op: str
    problem: dict[str, Any]  # Problem.describe()
    implementation: str  # "triton", "cuda", "torch", "peer", or "own" of a user's kernel
    design: str
    backend: str  # "gpu", "interpreter", "simt", "torch-cpu" or "cpu"
    precision: str  # of a peer that of its error: "tf32", or "below ieee" where no smaller one has a name
    target: str
    environment: dict[str, Any] = field(repr=False)  # environment.environment(): the same object in all records of a run
    config: dict[str, Any] = field(default_factory=dict)
    error: float | None = None  # of the worst element, relative to its sum of absolute products, as is bound
    bound: float | None = None
    ok: bool = False
    message: str | None = None  # why not ok
    bound_by: str | None = None  # "memory" or "compute", by the roofline
    rounds: int | None = None  # this and the following are None without a GPU
    left_out: int | None = None  # further rounds, which may include host time
    calls: int | None = None  # in a row in a timed run, each on operands of its own
    median_ms: float | None = None
    p20_ms: float | None = None
    p80_ms: float | None = None
    again_ms: float | None = None  # the median of a second contender that is the same: what differs is noise
    exposed: float | None = None  # the share of `rounds` whose time may include host time; 0 unless too few had none
    call_ms: float | None = None  # median host time of a call; all others are GPU times
    replayed: bool | None = None  # the GPU time is that of a replayed CUDA graph of the call
    tflops: float | None = None  # integer operations count the same
    gbps: float | None = None  # of compulsory traffic
    copy_gbps: float | None = None  # of copies of as many bytes in the same rounds; only for rotating operands
    ratio_to_torch: float | None = None  # torch's best median at the same precision over this one: above 1 is faster
    sm_clock_mhz: float | None = None  # this and the next three while the case was timed
    power_w: float | None = None
    temperature_c: float | None = None
    throttled: str | None = None  # what kept the clocks down, also when the case was timed once more after a pause
    kernels: list[str] | None = None  # the GPU kernels of a call, as the profiler names them; only of `classes`

    @property
    def is_peer(self):
        """Whether it is of neither package nor torch's baseline, so that no ratio, chart or exit status depends on it."""
        return self.implementation == "peer"

    @property
    def is_apart(self):
        """Whether it is a peer of a smaller precision than the case asks for."""
        return self.is_peer and self.precision != self.problem["precision"]


def write_json(path, records):
    """Write Records, or other dataclasses that have an environment."""
    write_rows(path, map(dataclasses.asdict, records))


def write_rows(path, rows):
    """Write dicts that have an environment."""
    environments, lines = [], []
    for row in rows:
        if row["environment"] not in environments:
            environments.append(row["environment"])
        lines.append(_json(row | {"environment": environments.index(row["environment"])}))
    heads, lines = ",\n".join(map(_json, environments)), ",\n".join(lines)
    packed.write(Path(path), f'{{"environments": [\n{heads}\n],\n"records": [\n{lines}\n]}}\n')


def read_json(path):
    return [Record(**row) for row in read_rows(path)]


def read_rows(path):
    """The records of a file as dicts, each with its environment."""
    file = json.loads(packed.read(Path(path)), parse_constant=_refuse)
    return [row | {"environment": file["environments"][row["environment"]]} for row in file["records"]]


def write_csv(path, records):
    rows = [dict(_flat(dataclasses.asdict(r))) for r in records]
    columns = dict.fromkeys(key for row in rows for key in row)
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)


def _json(value):
    return json.dumps(_finite(value), allow_nan=False)


def _finite(value):
    """JSON has no NaN and no infinity: null."""
    if isinstance(value, dict):
        return {key: _finite(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _refuse(constant):
    raise ValueError(f"{constant} is not JSON")


def _flat(values, prefix=""):
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
