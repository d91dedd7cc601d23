"""The table of what designs sustain: fitted from Timed shapes, written as JSON that the model of time reads.

A design's shares are expected to be those of its operation, and these to be those of all designs; few records change little.
"""

import json

import numpy

from tritonkernels.choice import model
from tritonkernels.choice.model import PARTS, Sustained

from ..measure.contenders import PACKAGES
from .counted import library
from .least_squares import fit
from .samples import Samples

SCHEMA = 1
GUESS = numpy.array([0.7, 0.7, 0.7, 1.0, 1.0])  # shares before any record
NEGLIGIBLE = 0.01  # factors nearer to 1 are left out


def fitted(runs, target):
    """{"package op.design": Sustained} of all designs of both packages, from Counted runs; "any" is for designs to come."""
    of_key = {}
    for run in runs:
        of_key.setdefault(run.key, []).append(run)
    samples = {key: Samples.of(of_key[key], model.rates(target)) for key in sorted(of_key)}
    common = _shares(samples.values(), GUESS)
    by_operation = {}
    for key, own in samples.items():
        by_operation.setdefault(_operation(key), []).append(own)
    by_operation = {op: _shares(own, common) for op, own in by_operation.items()}
    designs = {model.ANY: Sustained(*map(_short, common))}
    for key in _keys():
        shares, factors = by_operation.get(_operation(key), common), {}
        if key in samples:
            shares, values = fit(samples[key], shares)
            factors = {n: _short(v) for n, v in zip(samples[key].names, values) if abs(v - 1) >= NEGLIGIBLE}
        designs[key] = Sustained(*map(_short, shares), factors)
    return designs


def text(gpu, commit, records, designs):
    """The file, the same for the same records."""
    rows = {key: {part: getattr(own, part) for part in PARTS} | {"factors": own.factors} for key, own in designs.items()}
    head = json.dumps({"schema": SCHEMA, "gpu": gpu, "commit": commit, "records": records}, indent=1)
    lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(row)}" for key, row in rows.items())
    return head.removesuffix("\n}") + f',\n "designs": {{\n{lines}\n }}\n}}\n'


def path(gpu):
    return model.TABLES / gpu / "sustained.json"


def _keys():
    """Of the designs of both packages, sorted."""
    libraries = {package: library(package) for package in PACKAGES.values()}
    return sorted({f"{p} {design.key}" for p, own in libraries.items() for op in own.served for design in own.designs(op)})


def _shares(samples, prior):
    samples = list(samples)
    return fit(Samples.joined(samples), prior)[0] if samples else prior


def _operation(key):
    return key.split()[1].partition(".")[0]


def _short(value):
    return float(f"{value:.3g}")
