"""Runs designs on guarded tensors, in a process that a fault may kill. Prints a line before each call and after each design.

python -m tests.memory.child every|some PACKAGE op/design ...

Every call at both ends of its pages, or some of them at the first.
"""

import functools
import itertools
import sys

import torch

from tests import cases
from tests.harness import LAYOUTS, LIBRARIES, gradient_call, prepare, random, taken
from tests.memory.guarded import guarded


def calls(library, op, design):
    """(operands, keyword arguments) around tile edges; a beta, so that C and y are read too."""
    if op == "gemm":
        for m, n, k in cases.GEMM_SIZES:
            yield (random(m, k), random(k, n), random(m, n)), {"beta": 0.5}
        for layout, k in itertools.product(LAYOUTS, (21, 32)):
            yield (layout(random(37, k)), layout(random(k, 43)), layout(random(37, 43))), {"beta": 0.5}
    elif op == "gemv":
        for m, n in cases.GEMV_SIZES:
            yield (random(m, n), random(n), random(m)), {"beta": 0.5}
        for layout in LAYOUTS:
            yield (layout(random(37, 141)), random(282)[1::2], random(74)[::2]), {"beta": 0.5}
            yield (layout(random(2, 9, 141, dtype=torch.int8)), random(2, 141)), {"scale": random(9)}
    elif op == "conv2d":
        make = functools.partial(random, dtype=taken(library, op, design)[0])
        for input_shape, weight_shape, kwargs in cases.CONVOLUTIONS.values():
            if weight_shape[0]:
                yield (make(*input_shape), make(*weight_shape), make(weight_shape[0])), kwargs
        for layout in LAYOUTS:
            operands, options = (layout(make(2, 3, 13, 17)), layout(make(5, 3, 3, 2)), make(10)[::2]), {"padding": 1}
            yield operands, options
            yield operands, options | {"residual": layout(make(2, 5, 13, 18)), "activation": "relu"}
    elif op in ("conv2d_input", "conv2d_weight", "conv2d_bias"):
        make = functools.partial(random, dtype=taken(library, op, design)[0])
        for name in cases.CONVOLUTIONS:
            yield gradient_call(op, name, make)
        for layout in LAYOUTS:
            image, weight, grad = (2, 3, 13, 17), (5, 3, 3, 2), layout(make(2, 5, 13, 18))
            yield {
                "conv2d_input": ((image, layout(make(*weight)), grad), {"padding": 1}),
                "conv2d_weight": ((layout(make(*image)), weight, grad), {"padding": 1}),
                "conv2d_bias": ((grad,), {}),
            }[op]
    else:
        dtype, options = taken(library, op, design)
        for m, n, k in cases.MATMUL_SIZES:
            yield (random(m, k, dtype=dtype), random(k, n, dtype=dtype)), options
        for layout in LAYOUTS:
            yield (layout(random(3, 19, 35, dtype=dtype)), layout(random(3, 35, 21, dtype=dtype))), options


def said(argument):
    return f"{tuple(argument.shape)} by {argument.stride()}" if isinstance(argument, torch.Tensor) else argument


def main(which, package, designs):
    library = next(library for library in LIBRARIES if library.package == package)
    for entry in designs:
        op, _, design = entry.partition("/")
        torch.manual_seed(0)
        refuses = {d.name: d for d in library.designs(op)}[design].refuses
        ran = 0
        for i, (operands, kwargs) in enumerate(calls(library, op, design)):
            if refuses(prepare(op, *operands, **kwargs).problem, library.target(torch.device("cpu"))):
                continue
            for side in ("start", "end") if which == "every" or i % 3 == 0 else ("end",):
                guard = functools.partial(guarded, side=side, read_only=True)
                args, given = torch.utils._pytree.tree_map_only(torch.Tensor, guard, (operands, kwargs))
                out = guarded(torch.empty_like(prepare(op, *operands, **kwargs).result), side, read_only=False)
                print("RUN", entry, side, *map(said, args), {k: said(v) for k, v in given.items()}, flush=True)
                call = prepare(op, *args, out=out, **given)
                library.run(call, design)
                verdict = library.judge(call, design, None, *operands, **kwargs)
                if not verdict.ok:
                    sys.exit(f"wrong: {verdict}")
                ran += 1
        if not ran:
            sys.exit(f"{entry} refuses every call: add one that it takes")
        print("DONE", entry, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
