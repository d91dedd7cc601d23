"""python -m tests.perf.measure.fake_ahead: whether Triton kernels built ahead are those launched, on a GPU that is not there.

Prints, as JSON, how many kernels were built ahead of the smoke suite, how many calls were made, and which compiled another one.
"""

import contextlib
import functools
import json

from perf.measure import ahead
from perf.measure.suites import SUITES
from tests.operations import fake_gpu  # before Triton: it decides for what Triton is imported
from tritonkernels.errors import UnsupportedError
from tritonkernels.launch import LIBRARY

compiled = set()  # what Triton would find on disk when it is asked for it again


def noted(compile, source, **kwargs):
    compiled.add((source.fn, str(source.signature), str(source.constants), str(source.attrs), str(kwargs["options"])))
    return compile(source, **kwargs)


def main():
    fake_gpu.install()
    compiler, torch = fake_gpu.triton.compiler, fake_gpu.torch
    compiler.compile = functools.partial(noted, compiler.compile)
    ahead.on_device = lambda device: contextlib.nullcontext()
    ahead.build_all(SUITES["smoke"], ["triton"], None, torch.device("cuda", 0), quiet=True)
    built, calls, again = len(compiled), 0, []
    for case in SUITES["smoke"]:
        args, kwargs = case.arguments(0, "cpu")
        call = LIBRARY.operation(case.op).prepare(*args, **kwargs)
        for name in LIBRARY.names(case.op):
            before = len(compiled)
            with contextlib.suppress(UnsupportedError):
                LIBRARY.run(call, name)
                calls += 1
            again += [f"{case.op} {case.name} {name}"] * (len(compiled) > before)
    print(json.dumps([built, calls, again]))


if __name__ == "__main__":
    main()
