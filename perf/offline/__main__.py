"""The resources of a design's configs, compiled for GPUs that need not be present.

TRITONKERNELS_BACKEND=gpu python -m perf.offline gemm tiled sm_90 sm_80      one JSON object per config and target
TRITONKERNELS_BACKEND=gpu python -m perf.offline gemm tiled sm_90 sm_80:1    for sm_80 the first config of each ordinary call
"""

import itertools
import json
import sys

from tritonkernels.design import as_dict
from tritonkernels.launch import LIBRARY
from tritonkernels.target import Target

from .calls import representative_calls, unusual_calls
from .compiling import compile_launch, resources, specialised


def survey(op, design, target, most=None):
    """The resources of the configs of a design for the representative calls that it accepts.

    That is all configs, and for each unusual call the first, which has the largest tile; with `most`, only that many for each
    representative call.
    """
    chosen = {d.name: d for d in LIBRARY.designs(op)}[design]
    hashes, compiled = set(), set()  # configs that differ only in the launch compile to the same code
    calls = [(call, most) for call in representative_calls(op)]
    calls += [(call, 1) for call in unusual_calls(op) if most is None]
    for call, count in calls:
        if chosen.refuses(call.problem, target) is None:
            for config in itertools.islice(chosen.configs(call.problem, target), count):
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


def main(op, design, *targets):
    """Print the survey of each target: of all configs, "sm_90", or of the first for each ordinary call, "sm_90:1"."""
    for text in targets:
        architecture, _, most = text.partition(":")
        for row in survey(op, design, Target.named(architecture), int(most) if most else None):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
