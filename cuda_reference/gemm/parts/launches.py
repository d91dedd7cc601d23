"""What the rungs' launches are made of: the instantiations of their kernels, a block's threads, and the arguments."""

from ...launch import Source
from .configs import tile_grid


def source(header, space, *templates):
    """The rung's file with its templates' instantiations for all of a space, with VECTOR and without, built together."""
    every = (
        template.format(**config, VECTOR=vector) for config in space for vector in ("true", "false") for template in templates
    )
    return Source(f"gemm/{header}", tuple(dict.fromkeys(every)))


def vector(a, b):
    """VECTOR of a kernel: whether the rows of both operands can be read 128 bits at a time."""
    return "true" if _in_vectors(a) and _in_vectors(b) else "false"


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
