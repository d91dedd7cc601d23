"""The table of torch's times, from Timed shapes: written as JSON that tritonkernels/choice/torch_times.py reads."""

import json
import math
import statistics

from tritonkernels.choice import model, torch_times

UNKNOWN = 2.0  # the scatter of a family in which no shape is near another


def families(shapes, target):
    """{family: {"scatter", "times"}} of Timed shapes. Of a shape that was timed in several runs the least time counts."""
    rate, found = model.rates(target), {}
    for shape in shapes:
        family = torch_times.family_of(shape.problem)
        if shape.torch and family and not shape.in_a_row:  # a module's call has its launch
            over = shape.torch / torch_times.roofline(shape.problem, rate)
            row = [list(torch_times.sizes_of(shape.problem)), _short(1e6 * shape.torch), _short(over)]
            known = found.setdefault(family, {})
            known[str(row[0])] = min(row, known.get(str(row[0]), row), key=lambda row: row[1])
    return {
        family: {"scatter": _short(scatter(list(own.values()))), "times": [own[key] for key in sorted(own)]}
        for family, own in sorted(found.items())
    }


def scatter(rows):
    """The factor by which predictions from all other rows are off: one standard deviation."""
    logs = []
    for at, (sizes, _, over) in enumerate(rows):
        factor = torch_times.factor_of(sizes, rows[:at] + rows[at + 1 :])
        logs += [math.log(factor / over)] if factor else []
    return math.exp(math.sqrt(statistics.fmean(log * log for log in logs))) if logs else UNKNOWN


def text(gpu, commit, found):
    """The file, the same for the same records."""
    head = json.dumps({"schema": torch_times.SCHEMA, "gpu": gpu, "commit": commit}, indent=1).removesuffix("\n}")
    lines = []
    for family, own in found.items():
        rows = ",\n".join(f"   {json.dumps(row)}" for row in own["times"])
        lines.append(f'  {json.dumps(family)}: {{"scatter": {own["scatter"]}, "times": [\n{rows}\n  ]}}')
    return head + ',\n "families": {\n' + ",\n".join(lines) + "\n }\n}\n"


def path(gpu):
    return model.TABLES / gpu / torch_times.FILE


def _short(value):
    return float(f"{value:.4g}")
