"""The launches of gemm's lessons, all of which have the same tiles: so a table of the ladder compares techniques."""

import torch

from tritonkernels.lesson import lesson

from ...launch import Kernel, in_order
from .configs import SEED, SMALL, count_tiles, tiles
from .launches import arguments, threads, with_vector

FLOAT32 = ((torch.float32, torch.float32),)  # (of the operands, of the result)
TILES = tiles(SEED, SMALL)


def one_tile_a_block(kernel, space=TILES):
    """A lesson whose blocks compute one tile each. `kernel` is the template, such as "gemm::tiled<{BM}, ...>" in tiled.cuh."""
    instances = Kernel(kernel, with_vector(space))

    def launches(problem, config, a, b, c, out):
        parameters = config | {"VECTOR": all(in_quads(x) for x in (a, b, c, out) if x is not None)}
        grid, given = (count_tiles(problem, config),), arguments(problem, a, b, c, out)
        yield instances.launch(parameters, grid, threads(config), given)

    def configs(problem, target):
        return in_order(space, target)

    return lesson(configs, launches, FLOAT32)


def in_quads(matrix):
    """Whether rows are contiguous, whole quads of floats, and aligned to 16 bytes."""
    (_, cols), (row, col) = matrix.shape, matrix.stride()
    return col == 1 and cols % 4 == 0 and row % 4 == 0 and matrix.data_ptr() % 16 == 0
