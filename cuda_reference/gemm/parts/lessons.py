"""The launches of gemm's lessons, all of which have the same tiles: so a table of the ladder compares techniques."""

from tritonkernels.design import Design
from tritonkernels.gemm.parts.float32_only import float32_only
from tritonkernels.gemm.parts.work import of_tiles

from ...launch import Kernel
from .configs import SEED, SMALL, count_tiles, in_order, tiles
from .launches import arguments, block_tile, threads, with_vector

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

    return Design(refuses=float32_only, configs=configs, launches=launches, work=of_tiles(lambda c: {"BK": 1} | block_tile(c)))


def in_quads(matrix):
    """Whether rows are contiguous, whole quads of floats, and aligned to 16 bytes."""
    (_, cols), (row, col) = matrix.shape, matrix.stride()
    return col == 1 and cols % 4 == 0 and row % 4 == 0 and matrix.data_ptr() % 16 == 0
