"""The resources of a design's configs, compiled for GPUs that need not be present.

TRITONKERNELS_BACKEND=gpu python -m perf.offline gemm tiled sm_90 sm_80      one JSON object per config and target
TRITONKERNELS_BACKEND=gpu python -m perf.offline gemm tiled sm_90 sm_80:few  for sm_80 the smallest config of an ordinary call
"""

import json
import sys

from tritonkernels.design import as_dict
from tritonkernels.launch import LIBRARY
from tritonkernels.target import Target

from .calls import representative_calls, unusual_calls
from .compiling import compile_launch, resources, specialised


def survey(op, design, target, few=False):
    """The resources of the configs of a design for the representative calls that it accepts.

    That is all configs, and for each unusual call the first, which has the largest tile; or `few`: the last, which has the
    smallest, for the first call.
    """
    chosen = {d.name: d for d in LIBRARY.designs(op)}[design]
    hashes, compiled = set(), set()  # configs that differ only in the launch compile to the same code
    for call, which in _calls(op, chosen, target, few):
        for config in [*chosen.configs(call.problem, target)][which]:
            for launch in chosen.launches(call.problem, config, *call.parts[0]):
                key = repr((launch.kernel, specialised(launch), launch.options))
                if key in compiled:
                    continue
                compiled.add(key)
                kernel = compile_launch(launch, target)
                if kernel.hash not in hashes:
                    hashes.add(kernel.hash)
                    facts = resources(kernel)
                    yield {"target": target.name, "problem": call.problem.describe(), "config": as_dict(config), **facts}


def _calls(op, design, target, few):
    """[(call, slice of its configs)]"""
    calls = [(call, slice(None)) for call in representative_calls(op)] + [(call, slice(1)) for call in unusual_calls(op)]
    accepted = [(call, which) for call, which in calls if design.refuses(call.problem, target) is None]
    return [(call, slice(-1, None)) for call, _ in accepted[:1]] if few else accepted


def main(op, design, *targets):
    """Print the survey of each target: of all configs, "sm_90", or of few, "sm_90:few"."""
    for text in targets:
        architecture, _, few = text.partition(":")
        for row in survey(op, design, Target.named(architecture), bool(few)):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
