"""Matrix product, cuda_cores: the configs and launches of cuda_cores.cuh."""

from tritonkernels.design import Design
from tritonkernels.matmul.parts.work import of_tiles

from ..launch import Kernel, configs_of
from .parts.align import k_major, without_idle_strides
from .parts.arguments import arguments, layouts
from .parts.space import in_order, tiles

_SPACE = configs_of("BM BN BK TM TN GROUP", (128, 128, 16, 8, 8, 4), (64, 64, 16, 4, 4, 4), (32, 32, 16, 4, 4, 4))
_KERNEL = Kernel(
    "matmul::cuda_cores<{BM}, {BN}, {BK}, {TM}, {TN}, {A_BY_K}, {B_BY_K}, {VECTOR}>",
    [{**by_k, "VECTOR": vector} for by_k in layouts() for vector in (True, False)],
)


def _configs(problem, target):
    return in_order(_SPACE, target)


def _refuses(problem, target):
    return None if problem.precision == "ieee" else f"it multiplies float32 on CUDA cores, and has no {problem.precision}"


def _threads(config):
    return config["BM"] // config["TM"] * (config["BN"] // config["TN"])


def _launches(problem, config, a, b, c, bias, out):
    a, b = without_idle_strides(a, 1), without_idle_strides(b, 2)
    in_chunks = k_major(a, 1, True), k_major(b, 2, True)
    vector = None not in in_chunks
    a_by_k, b_by_k = in_chunks if vector else (a.stride(2) <= a.stride(1), b.stride(1) <= b.stride(2))
    yield _KERNEL.launch(
        {**config, "A_BY_K": a_by_k, "B_BY_K": b_by_k, "VECTOR": vector},
        (a.shape[0] * tiles(problem, config["BM"], config["BN"]),),
        _threads(config),
        (*arguments(problem, a, b, c, bias, out), config["GROUP"]),
    )


def _tile(config):
    """The block tile of a config in the analysis' terms."""
    return config | {"threads": _threads(config), "GROUP_M": config["GROUP"]}


DESIGN = Design(refuses=_refuses, configs=_configs, launches=_launches, work=of_tiles(_tile))
