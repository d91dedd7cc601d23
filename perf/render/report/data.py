"""What the script of a page shows, as JSON: results and machine code. Every number is in the digits that the page shows."""

import json
import math

from ...measure import measured
from ...show import table
from .. import figures

PACKAGES = tuple(measured.PACKAGES.values())
VERDICTS = ("behind", "even", "ahead", "alone")
UNIT = 1e12  # FLOP/s, and bytes per second


class Numbers(dict):
    """A number for each value that is asked for."""

    def __missing__(self, value):
        return self.setdefault(value, len(self))


def embedded(value):
    """JSON as the text of a script element, which ends at the first "</" and may not have a "<!--"."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def of_classes(gpus, twin, least):
    """The classes' cases on all GPUs, with a group a class, and the goals: no ratio below."""
    goals = {result.class_.name: result.class_.worst for gpu in gpus for result in gpu.classes}
    own = _of_cases(gpus, [gpu.drawn for gpu in gpus], twin, least)
    return own | {"goals": [goals[group] for group in own["groups"]]}


def of_operation(gpus, op, twin, least):
    """The operation's cases, roofs and machine code on all GPUs."""
    cases = [[case for case in gpu.cases if case.op == op] for gpu in gpus]
    codes = [_code(i, code, twin(op, code.design)) for i, gpu in enumerate(gpus) for code in gpu.codes if code.op == op]
    roofs = [_roofs(gpu.target, own) for gpu, own in zip(gpus, cases)]
    return _of_cases(gpus, cases, twin, least) | {"roofs": roofs, "codes": codes}


def _of_cases(gpus, cases_of_gpus, twin, least):
    """The cases of each GPU, and their results, the slowest against torch first. Lists of names are what numbers stand for.

    cases: [gpu, group, arithmetic, name, FLOP per byte, TFLOP]; results: [case, package, design, us, ratio to torch, verdict,
    origin, torch's us, the 20th and the 80th percentile of ours], without the last where they are not known.
    """
    groups, kinds, designs, cases, results = Numbers(), Numbers(), Numbers(), [], []
    for i, own in enumerate(cases_of_gpus):
        for case in own:
            size = figures.short(case.problem.intensity), figures.short(case.problem.flops / UNIT)
            results += [(r.ratio or math.inf, len(cases), r, designs[case.op, r.design]) for r in case.results.values()]
            cases.append([i, groups[case.group], kinds[case.arithmetic], case.name, *size])
    return {
        "gpus": [gpu.folder.name for gpu in gpus],
        "packages": PACKAGES,
        "verdicts": VERDICTS,
        "least": least,
        "groups": list(groups),
        "kinds": list(kinds),
        "designs": [[design, twin(op, design)] for op, design in designs],
        "cases": cases,
        "results": [_result(number, design, r) for _, number, r, design in sorted(results, key=lambda result: result[:2])],
    }


def _result(number, design, r):
    row = [number, PACKAGES.index(r.package), design, _us(r.ms)]
    row += [r.ratio and round(r.ratio, 2), VERDICTS.index(r.verdict), r.origin]
    return row + [_us(ms) for ms in (r.torch_ms, *(r.spread or ())) if ms is not None]


def _us(ms):
    return float(table.us(ms))


def _roofs(target, cases):
    """{"bandwidth": TB/s, "peaks": [[precisions, TFLOP/s]], the highest first} of the cases; None where they are not known."""
    if not target or not target.dram_bandwidth:
        return None
    peaks = {}
    for kind, precision in {case.arithmetic: case.problem.precision for case in cases}.items():
        if peak := target.peak(precision):
            peaks.setdefault(figures.short(peak / UNIT), []).append(kind)
    names = [[", ".join(kinds), peak] for peak, kinds in sorted(peaks.items(), reverse=True)]
    return {"bandwidth": target.dram_bandwidth / UNIT, "peaks": names}


def _code(gpu, code, address):
    facts = code.facts
    return {
        "gpu": gpu,
        "package": PACKAGES.index(code.package),
        "design": code.design,
        "twin": address,
        "registers": facts["registers"],
        "stack": facts["stack_bytes"],
        "shared": facts["shared_bytes"],
        "blocks": facts["blocks_per_sm"],
        "occupancy": f"{facts['occupancy']:.0%}: {facts['limited_by']}",
        "loop": facts["hot_loop_instructions"],
        "math": round(100 * facts["math_share"]),
        "mix": {kind: round(100 * share) for kind, share in code.mix.items()},
        "lds": _widths(facts["shared_loads"]),
        "ldg": _widths(facts["global_loads"]),
        "us": _us(1e3 * facts["predicted_s"]) if "predicted_s" in facts else None,
        "bound": facts.get("bound_by"),
        "config": code.config,
        "from": code.origin,
    }


def _widths(loads):
    return " ".join(f"{count}\u00d7{bits}" for bits, count in loads.items())
