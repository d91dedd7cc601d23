"""What the rungs' launches are made of: their instances with VECTOR and without, a block's threads, the arguments; and the
Design of most rungs."""

from tritonkernels.design import Design, takes_everything

from ...launch import Kernel
from .configs import count_tiles, fewest_rounds, tile_grid


def one_tile_a_block(
    space, kernel, order=fewest_rounds, refuses=takes_everything, in_groups=False, shared_bytes=lambda config: 0
):
    """The Design whose blocks compute a tile each. `kernel` is its template, as "gemm::tiled<{BM}, ...>" of tiled.cuh.

    order         of the space's configs, for a problem and target
    in_groups     whether the kernel takes `group` after the usual arguments
    shared_bytes  of a block, beyond what the kernel declares
    """
    instances = Kernel(kernel, with_vector(space))

    def launches(problem, config, a, b, c, out):
        given = *arguments(problem, a, b, c, out), *((group(problem, config),) if in_groups else ())
        grid, parameters = (count_tiles(problem, config),), config | {"VECTOR": vector(a, b)}
        yield instances.launch(parameters, grid, threads(config), given, shared_bytes(config))

    return Design(refuses=refuses, configs=lambda problem, target: order(space, problem, target), launches=launches)


def with_vector(space):
    """The space's configs with VECTOR and without."""
    return [config | {"VECTOR": vector} for config in space for vector in (True, False)]


def vector(a, b):
    """VECTOR of a kernel: whether the rows of both operands can be read 128 bits at a time."""
    return _in_vectors(a) and _in_vectors(b)


def _in_vectors(matrix):
    """Contiguous, aligned to 16 bytes, and apart (SlicesOfB::fetch says why)."""
    row, col = matrix.stride()
    return col == 1 and row % 4 == 0 and row >= matrix.shape[1] and matrix.data_ptr() % 16 == 0


def threads(config):
    """Of a block: one a thread tile, Shape::THREADS."""
    return config["BM"] // config["TM"] * (config["BN"] // config["TN"])


def group(problem, config):
    """Rows of tiles that blocks walk down together (rasterized.cuh); GROUP 0 is all of them."""
    return config["GROUP"] or tile_grid(problem, config)[0]


def arguments(problem, a, b, c, out):
    """What most kernels take, and what the others begin with."""
    return (a, b, c, out, problem.m, problem.n, problem.k, problem.alpha, problem.beta, strides(a, b, c, out))


def strides(a, b, c, out):
    """common.cuh's Strides, flat."""
    return (*a.stride(), *b.stride(), *(c.stride() if c is not None else (0, 0)), *out.stride())
