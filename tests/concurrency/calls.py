"""Ragged calls of every operation, the same in every thread and process. As a program: the hashes of all results, as JSON."""

import hashlib
import json
import sys

import torch

from cuda_reference.launch import LIBRARY as CUDA
from tests.harness import bits, channels_last, moved, offset_by_one, prepare, random, runnable_designs, transposed
from tritonkernels import backend

# The designs whose results several blocks add up, in memory that calls share: those of `make test`.
OF_MATMUL = ("split_k", "planes", "fused_planes", "cuda_cores", "dmma")
COMBINING = (*OF_MATMUL, "split_n", "transposed", "implicit_gemm", "channel_sums")


def calls(op):
    """[(args, kwargs)]: several blocks, edges inside of tiles, layouts that defeat vectors."""
    torch.manual_seed(0)
    half, double = {"dtype": torch.float16}, {"dtype": torch.float64}
    return {
        "gemm": [
            ((random(67, 35), random(35, 70), random(67, 70)), {"alpha": -1.5, "beta": 0.5}),
            ((transposed(random(130, 17)), offset_by_one(random(17, 129))), {}),
        ],
        "gemv": [
            ((random(37, 141), random(141), random(37)), {"alpha": -1.5, "beta": 0.5}),
            ((transposed(random(11, 259)), random(518)[::2]), {}),
        ],
        "conv2d": [
            ((random(2, 4, 7, 17), random(6, 2, 3, 3), random(6)), {"padding": 1, "groups": 2}),
            ((random(1, 3, 9, 21).to(memory_format=torch.channels_last), random(9, 3, 3, 3)), {"stride": (2, 1)}),
            ((random(2, 5, 7, 9), random(6, 5, 1, 1), random(6)), {}),
            ((channels_last(random(2, 8, 9, 7)), random(8, 1, 3, 3), random(8)), {"groups": 8, "padding": 1}),
            ((channels_last(random(2, 40, 9, 7, **half)), random(10, 40, 3, 3, **half), random(10, **half)), {"padding": 1}),
        ],
        "conv2d_input": [
            (((2, 4, 7, 17), random(6, 2, 3, 2), random(2, 6, 7, 18)), {"padding": 1, "groups": 2}),
            (((1, 3, 9, 21), random(9, 3, 3, 3), channels_last(random(1, 9, 4, 19))), {"stride": (2, 1)}),
        ],
        "conv2d_weight": [
            ((random(2, 4, 7, 17), (6, 2, 3, 2), random(2, 6, 7, 18)), {"padding": 1, "groups": 2}),
            ((channels_last(random(1, 3, 9, 21)), (9, 3, 3, 3), channels_last(random(1, 9, 4, 19))), {"stride": (2, 1)}),
            ((random(2, 5, 9, 7, **half), (8, 5, 3, 3), channels_last(random(2, 8, 9, 7, **half))), {"padding": 1}),
            ((random(2, 5, 9, 7), (5, 1, 3, 3), channels_last(random(2, 5, 9, 7))), {"groups": 5, "padding": 1}),
        ],
        "conv2d_bias": [((random(2, 6, 17, 31),), {}), ((channels_last(random(3, 37, 19, 11)),), {})],
        "matmul": [
            ((random(2, 19, 35, **half), transposed(random(2, 35, 21, **half))), {}),
            ((offset_by_one(random(33, 50, **half)), random(50, 40, **half)), {"out_dtype": torch.float32}),
            ((transposed(random(19, 70)), random(70, 21)), {"precision": "fp16x3"}),
            ((transposed(random(19, 70)), random(70, 21)), {"precision": "tf32x3"}),
            ((random(2, 33, 20), transposed(random(2, 20, 36))), {"alpha": 0.5}),
            ((random(19, 300, **double), random(300, 21, **double)), {}),
        ],
    }[op]


def runs(library, op, design, device="cpu", every_config=False):
    """(call, args, kwargs, config) of each call that the design does not refuse; config None: the default."""
    chosen = {d.name: d for d in library.designs(op)}[design]
    for args, kwargs in calls(op):
        args = tuple(moved(t, device) if isinstance(t, torch.Tensor) else t for t in args)
        call = prepare(op, *args, **kwargs)
        target = library.target(call.result.device)
        if chosen.refuses(call.problem, target) is None:
            for config in chosen.configs(call.problem, target) if every_config else (None,):
                yield call, args, kwargs, config


def launches(op, design):
    """The launches of a CUDA design with default configs."""
    for call, *_ in runs(CUDA, op, design):
        chosen, config = CUDA.choose(call.problem, CUDA.target(call.result.device), design)
        for tensors in call.parts:
            yield from chosen.launches(call.problem, config, *tensors)


def digest(library, op, design, device="cpu", every_config=False):
    """A hash of the bits of all results."""
    found = hashlib.sha256()
    count = 0
    for call, _, _, config in runs(library, op, design, device, every_config):
        call.result.fill_(count)  # not what was computed before
        found.update(bits(library.run(call, design, config)).numpy())
        count += 1
    assert count, "the design refuses every call: add one that it takes"
    return found.hexdigest()


def main(device, package, *names):
    """Prints the hashes of the package's named designs; of all, if none is named."""
    served = [p for p in runnable_designs() if p.values[0].package == package]
    served = served if package != "tritonkernels" or backend.device_type() == device else []
    print(json.dumps({p.id: digest(*p.values, device) for p in served if not names or p.values[2] in names}))


if __name__ == "__main__":
    main(*sys.argv[1:])
