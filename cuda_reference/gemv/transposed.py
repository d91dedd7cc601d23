"""GEMV, transposed: the configs and launches of transposed.cuh. SPLITS blocks share a tile of LANES vectors of rows.

SPLITS is no template argument, so that any number works without a new build.
"""

import functools

from tritonkernels.design import Design
from tritonkernels.operations.gemv.shapes import UNROLL, tile_of_columns
from tritonkernels.operations.gemv.vectors import cut, full_vector
from tritonkernels.operations.gemv.work import along_columns, column_vector
from tritonkernels.workspace import counters, partial_sums

from ..launch import Kernel, ceil_div, config_of, configs_of
from .parts.kernel import TYPES, streaming, strides, typed

SINGLE = config_of(LANES=32, WARPS=8, UNROLL=UNROLL)  # for single elements, of few rows or where none are neighbours
SINGLES = {"WIDTH": 1, "SHIFTED": False}


@functools.cache
def space(a_dtype):
    """The configs for a type of A. int8 has none of 1024 threads, whose partial sums would not fit in shared memory."""
    shapes = ((8, 8), *(((8, 32),) if a_dtype.itemsize > 1 else ()), (32, 8), (256, 8))
    return configs_of("LANES WARPS UNROLL", *((lanes, warps, UNROLL) for lanes, warps in shapes))


def kernel(a_dtype):
    vectors = [config | {"WIDTH": full_vector(a_dtype)} for config in space(a_dtype)]
    return Kernel("gemv::transposed<{A}, {X}, {WIDTH}, {LANES}, {WARPS}, {UNROLL}, {SHIFTED}>", (*vectors, SINGLE | SINGLES))


KERNELS = {a_dtype: kernel(a_dtype) for a_dtype in TYPES}


def configs(problem, target):
    """Each tile with as many splits as fill the GPU, half and twice as many, 1 and 4."""
    _, _, best = tile_of_columns(problem, target)
    for splits in dict.fromkeys((best, 1, 4, max(1, best // 2), 2 * best)):
        yield from streaming((config | {"SPLITS": splits} for config in space(problem.a_dtype)), problem, target)


def launches(problem, config, a, x, y, scale, out):
    (batch, m, n), splits, width = a.shape, config["SPLITS"], cut(a.mT, may_have_head=False).width
    if width == 1 and a.stride(1) == 1 and _may_shift(problem):
        instance = config | {"WIDTH": full_vector(a.dtype), "SHIFTED": True}
    else:
        instance = config | {"WIDTH": width, "SHIFTED": False} if width > 1 else SINGLE | SINGLES
    rows = instance["LANES"] * instance["WIDTH"]
    tiles = batch * ceil_div(m, rows)
    shared = (partial_sums(splits, tiles * rows, out), counters(tiles, out)) if splits > 1 else (None, None)
    numbers = m, n, ceil_div(n, splits), problem.alpha, problem.beta
    arguments = a, x, y, scale, out, *shared, *numbers, strides(a, x, y, scale, out), config["STREAMS"]
    yield KERNELS[a.dtype].launch(typed(problem, instance), (tiles, splits), 32 * instance["WARPS"], arguments)


def _may_shift(problem):
    """Whether there are rows for a thread's two words, of elements smaller than a float: a warp reads a line of floats at once,
    one a lane, and is faster so (on an H200 40 us for 5001 x 6003 where shifted words took 57)."""
    return problem.a_dtype.itemsize < 4 and problem.m >= 2 * full_vector(problem.a_dtype)


def work(problem, config, target):
    columns = problem.a_layout == "col" or problem.n == 1
    width = full_vector(problem.a_dtype) if columns and _may_shift(problem) else column_vector(problem)
    shape = config if width > 1 else SINGLE
    lanes, threads = shape["LANES"], 32 * shape["WARPS"]
    one = along_columns(problem, threads, lanes, threads // lanes, width, shape["UNROLL"], config["SPLITS"])
    return (one._replace(shared=max(4, problem.dtype.itemsize) * threads * width),)


DESIGN = Design(configs=configs, launches=launches, work=work)
