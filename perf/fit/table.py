"""The table of what designs sustain: fitted from Timed shapes, written as JSON that the model of time reads.

A design's shares are expected to be those of its operation, and these to be those of all designs; few records change little.
A design without records in a precision counts as one standard deviation slower than its records in others say.
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
    """{key: Sustained} from Counted runs: of each design and precision, of designs in all precisions, and of any design."""
    of_key = {}
    for run in runs:
        of_key.setdefault(run.key, []).append(run)
    samples = {key: Samples.of(of_key[key], model.rates(target)) for key in sorted(of_key)}
    common = _shares(samples.values(), GUESS)
    by_operation = {op: _shares(own, common) for op, own in _grouped(samples, _operation).items()}
    grouped, found = _grouped(samples, _design), {}
    by_design = {d: _shares(grouped.get(d, ()), by_operation.get(_operation(d), common)) for d in _keys()}
    for key, own in samples.items():
        shares, values = fit(own, by_design[_design(key)])
        found[key] = shares, dict(zip(own.names, values)), {model.config_name(run.config) for run in of_key[key]}
    spread = _spread([factors for _, factors, _ in found.values()])
    unseen = _short(spread * _spread_of_precisions(samples, by_operation))
    designs = {model.ANY: Sustained(*map(_short, common), unseen=unseen)}
    designs |= {key: Sustained(*map(_short, shares), unseen=unseen) for key, shares in by_design.items()}
    for key, (shares, factors, configs) in found.items():
        kept = {name: _short(value) for name, value in factors.items() if abs(value - 1) >= NEGLIGIBLE}
        kept |= {name: 1.0 for name in sorted(configs) if name not in kept}
        designs[key] = Sustained(*map(_short, shares), kept, _short(max(spread, _spread([factors]))))
    return designs


def _grouped(samples, group):
    """{group of a key: [Samples]}"""
    found = {}
    for key, own in samples.items():
        found.setdefault(group(key), []).append(own)
    return found


def _spread(many):
    """The factor of a config that is one standard deviation slower than its design's others."""
    logs = [numpy.log(value) for factors in many for name, value in factors.items() if name.startswith("config")]
    return float(numpy.exp(numpy.std(logs))) if logs else 1.0


def _spread_of_precisions(samples, by_operation):
    """The factor of a design in a precision that is one standard deviation slower than its records in other precisions say."""
    off = []
    for key, own in samples.items():
        others = [of for other, of in samples.items() if other != key and _design(other) == _design(key)]
        if others:
            seconds = own.predicted(_shares(others, by_operation[_operation(key)]), numpy.ones(len(own.names)))[0]
            off.append(numpy.median(own.logs - numpy.log(seconds)))
    return float(numpy.exp(numpy.std(off))) if off else 1.0


def text(gpu, commit, records, designs):
    """The file, the same for the same records."""
    rows = {
        key: {part: getattr(own, part) for part in PARTS} | {"factors": own.factors, "unseen": own.unseen}
        for key, own in designs.items()
    }
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


def _design(key):
    """A key without its precision."""
    return " ".join(key.split()[:2])


def _operation(key):
    return key.split()[1].partition(".")[0]


def _short(value):
    return float(f"{value:.3g}")
