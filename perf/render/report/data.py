"""What the script of a page shows, as JSON: results and machine code. Every number is in the digits that the page shows."""

import json
import math

from .. import figures, measured

PACKAGES = tuple(measured.PACKAGES.values())
VERDICTS = ("behind", "even", "ahead", "alone")
UNIT = 1e12  # FLOP/s, and bytes per second


class Numbers(dict):
    """A number for each value that is asked for."""

    def __missing__(self, value):
        return self.setdefault(value, len(self))


def embedded(value):
    """As the text of a script element, which ends at the first "</" and may not have a "<!--"."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def of_operation(gpus, op, twin, least):
    """The operation's cases, results and machine code on all GPUs.

    cases: [gpu, group, arithmetic, name, FLOP per byte, TFLOP]; results, the slowest beside torch first: [case, package, design,
    us, ratio to torch, verdict, origin, torch's us, the 20th and the 80th percentile of ours], without the last where unknown.
    """
    groups, kinds, designs, cases, results = Numbers(), Numbers(), Numbers(), [], []
    for i, gpu in enumerate(gpus):
        for case in (case for case in gpu.cases if case.op == op):
            size = figures.short(case.problem.intensity), figures.short(case.problem.flops / UNIT)
            results += [(r.ratio or math.inf, len(cases), r) for r in case.results.values()]
            cases.append([i, groups[case.group], kinds[case.arithmetic], case.name, *size])
    rows = [_result(number, designs[r.design], r) for _, number, r in sorted(results, key=lambda result: result[:2])]
    return {
        **{"gpus": [gpu.folder.name for gpu in gpus], "packages": PACKAGES, "verdicts": VERDICTS, "least": least},
        **{"groups": list(groups), "kinds": list(kinds), "designs": [[design, twin(op, design)] for design in designs]},
        **{"cases": cases, "results": rows, "roofs": [_roofs(gpu, op) for gpu in gpus]},
        "codes": [
            _code(i, code, twin(op, code.design)) for i, gpu in enumerate(gpus) for code in gpu.codes if code.op == op
        ],
    }


def _result(number, design, r):
    row = [number, PACKAGES.index(r.package), design, _us(r.ms), r.ratio and round(r.ratio, 2), VERDICTS.index(r.verdict), r.origin]
    return row + [_us(ms) for ms in (r.torch_ms, *(r.spread or ())) if ms is not None]


def _us(ms):
    return float(measured.us(ms))


def _roofs(gpu, op):
    """{"bandwidth": TB/s, "peaks": {precisions: TFLOP/s}} of the operation's cases; None for a GPU without figures."""
    if not gpu.target or not gpu.target.dram_bandwidth:
        return None
    peaks = {case.arithmetic: gpu.target.peak(case.problem.precision) for case in gpu.cases if case.op == op}
    names = {}
    for name, peak in peaks.items():
        if peak:
            names.setdefault(figures.short(peak / UNIT), []).append(name)
    return {
        "bandwidth": gpu.target.dram_bandwidth / UNIT,
        "peaks": [[", ".join(own), peak] for peak, own in sorted(names.items(), reverse=True)],
    }


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
        "us": _us(1e3 * facts["predicted_s"]),
        "bound": facts["bound_by"],
        "config": code.config,
        "from": code.origin,
    }


def _widths(loads):
    return " ".join(f"{count}\u00d7{bits}" for bits, count in loads.items())
