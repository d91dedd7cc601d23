"""GEMV in CUDA C++. A design is a .cuh file, its kernel's template arguments after the types, its configs and its launch."""

import torch

from tritonkernels.design import Design, takes_everything
from tritonkernels.gemv import VECTORS
from tritonkernels.gemv.operands import cut, full_vector
from tritonkernels.gemv.regime import (
    UNROLL,
    expected,
    prefer,
    splits_of_row,
    streams,
    sub_warp,
    threads_of_row,
    tile_of_columns,
)
from tritonkernels.workspace import counters, partial_sums

from ..launch import LIBRARY, CudaLaunch, Source, ceil_div

TYPES = {torch.float32: "float", torch.float16: "__half", torch.bfloat16: "__nv_bfloat16", torch.int8: "int8_t"}
PAIRS = tuple((kind, kind) for kind in VECTORS) + tuple((torch.int8, kind) for kind in VECTORS)  # of A and of x


def gemv(a, x, y=None, *, alpha=1.0, beta=None, scale=None, out=None, design=None, config=None):
    """tritonkernels.gemv, computed by the CUDA designs: arguments, result, error bound and errors are documented there."""
    return LIBRARY.call(GEMV, design, config, a=a, x=x, y=y, alpha=alpha, beta=beta, scale=scale, out=out)


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
    instance = {"LANES": config["LANES"], "WARPS": config["WARPS"]} if width > 1 else {"LANES": 32, "WARPS": 8}
    rows = instance["LANES"] * width
    tiles = batch * ceil_div(m, rows)
    shared = (partial_sums(splits, tiles * rows, out), counters(tiles, out)) if splits > 1 else (None, None)
    sizes = m, n, ceil_div(n, splits), problem.alpha, problem.beta
    arguments = (a, x, y, scale, out, *shared, *sizes, _strides(a, x, y, scale, out))
    return instance | {"WIDTH": width}, (tiles, splits), _threads(instance), arguments


def _as_they_are(space, problem, target):
    return space


def _design(name, template, space, summary, mirrors, launch, order=_as_they_are, also=(), streaming=True):
    """A Design from its row in the table. `template` is the arguments of gemv::name after the two types; `order` puts the
    configs for a problem, whose numbers that are no template argument may be any, in order; `also` has numbers of instances
    that are launched besides those of `space`; a `streaming` kernel is told, last, how to read A."""
    template = f"gemv::{name}<{{A}}, {{X}}, {template}>"

    def instances(a, x):
        return tuple(
            template.format(**{"A": TYPES[a], "X": TYPES[x], "WIDTH": full_vector(a)} | config)
            for config in (*space, *also)
            if _has_room(config, a)
        )

    def configs(problem, target):
        read = {"STREAMS": streams(problem, target)} if streaming else {}
        return [config | read for config in order(space, problem, target) if _has_room(config, problem.a_dtype)]

    sources = {pair: Source(f"gemv/{name}.cuh", instances(*pair)) for pair in PAIRS}

    def launches(problem, config, *tensors):
        more, grid, threads, arguments = launch(problem, config, *tensors)
        kernel = template.format(**config | {"A": TYPES[problem.a_dtype], "X": TYPES[problem.dtype]} | more)
        read = (config["STREAMS"],) if streaming else ()
        yield CudaLaunch(sources[problem.a_dtype, problem.dtype], kernel, grid, (threads, 1, 1), (*arguments, *read))

    return Design(
        name=name,
        summary=summary,
        mirrors=mirrors,
        refuses=takes_everything,
        configs=configs,
        launches=launches,
    )


def _has_room(config, a_dtype):
    """Sums of tiles of int8, 128 rows of them, outgrow shared memory with 1024 threads."""
    return a_dtype.itemsize > 1 or config.get("WARPS", 0) <= 8


def _rows_split(space, problem, target):
    """Each config with as many blocks a row as fill the GPU, then with others."""
    best = splits_of_row(problem, target)
    return [config | {"SPLITS": splits} for splits in dict.fromkeys((best, 2, 16, 64)) for config in space]


def _columns_split(space, problem, target):
    """The tile and the splits that fill the GPU, then others."""
    lanes, threads, best = tile_of_columns(problem, target)
    nearest = sorted(space, key=lambda config: (config["LANES"] != lanes, 32 * config["WARPS"] != threads))
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
        streaming=False,
    ),
    _design(
        "staged_x",
        "{ROWS}, {STAGE}",
        [{"ROWS": 4, "STAGE": 1024}, {"ROWS": 8, "STAGE": 128}],
        "warp_per_row with x through shared memory, to show that it gains nothing",
        "gemv seed: x through shared memory",
        _by_tiles,
        streaming=False,
    ),
    _design(
        "warp_per_row",
        "{ROWS}",
        [{"ROWS": 4}, {"ROWS": 8}],  # the seed's blocks are (32, 4)
        "the lanes of a warp walk a row together, reduced by shuffles",
        "gemv seed: N = 32",
        _by_rows(lambda config: config["ROWS"]),
        streaming=False,
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
        [{"LANES": lanes, "WARPS": warps, "UNROLL": UNROLL} for lanes, warps in ((8, 8), (8, 32), (32, 8), (256, 8))],
        "lanes side by side over rows for contiguous columns, N over warps and blocks",
        "gemv seed: none; x^T A",
        _by_columns,
        _columns_split,
        also=[{"LANES": 32, "WARPS": 8, "UNROLL": UNROLL, "WIDTH": 1}],  # where vectors are not aligned
    ),
)


LIBRARY.serve(GEMV, prefer=prefer, expected=expected)
