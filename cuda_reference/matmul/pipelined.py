"""pipelined: its config space and its launches."""

import itertools

from tritonkernels.design import Design

from ..launch import CudaLaunch, Source
from .parts.align import aligned, k_major
from .parts.arguments import ELEMENTS, SUMS, TYPES, arguments, booleans
from .parts.space import fastest, tiles

# SLICE is BK in bytes: to copies and ldmatrix all elements are bytes, and shared memory is what limits it
_NAMES = ("BM", "BN", "SLICE", "WM", "WN", "STAGES", "GROUP")
_SPACE = [
    dict(zip(_NAMES, sizes))
    for sizes in (
        (128, 256, 128, 64, 64, 3, 8),
        (256, 128, 128, 64, 64, 3, 4),
        (128, 128, 128, 64, 64, 3, 8),
        (128, 256, 64, 64, 64, 4, 8),
        (128, 128, 64, 64, 64, 4, 8),
        (64, 64, 128, 32, 32, 4, 8),
        (64, 64, 64, 32, 32, 4, 8),
    )
]
OPERAND_FMAS = 64  # multiply-adds in the time that an SM fetches a 16-bit operand from L2: 1280 and 20 a clock on an H200


def shared_bytes(config):
    """Of a block: STAGES slices of both operands."""
    return config["STAGES"] * config["SLICE"] * (config["BM"] + config["BN"])


def configs(problem, target):
    """The fastest tile first; in the emulation the smallest, so that few kernels are built."""
    if not target.is_gpu:
        return _SPACE[::-1]
    fitting = [config for config in _SPACE if shared_bytes(config) <= target.shared_per_block]
    return fastest(fitting, problem, target, OPERAND_FMAS)


def _refuses(problem, target):
    if problem.precision not in ELEMENTS:
        return f"it has no {problem.precision}"
    return target.lacks("cp.async", 80)


def _launches(problem, config, a, b, c, bias, out):
    a, copies_of_a = aligned(a, 1)
    b, copies_of_b = aligned(b, 2)
    yield from copies_of_a + copies_of_b
    depth = config["SLICE"] // a.element_size()
    types = ELEMENTS[problem.precision], TYPES[problem.out_dtype], SUMS[problem.accumulate]
    numbers = (config["BM"], config["BN"], depth, *(config[name] for name in ("WM", "WN", "STAGES")))
    present = k_major(a, 1), k_major(b, 2)
    layouts = list(itertools.product((True, False), repeat=2)) if a.element_size() == 2 else [present]
    kernels = {along: f"matmul::pipelined<{', '.join(map(str, (*types, *numbers, *booleans(*along))))}>" for along in layouts}
    yield CudaLaunch(
        Source("matmul/pipelined.cuh", tuple(kernels.values())),  # built together: that takes little longer than one
        kernels[present],
        (a.shape[0] * tiles(problem, config["BM"], config["BN"]),),
        (config["BM"] // config["WM"] * (config["BN"] // config["WN"]) * 32, 1, 1),
        (*arguments(problem, a, b, c, bias, out), config["GROUP"]),
        shared_bytes(config),
    )


DESIGN = Design(refuses=_refuses, configs=configs, launches=_launches)
