"""Shared by the launches of gemm's designs: instances with and without VECTOR, threads, arguments; and the Design of two."""

from tritonkernels.design import Design
from tritonkernels.operations.gemm.float32_only import float32_only
from tritonkernels.operations.gemm.work import of_tiles

from ...common import registers
from ...common.align import shifted
from ...launch import Kernel, ceil_div, holds, in_order
from .configs import count_tiles, tile_grid


def one_tile_a_block(space, kernel, refuses=float32_only, shared_bytes=lambda config: 0):
    """A Design whose blocks compute one tile each, in groups of rows. `kernel` is the template, such as
    "gemm::rasterized<{BM}, ...>" in rasterized.cuh; shared_bytes are its dynamic shared memory per block."""
    instances = Kernel(kernel, with_vector(space))

    def launches(problem, config, a, b, c, out):
        given = *arguments(problem, a, b, c, out), group(problem, config)
        grid, parameters = (count_tiles(problem, config),), config | instance(a, b, out)
        yield instances.launch(parameters, grid, threads(config), given, shared_bytes(config))

    def configs(problem, target):
        return in_order(space, target)

    return Design(refuses=refuses, configs=configs, launches=launches, work=of_tiles(block_tile))


ALL = 2**31  # rows of a group


def with_vector(space):
    """The space's configs with VECTOR and without."""
    return [config | {"VECTOR": vector} for config in space for vector in (True, False)]


def instance(a, b, out):
    """VECTOR of a kernel, whether the rows of both operands can be read 128 bits at a time, and SHIFTED."""
    return {"VECTOR": in_vectors(a) and in_vectors(b), "SHIFTED": shifted(out)}


def in_vectors(matrix):
    """Whether rows are contiguous, aligned to 16 bytes, and do not overlap (SlicesOfB::fetch says why), and the memory has room
    for the whole last chunk of the last row (launch.holds says why)."""
    (rows, cols), (row, col) = matrix.shape, matrix.stride()
    in_rows = col == 1 and row % 4 == 0 and row >= cols and matrix.data_ptr() % 16 == 0
    return in_rows and (not matrix.numel() or holds(matrix, (rows - 1) * row + ceil_div(cols, 4) * 4))


def threads(config):
    """Per block: one per thread tile, as in Shape::THREADS."""
    return config["BM"] // config.get("TM", 1) * (config["BN"] // config.get("TN", 1))


def block_tile(config, holds_slices=False):
    """The block tile of a config in the analysis' terms; of two stages, where one is written while the other is multiplied."""
    return dict(config) | {
        "threads": threads(config),
        "registers": registers.of_product(config.get("TM", 1) * config.get("TN", 1), holds_slices),
        "stages": config.get("STAGES", 2),
        "GROUP_M": config.get("GROUP", 1) or ALL,
    }


def group(problem, config):
    """Rows of tiles in a group (rasterized.cuh); GROUP 0 means all rows."""
    return config["GROUP"] or tile_grid(problem, config)[0]


def arguments(problem, a, b, c, out):
    """The arguments of most kernels, and the first ones of the others."""
    return (a, b, c, out, problem.m, problem.n, problem.k, problem.alpha, problem.beta, strides(a, b, c, out))


def strides(a, b, c, out):
    """The members of Strides (common.cuh); 0 if there is no C."""
    return (*a.stride(), *b.stride(), *(c.stride() if c is not None else (0, 0)), *out.stride())
