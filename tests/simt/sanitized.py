"""A program that runs every config of every CUDA design under AddressSanitizer, on ragged calls; needs LD_PRELOAD.

With an argument "cut", the operands end one element too early: the first kernel must not get through.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

from cuda_reference import build, cache
from cuda_reference.launch import LIBRARY

from ..concurrency.calls import runs, sources
from ..harness import designs


def build_all(cases):
    """{expression: kernel} of all designs in two modules, built side by side: most of a build is not the kernel's.

    So files of kernels must go together in one translation unit: what two of them define belongs in a header of its own.
    """
    wanted = list(dict.fromkeys(source for op, design in cases for source in sources(op, design)))
    folder = cache.folder() / "sanitized"  # a place that stays: the next run finds what this one built
    folder.mkdir(mode=0o700, exist_ok=True)

    def load(half):
        header = folder / f"{half}.cuh"
        private = folder / f"{os.getpid()}.{half}"  # another process may do the same now
        private.write_text("".join(f'#include "{source.header}"\n' for source in wanted[half::2]))
        private.rename(header)
        return build.load(str(header), [e for source in wanted[half::2] for e in source.expressions], "simt")

    with ThreadPoolExecutor(2) as pool:
        modules = list(pool.map(load, range(2)))
    return {expression: kernel for module in modules for expression, kernel in module.items()}


def cut(tensor):
    """The storage in a block of memory that ends one element early."""
    storage = tensor.untyped_storage()
    storage.resize_(storage.nbytes() - tensor.element_size())


def main(damage):
    cases = [p.values[1:] for p in designs() if p.values[0] is LIBRARY]
    kernels = build_all(cases)
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
