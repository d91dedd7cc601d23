"""Builds the CUDA kernels that the gate's calls and the tests launch, as many at a time as there are cores.

python -m tests.gate.build [gemm ...]: those of these operations; of all if none is named.

Built on first use, they would block other test workers that need the same ones.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import torch

from cuda_reference import build
from cuda_reference.launch import LIBRARY
from tests.concurrency.calls import runs
from tests.gate.calls import calls, designs
from tests.gate.child import on
from tests.harness import prepare
from tritonkernels import OPS
from tritonkernels.errors import TritonKernelsError


def sources(device, ops=OPS):
    """{(header, expressions)}, in order, for each design's whole config space."""
    found = {}
    for op in ops:
        for design in (d for d in LIBRARY.designs(op) if d.name in designs(LIBRARY, op)):
            for problem, config, parts in _prepared(op, design, device):
                for tensors in parts:
                    for launch in design.launches(problem, config, *tensors):
                        found[launch.source.header, launch.source.expressions] = None
    return list(found)


def _prepared(op, design, device):
    """(problem, config, the launches' tensors) of calls that together launch all of the design's kernels."""
    target = LIBRARY.target(device)
    for call in calls(LIBRARY, op, design.name, target):
        args, kwargs = call.make()
        prepared = prepare(op, *on(device, args), **dict(zip(kwargs, on(device, kwargs.values()))))
        yield prepared.problem, LIBRARY.choose(prepared.problem, target, design.name)[1], prepared.parts
    for prepared, _, _, config in runs(LIBRARY, op, design.name, device, every_config=True):
        yield prepared.problem, config, prepared.parts


def main():
    device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    backend = "cuda" if device.type == "cuda" else "simt"

    def fails(source):
        name = f"{source[0]} {source[1][0]}"
        print(f"RUN {name}", flush=True)
        try:
            build.load(*source, backend)
        except TritonKernelsError as error:
            print(f"WRONG {name}: {' '.join(str(error).split())[-1300:]}", flush=True)
            return True
        return False

    wanted = sorted(sources(device, sys.argv[1:] or OPS), key=lambda source: -len(source[1]))  # the longest first
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        wrong = sum(pool.map(fails, wanted))
    print(f"DONE {len(wanted)} modules, {wrong} wrong", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
