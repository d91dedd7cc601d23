"""What precision "fp32" computes again, in IEEE arithmetic: the results that its planes refuse.

Planes lose bits of elements far below the largest of their row or column (fp32_planes.py). Where that may cost a result more
than IEEE arithmetic would, it is NaN; fp16x3 leaves it so. Few rows of usual operands have such elements, and hardly a result
is refused for them. So a program looks at the counts of a tile's rows and columns first, then for NaN in the tile, and
multiplies if there is any: as a rule the kernel reads counts and nothing else. What is NaN for other reasons is NaN again.

Mirrors cuda_reference/matmul/parts/again.cuh.
"""

from ...integers import ceil_div
from ...language.overlap import wait_for_earlier_kernels
from ...language.structs import Matrices, Vector
from ...language.tiles import span
from ...language.triton import tl, triton
from ...launch import TritonLaunch
from ...operations.matmul.schemes import AGAIN, in_ieee
from .arguments import Arithmetic, Epilogue, Sizes, matmul_arguments
from .epilogue import finished, inside, places
from .fp32_planes import Ranges
from .tile import tile_corner, tile_product

CONFIG = triton.Config({"BLOCK_M": AGAIN, "BLOCK_N": AGAIN, "BLOCK_K": 16}, num_warps=4, num_stages=2)


@triton.jit
def _most_counted(ranges, batch, lines, length):
    """How many elements that may lose bits the row or column with the most of them has (schemes.room)."""
    counts = tl.load(ranges.ptr + batch * ranges.batch + length + length + lines, mask=lines < length, other=0)
    return tl.max(counts, axis=0)


@triton.jit
def _again_kernel(
    a: Matrices, b: Matrices, c: Matrices, bias: Vector, out: Matrices, a_ranges: Ranges, b_ranges: Ranges,
    sizes: Sizes, epilogue: Epilogue, how: Arithmetic,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    wait_for_earlier_kernels()
    batch, row, col = tile_corner(tl.program_id(0), sizes, BLOCK_M, BLOCK_N, 1, how.WIDE)
    rows = span(row, BLOCK_M, how.WIDE)
    cols = span(col, BLOCK_N, how.WIDE)
    if tl.maximum(_most_counted(a_ranges, batch, rows, sizes.M), _most_counted(b_ranges, batch, cols, sizes.N)) > 0:
        out_ptrs = places(out, batch, rows, cols, sizes)
        results = tl.load(out_ptrs, mask=inside(rows, cols, sizes), other=0)
        refused = results != results
        if tl.max(tl.max(refused.to(tl.int32), axis=1), axis=0) > 0:
            acc = tile_product(a, b, batch, rows, cols, 0, sizes.K, sizes, how, BLOCK_K)
            result = finished(acc, None, None, c, bias, batch, rows, cols, sizes, epilogue)
            tl.store(out_ptrs, result, mask=refused)


def again(problem, a, b, c, bias, out, a_ranges, b_ranges):
    """The launch."""
    a, b, _, _, *result, sizes, epilogue, how = matmul_arguments(in_ieee(problem), a, b, c, bias, out)
    ranges = Ranges.of(a_ranges), Ranges.of(b_ranges)
    grid = (out.shape[0] * ceil_div(problem.m, AGAIN) * ceil_div(problem.n, AGAIN),)
    return TritonLaunch(_again_kernel, grid, CONFIG, a, b, *result, *ranges, sizes, epilogue, how)
