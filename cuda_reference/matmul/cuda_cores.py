"""cuda_cores: its config space and its launches."""

import itertools

from tritonkernels.design import Design

from ..gemm.parts.configs import OPERAND_FMAS
from ..launch import CudaLaunch, Source
from .parts.align import k_major, without_idle_strides
from .parts.arguments import arguments, booleans
from .parts.space import fastest, tiles

_NAMES = ("BM", "BN", "BK", "TM", "TN", "GROUP")
_SPACE = [dict(zip(_NAMES, sizes)) for sizes in ((128, 128, 16, 8, 8, 4), (64, 64, 16, 4, 4, 4), (32, 32, 16, 4, 4, 4))]


def _configs(problem, target):
    """The fastest tile first; in the emulation the smallest, so that few kernels are built."""
    return fastest(_SPACE, problem, target, OPERAND_FMAS) if target.is_gpu else _SPACE[::-1]


def _refuses(problem, target):
    return None if problem.precision == "ieee" else f"it multiplies float32 on CUDA cores, and has no {problem.precision}"


def instantiations(config):
    """{(A lies along K, B does, both are read in vectors): kernel}, built together."""
    tile = ", ".join(str(config[name]) for name in _NAMES if name != "GROUP")
    switches = itertools.product((True, False), repeat=3)
    return {which: f"matmul::cuda_cores<{tile}, {', '.join(booleans(*which))}>" for which in switches}


def _launches(problem, config, a, b, c, bias, out):
    a, b = without_idle_strides(a, 1), without_idle_strides(b, 2)
    in_chunks = k_major(a, 1, True), k_major(b, 2, True)
    vector = None not in in_chunks
    by_k = in_chunks if vector else (a.stride(2) <= a.stride(1), b.stride(1) <= b.stride(2))
    kernels = instantiations(config)
    yield CudaLaunch(
        Source("matmul/cuda_cores.cuh", tuple(kernels.values())),
        kernels[(*by_k, vector)],
        (a.shape[0] * tiles(problem, config["BM"], config["BN"]),),
        (config["BM"] // config["TM"] * (config["BN"] // config["TN"]), 1, 1),
        (*arguments(problem, a, b, c, bias, out), config["GROUP"]),
    )


DESIGN = Design(refuses=_refuses, configs=_configs, launches=_launches)
