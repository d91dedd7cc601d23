"""A program that runs every CUDA design under AddressSanitizer, on ragged calls; needs LD_PRELOAD.

With an argument "cut" one design alone, whose operands end one element too early: its first kernel must not get through.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

from cuda_reference import build
from cuda_reference.launch import LIBRARY
from tests.concurrency.calls import runs
from tests.harness import designs
from tritonkernels import cache


def kernels_of(cases):
    """{(header, expression): None} of their launches, in order."""
    found = {}
    for op, design in cases:
        for call, _, _, config in runs(LIBRARY, op, design, every_config=True):
            chosen, config = LIBRARY.choose(call.problem, LIBRARY.target(call.result.device), design, config)
            for tensors in call.parts:
                launches = chosen.launches(call.problem, config, *tensors)
                found |= {(launch.source.header, launch.expression): None for launch in launches}
    return found


def build_all(wanted):
    """{expression: kernel} of all of them in two modules built in parallel, since most of a build is not the kernel's.

    So files of kernels must go together in one translation unit: what two of them define belongs in a header of its own.
    """
    headers = list(dict.fromkeys(header for header, _ in wanted))
    folder = cache.folder() / "sanitized"  # a place that stays: the next run finds what this one built
    folder.mkdir(mode=0o700, exist_ok=True)

    def load(half):
        header = folder / f"{half}.cuh"
        private = folder / f"{os.getpid()}.{half}"  # another process may do the same now
        private.write_text("".join(f'#include "{name}"\n' for name in headers[half::2]))
        private.rename(header)
        return build.load(str(header), [name for header, name in wanted if header in headers[half::2]], "simt")

    with ThreadPoolExecutor(2) as pool:
        modules = list(pool.map(load, range(min(2, len(headers)))))
    return {expression: kernel for module in modules for expression, kernel in module.items()}


def cut(tensor):
    """The storage in a block of memory that ends one element early."""
    storage = tensor.untyped_storage()
    storage.resize_(storage.nbytes() - tensor.element_size())


def main(damage):
    cases = [p.values[1:] for p in designs() if p.values[0] is LIBRARY][: 1 if damage else None]
    kernels = build_all(kernels_of(cases))
    build.load = lambda header, expressions, backend: kernels
    for op, design in cases:
        for call, args, kwargs, config in runs(LIBRARY, op, design, every_config=True):
            if damage:
                for t in args:
                    cut(t)
            LIBRARY.run(call, design, config)
            assert LIBRARY.judge(call, design, config, *args, **kwargs).ok, f"{op} {design} {config}"
        print(op, design)


if __name__ == "__main__":
    main("cut" in sys.argv)
