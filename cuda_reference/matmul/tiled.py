"""Matrix product, tiled: the configs and launches of tiled.cuh."""

import itertools

from tritonkernels.design import Design
from tritonkernels.matmul.parts.work import of_tiles

from ..launch import Kernel, configs_of
from .parts.arguments import arguments
from .parts.operands import OPERANDS, instance, lacks
from .parts.space import in_order, tiles

# The largest first. A warp tile is 32 x 64 or 32 x 32, and slices are 64 bytes deep; fp64 has smaller ones, so that a thread
# needs at most 128 registers
_SPACE = {
    **dict.fromkeys(("fp16", "bf16"), ((128, 128, 32, 4, 2), (64, 64, 32, 2, 2))),
    "tf32": ((128, 128, 16, 4, 2), (64, 64, 16, 2, 2)),
    "fp64": ((64, 64, 8, 2, 2), (32, 32, 16, 2, 2)),
    **dict.fromkeys(("int8", "uint8"), ((128, 128, 64, 4, 2), (64, 64, 64, 2, 2))),
}
_SPACE = {precision: configs_of("BM BN BK WARPS_M WARPS_N", *sizes) for precision, sizes in _SPACE.items()}


def _threads(config):
    return 32 * config["WARPS_M"] * config["WARPS_N"]


def _parameters(config, instance, vector):
    """Without VECTOR one layout of the slices is enough: single elements can be read from any layout."""
    layouts = {} if vector else dict.fromkeys("AB", "matmul::row_major")
    return {**config, **instance, **layouts, "VECTOR": vector}


def _kernel(precision):
    operand, tile = OPERANDS[precision], "{BM}, {BN}, {BK}, {WARPS_M}, {WARPS_N}"
    every = itertools.product((True, False), _SPACE[precision], operand.instances)
    space = [_parameters(config, instance, vector) for vector, config, instance in every]
    return Kernel(f"matmul::tiled<matmul::{operand.name}, {{SUMS}}, {tile}, {{A}}, {{B}}, {{RESULT}}, {{VECTOR}}>", space)


_KERNELS = {precision: _kernel(precision) for precision in _SPACE}


def _configs(problem, target):
    return in_order(_SPACE[problem.precision], target)


def _refuses(problem, target):
    return lacks(_SPACE, problem, target)


def _in_vectors(matrices, layout):
    """Whether each contiguous row (or column) is aligned to 16 bytes and a whole number of 16-byte vectors long."""
    line, across = (1, 2) if layout == "col" else (2, 1)
    in_elements = 16 // matrices.element_size()
    wholes = matrices.shape[line], matrices.stride(across), matrices.stride(0)
    aligned = matrices.data_ptr() % 16 == 0 and not any(size % in_elements for size in wholes)
    return aligned and matrices.stride(line) == 1


def _launches(problem, config, a, b, c, bias, out):
    vector = _in_vectors(a, problem.a_layout) and _in_vectors(b, problem.b_layout)
    parameters, grid = (
        _parameters(config, instance(problem), vector),
        (a.shape[0] * tiles(problem, config["BM"], config["BN"]),),
    )
    yield _KERNELS[problem.precision].launch(parameters, grid, _threads(config), arguments(problem, a, b, c, bias, out))


def _tile(config):
    """The block tile of a config in the analysis' terms."""
    return config | {"threads": _threads(config)}


DESIGN = Design(
    refuses=_refuses,
    configs=_configs,
    launches=_launches,
    work=of_tiles(_tile),
    tile=_tile,
)
