"""The table of what designs sustain: fitted from Timed shapes, written as JSON that the model of time reads, by operation.

A design's shares in a precision are expected to be about its shares in others, these to be those of its operation, and those to
be those of all designs; few records change little. Factors of configs and classes are about those in other precisions, too.
A design without records in a precision counts as one standard deviation slower than its records in others say.
"""

import dataclasses
import json

import numpy

from tritonkernels.choice import efficiency
from tritonkernels.choice.efficiency import SHARES, Sustained

from ..measure.contenders import PACKAGES
from .counted import library
from .least_squares import fit
from .remade import design_of
from .samples import Samples

SCHEMA = 6
GUESS = numpy.array([0.7, 0.7, 0.7, 1.0, 0.15, 1.0, 1.0])  # shares before any record
NEGLIGIBLE = 0.01  # factors nearer to 1 are left out


def fitted(runs, others=()):
    """{key: Sustained} from Counted runs: of each design and precision, of designs in all precisions, and of any design. The
    configs of `others` count as timed, too."""
    of_design = _grouped(runs, lambda run: design_of(run.key))
    samples = {design: Samples.of(own) for design, own in of_design.items()}
    common = _shares(samples.values(), GUESS)
    groups = _grouped(samples, _operation)
    by_operation = {op: _shares([samples[design] for design in own], common) for op, own in groups.items()}
    fits = {design: fit(own, by_operation[_operation(design)]) for design, own in samples.items()}
    factors = {design: _factors(own, samples[design], fits[design]) for design, own in of_design.items()}
    spread = _spread([own for of_all in factors.values() for precision, own in of_all.items() if precision])
    slower = _spread_of_precisions(of_design, by_operation)
    unseen = _short(spread * slower)
    designs = {efficiency.ANY: Sustained(*map(_short, common), unseen=unseen)}
    for design in _keys():
        if design in fits:
            own = {name: value * (slower if name.startswith("config") else 1) for name, value in factors[design][None].items()}
            designs[design] = Sustained(*map(_short, fits[design].common), _kept(own), unseen)
        else:
            designs[design] = Sustained(*map(_short, by_operation.get(_operation(design), common)), unseen=unseen)
    for design, own in samples.items():
        for precision, shares in zip(own.precisions, fits[design].shares):
            of_it = factors[design][precision]
            slow = _short(max(spread, _spread([of_it])))
            designs[f"{design} {precision}"] = Sustained(*map(_short, shares), _kept(of_it), slow)
    for design, own in _grouped([*runs, *others], lambda run: design_of(run.key)).items():
        names = sorted({efficiency.config_name(run.config) for run in own})
        for key in sorted({run.key for run in own}):
            known = designs.get(key, designs[design])
            factors = dict.fromkeys(names, known.unseen) | known.factors
            designs[key] = dataclasses.replace(known, factors=factors, timed=True)
    return designs


def _factors(runs, samples, found):
    """{precision: {name: factor}} of a design; None: what its precisions have in common. So a config or a class has a factor
    also in a precision in which it is not in the records."""
    own, names = dict(zip(samples.names, found.factors)), {name for run in runs for name in run.factors}
    common = {name: own.get((name, None), 1.0) for name in sorted(names)}
    return {None: common} | {
        precision: {name: value * own.get((name, precision), 1.0) for name, value in common.items()}
        for precision in samples.precisions
    }


def _kept(factors):
    """The factors that are written. A config's is written even if it is 1, or it would count as one without records."""
    return {name: _short(value) for name, value in factors.items() if name.startswith("config") or abs(value - 1) >= NEGLIGIBLE}


def _grouped(items, group):
    """{group of an item: items}, sorted by group."""
    found = {}
    for item in items:
        found.setdefault(group(item), []).append(item)
    return dict(sorted(found.items()))


def _spread(many):
    """The factor of a config that is one standard deviation slower than its design's others."""
    logs = [numpy.log(value) for factors in many for name, value in factors.items() if name.startswith("config")]
    return float(numpy.exp(numpy.std(logs))) if logs else 1.0


def _spread_of_precisions(of_design, by_operation):
    """The factor of a design in a precision that is one standard deviation slower than its records in other precisions say."""
    off = []
    for design, runs in of_design.items():
        of_precision = _grouped(runs, lambda run: run.problem.precision)
        samples = {precision: Samples.of(own) for precision, own in of_precision.items()}
        for precision, own in samples.items():
            if others := [of for other, of in samples.items() if other != precision]:
                shares = _shares(others, by_operation[_operation(design)])
                seconds = own.predicted(shares[None], numpy.ones(len(own.names)))[0]
                off.append(numpy.median(own.logs - numpy.log(seconds)))
    return float(numpy.exp(numpy.std(off))) if off else 1.0


def texts(gpus, commit, records, designs):
    """{name of a file: its content}, the same for the same records, which are of these GPUs. A design has the names of its
    factors once, each of its precisions a value for each of them, or null."""
    head = line({"schema": SCHEMA, "gpus": gpus, "commit": commit, "records": records}).removesuffix("}")
    return {
        name: f"{head},{_text({key: designs[key] for key in own})}"
        for name, own in _grouped(designs, efficiency.file_of).items()
    }


def _text(designs):
    names = {}
    for key, own in designs.items():
        names.setdefault(design_of(key), set()).update(own.factors)
    names = {design: sorted(own) for design, own in names.items()}
    rows = {
        key: {share: getattr(own, share) for share in SHARES}
        | {"factors": [own.factors.get(name) for name in names[design_of(key)]], "unseen": own.unseen, "timed": own.timed}
        for key, own in designs.items()
    }
    return f'\n"names":{{\n{_lines(names)}\n}},\n"designs":{{\n{_lines(rows)}\n}}}}\n'


def _lines(values):
    return ",\n".join(f"{line(key)}:{line(value)}" for key, value in values.items())


def line(value):
    """The value as compact JSON."""
    return json.dumps(value, separators=(",", ":"))


def folder(gpu):
    return efficiency.TABLES / gpu / "sustained"


def _keys():
    """The keys of the contenders of both packages, sorted."""
    own = ((p, design) for p in PACKAGES.values() for op in library(p).served for design in library(p).designs(op))
    return sorted({f"{package} {design.key}" for package, design in own if not design.is_lesson})


def _shares(samples, prior):
    samples = list(samples)
    return fit(Samples.joined(samples), prior).shares[0] if samples else prior


def _operation(key):
    return key.split()[1].partition(".")[0]


def _short(value):
    return float(f"{value:.3g}")
