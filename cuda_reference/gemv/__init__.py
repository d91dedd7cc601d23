"""GEMV in CUDA C++. A design is a .cuh file, its kernel's template arguments after the types, its configs and its launch."""

import torch

from tritonkernels.design import Design, takes_everything
from tritonkernels.gemv import VECTORS, prepare
from tritonkernels.gemv.operands import cut, full_vector
from tritonkernels.gemv.regime import UNROLL, splits_of_row, sub_warp, threads_of_row, tile_of_columns
from tritonkernels.gemv.regime import expected as expected
from tritonkernels.gemv.regime import prefer as prefer
from tritonkernels.workspace import counters, partial_sums

from ..launch import LIBRARY, CudaLaunch, Source, ceil_div

TYPES = {torch.float32: "float", torch.float16: "__half", torch.bfloat16: "__nv_bfloat16", torch.int8: "int8_t"}
PAIRS = tuple((kind, kind) for kind in VECTORS) + tuple((torch.int8, kind) for kind in VECTORS)  # of A and of x


def gemv(a, x, y=None, *, alpha=1.0, beta=0.0, scale=None, out=None, design=None, config=None):
    """tritonkernels.gemv, computed by the CUDA designs: arguments, result, error bound and errors are documented there."""
    return LIBRARY.call(prepare, **locals())


def _strides(a, x, y, scale, out):
    return (
        *a.stride(),
        *x.stride(),
        *((0, 0) if y is None else y.stride()),
        0 if scale is None else scale.stride(0),
        *out.stride(),
    )


# How a design is launched: (problem, config, tensors) -> (template arguments beside the config's, grid, threads, arguments).
def _by_rows(rows_per_block):
    """Every `rows_per_block(config)` of the batch's rows a block."""

    def launch(problem, config, a, x, y, scale, out):
        rows, m, n = a.shape[0] * a.shape[1], a.shape[1], a.shape[2]
        arguments = (a, x, y, scale, out, rows, m, n, problem.alpha, problem.beta, _strides(a, x, y, scale, out))
        return {}, (ceil_div(rows, rows_per_block(config)),), _threads(config), arguments

    return launch


def _threads(config):
    return config.get("THREADS") or 32 * (config.get("WARPS") or config["ROWS"])


def _by_tiles(problem, config, a, x, y, scale, out):
    batch, m, n = a.shape
    arguments = (a, x, y, scale, out, m, n, problem.alpha, problem.beta, _strides(a, x, y, scale, out))
    return {}, (batch * ceil_div(m, config["ROWS"]),), _threads(config), arguments


def _by_splits(problem, config, a, x, y, scale, out):
    (batch, m, n), splits = a.shape, config["SPLITS"]
    rows, vector = batch * m, full_vector(a.dtype)
    columns = ceil_div(ceil_div(n, splits), vector) * vector  # whole vectors, so that all splits have one head
    shared = partial_sums(splits, rows, out), counters(rows, out)
    sizes = rows, m, n, columns, problem.alpha, problem.beta
    arguments = (a, x, y, scale, out, *shared, *sizes, _strides(a, x, y, scale, out))
    return {}, (rows, splits), _threads(config), arguments


def _by_columns(problem, config, a, x, y, scale, out):
    (batch, m, n), splits = a.shape, config["SPLITS"]
    width = cut(a.mT, may_have_head=False).width
    lanes = config["LANES"] if width > 1 else 32
    rows = lanes * width
    tiles = batch * ceil_div(m, rows)
    shared = (partial_sums(splits, tiles * rows, out), counters(tiles, out)) if splits > 1 else (None, None)
    sizes = m, n, ceil_div(n, splits), problem.alpha, problem.beta
    arguments = (a, x, y, scale, out, *shared, *sizes, _strides(a, x, y, scale, out))
    return {"WIDTH": width, "LANES": lanes}, (tiles, splits), _threads(config), arguments


def _design(name, template, space, summary, mirrors, launch, order=lambda space, problem, target: space, also=()):
    """A Design from its row in the table. `template` is the arguments of gemv::name after the two types; `order` puts the
    configs for a problem, whose numbers that are no template argument may be any, in order; `also` has numbers of instances
    that are launched besides those of `space`."""
    template = f"gemv::{name}<{{A}}, {{X}}, {template}>"

    def instances(a, x):
        return tuple(
            template.format(**{"A": TYPES[a], "X": TYPES[x], "WIDTH": full_vector(a)} | config) for config in (*space, *also)
        )

    sources = {pair: Source(f"gemv/{name}.cuh", instances(*pair)) for pair in PAIRS}

    def launches(problem, config, *tensors):
        more, grid, threads, arguments = launch(problem, config, *tensors)
        kernel = template.format(**config | {"A": TYPES[problem.a_dtype], "X": TYPES[problem.dtype]} | more)
        yield CudaLaunch(sources[problem.a_dtype, problem.dtype], kernel, grid, (threads, 1, 1), arguments)

    return Design(
        name=name,
        summary=summary,
        mirrors=mirrors,
        refuses=takes_everything,
        configs=lambda problem, target: order(space, problem, target),
        launches=launches,
    )


def _rows_split(space, problem, target):
    """Each config with as many blocks a row as fill the GPU, then with others."""
    best = splits_of_row(problem, target)
    return [config | {"SPLITS": splits} for splits in dict.fromkeys((best, 2, 16, 64)) for config in space]


def _columns_split(space, problem, target):
    """The tile and the splits that fill the GPU, then others."""
    lanes, best = tile_of_columns(problem, target)
    nearest = sorted(space, key=lambda config: config["LANES"] != lanes)
    return [config | {"SPLITS": splits} for splits in dict.fromkeys((best, 1, 4)) for config in nearest]


def _threads_of_row(space, problem, target):
    return sorted(space, key=lambda config: 32 * config["WARPS"] != threads_of_row(problem))


def _nearest_lanes(space, problem, target):
    return sorted(space, key=lambda config: abs(config["LANES"] - sub_warp(problem)))


DESIGNS = (
    _design(
        "naive",
        "{THREADS}",
        [{"THREADS": 128}, {"THREADS": 32}],
        "a thread per row",
        "gemv seed: the starting point",
        _by_rows(lambda config: config["THREADS"]),
    ),
    _design(
        "staged_x",
        "{ROWS}, {STAGE}",
        [{"ROWS": 4, "STAGE": 1024}, {"ROWS": 8, "STAGE": 128}],
        "warp_per_row with x through shared memory, to show that it gains nothing",
        "gemv seed: x through shared memory",
        _by_tiles,
    ),
    _design(
        "warp_per_row",
        "{ROWS}",
        [{"ROWS": 4}, {"ROWS": 8}],  # the seed's blocks are (32, 4)
        "the lanes of a warp walk a row together, reduced by shuffles",
        "gemv seed: N = 32",
        _by_rows(lambda config: config["ROWS"]),
    ),
    _design(
        "vectorized",
        "{ROWS}, {UNROLL}",
        [{"ROWS": 4, "UNROLL": 4}, {"ROWS": 8, "UNROLL": 2}],
        "warp_per_row with 128-bit loads",
        "gemv seed: N >= 128",
        _by_rows(lambda config: config["ROWS"]),
    ),
    _design(
        "rows_per_warp",
        "{LANES}, {THREADS}, {UNROLL}",
        [{"LANES": lanes, "THREADS": 128, "UNROLL": UNROLL} for lanes in (1, 2, 4, 8, 16)],
        "2 to 32 rows a warp, 128-bit loads, reduced inside a sub-warp",
        "gemv seed: N <= 16",
        _by_rows(lambda config: config["THREADS"] // config["LANES"]),
        _nearest_lanes,
    ),
    _design(
        "block_per_row",
        "{WARPS}, {UNROLL}",
        [{"WARPS": 8, "UNROLL": UNROLL}, {"WARPS": 4, "UNROLL": UNROLL}],
        "a block walks a row together, for long rows",
        "gemv seed: N >= 128, for fewer rows than warps",
        _by_rows(lambda config: 1),
        _threads_of_row,
    ),
    _design(
        "split_n",
        "{WARPS}, {UNROLL}",
        [{"WARPS": 8, "UNROLL": UNROLL}],
        "block_per_row with several blocks a row, partial sums added in order by the last",
        "gemv seed: N >= 128, for fewer rows than SMs",
        _by_splits,
        _rows_split,
    ),
    _design(
        "transposed",
        "{WIDTH}, {LANES}, {WARPS}, {UNROLL}",
        [{"LANES": lanes, "WARPS": 8, "UNROLL": UNROLL} for lanes in (8, 32, 256)],
        "lanes side by side over rows for contiguous columns, N over warps and blocks",
        "gemv seed: none; x^T A",
        _by_columns,
        _columns_split,
        also=[{"LANES": 32, "WARPS": 8, "UNROLL": UNROLL, "WIDTH": 1}],  # where vectors are not aligned
    ),
)
