"""python -m tests.choice.fake_build: whether launches compile anything that building ahead has not, on a GPU that is not there.

Prints, as JSON, how many candidates were compared and which would be compiled again; then, of a candidate that a builder has
compiled, the kernels that Triton found in its cache when it was launched, and those that it did not.
"""

import dataclasses
import functools
import itertools
import json
import math
import types

from triton import knobs
from triton.backends import backends
from triton.runtime import driver

from tests.choice import fake_build as itself  # in a builder it is no main module
from tests.operations import fake_gpu  # before Triton: it decides for what Triton is imported
from tritonkernels.choice import builds
from tritonkernels.choice.bench import Candidate
from tritonkernels.launch import LIBRARY
from tritonkernels.target import Target

H200 = Target.named("h200")
compiled = []


def noted(compile, *args, **kwargs):
    compiled.append(1)
    return compile(*args, **kwargs)


def calls():
    half, f32 = fake_gpu.torch.float16, fake_gpu.torch.float32
    tensor = fake_gpu.tensor
    yield "gemm", (tensor(96, 128), tensor(128, 160)), {}
    yield "gemv", (tensor(96, 64), tensor(64)), {}
    yield "matmul", (tensor(96, 128, dtype=half), tensor(128, 160, dtype=half, shift=1)), {}
    yield "matmul", (tensor(96, 128, dtype=half), tensor(128, 160, dtype=half)), {"out_dtype": f32}
    yield "matmul", (tensor(96, 128), tensor(128, 160)), {"precision": "fp16x3"}
    yield "conv2d", (tensor(1, 6, 20, 24), tensor(6, 6, 3, 3)), {"padding": 1}


def prepared():
    """Each call and its candidates."""
    for op, args, kwargs in calls():
        call = LIBRARY.operation(op).prepare(*args, **kwargs)
        yield call, [Candidate(*choice) for choice in LIBRARY.candidates(call.problem, H200)[0]]


def in_this_process():
    """(candidates compared, those compiled again), by a compiler that does nothing."""
    fake_gpu.install()
    compiler = fake_gpu.triton.compiler
    compiler.compile = functools.partial(noted, compiler.compile)
    compared, again = 0, []
    for call, candidates in prepared():
        for candidate in candidates:
            for launch in builds.launches(candidate.design, candidate.config, call.problem, builds.outlines(call)):
                launch.build()
        for candidate in candidates:
            before = len(compiled)
            LIBRARY.run(call, candidate.design.name, candidate.config)
            again += [f"{call.problem.op} {candidate}"] * (len(compiled) > before)
            compared += 1
    return compared, again


class Gpu(fake_gpu.Driver):
    """With what Triton asks a driver for to launch what it has compiled."""

    launcher_cls = staticmethod(lambda source, metadata: lambda *arguments: None)
    utils = types.SimpleNamespace(
        get_device_properties=lambda device: {"max_shared_mem": 2**20}, load_binary=lambda *_: (1, 1, 32, 0, 1024)
    )

    def get_current_device(self):
        return 1  # for which Triton's functions have no other compiler yet


def without_a_driver(*job):
    """builds.prepare, where Triton's own driver cannot be loaded."""
    backends["nvidia"] = dataclasses.replace(backends["nvidia"], driver=Gpu)
    return builds.prepare(*job)


def in_builders(compile):
    """(kernels that a launch finds in Triton's cache, others), after a builder has compiled them, and this process others."""
    fake_gpu.triton.compiler.compile = compile
    driver.set_active(Gpu())
    builds.prepare = itself.without_a_driver
    found, others = [], []
    (another, its), (call, candidates) = itertools.islice(prepared(), 1, 3)
    LIBRARY.run(another, its[0].design.name, its[0].config)
    assert builds.run(LIBRARY, H200, call, candidates[:1], math.inf, math.inf) == {candidates[0]: None}
    knobs.compilation.listener = lambda src, cache_hit, **_: (found if cache_hit else others).append(src.name)
    LIBRARY.run(call, candidates[0].design.name, candidates[0].config)
    return found, others


def main():
    compile = fake_gpu.triton.compiler.compile
    print(json.dumps([*in_this_process(), *in_builders(compile)]))


if __name__ == "__main__":
    main()
