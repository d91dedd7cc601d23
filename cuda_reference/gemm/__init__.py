"""FP32 GEMM in CUDA C++: the ladder's rungs. A rung is a .cuh file, its kernels' template arguments and its config space."""

import torch

from tritonkernels.analysis.waves import waves
from tritonkernels.design import Design, takes_everything
from tritonkernels.gemm import GEMM

from ..launch import LIBRARY, CudaLaunch, Source, ceil_div
from . import configs
from .configs import each, tile_grid, tiles


def gemm(a, b, c=None, *, alpha=1.0, beta=None, out=None, design=None, config=None):
    """tritonkernels.gemm, computed by the CUDA designs: arguments, result, error bound and errors are documented there."""
    return LIBRARY.call(GEMM, design, config, a=a, b=b, c=c, alpha=alpha, beta=beta, out=out)


def prefer(problem, target):
    """The design for a problem, by tiles of 128 x 128: few tiles or a poor last wave want split-K where there is much K, a poor
    wave stream-K where there is little, full waves the biggest tile; where a wave is not full, small tiles do best. Fitted to
    perf/results/h200/ladder.json.
    """
    if not target.is_gpu:
        return "tiled"
    tiles = ceil_div(problem.m, 128) * ceil_div(problem.n, 128)
    efficiency = waves(tiles, target.sms, 1).efficiency
    poor = 4 * tiles <= target.sms or (tiles > target.sms and efficiency < 0.95)
    if poor and problem.k >= 1024:
        return "split_k"
    if tiles < target.sms:
        return "double_buffered"
    if efficiency < 0.85:
        return "stream_k"
    return "async_copy" if target.arch >= 80 else "rasterized"


def _vectors(matrix):
    """Whether rows can be read 128 bits at a time: contiguous, aligned to 16 bytes, and apart (SlicesOfB::fetch says why)."""
    row, col = matrix.stride()
    return col == 1 and row % 4 == 0 and row >= matrix.shape[1] and matrix.data_ptr() % 16 == 0


def _blas(problem, a, b, c, out):
    """The arguments that most kernels begin with."""
    return (a, b, c, out, problem.m, problem.n, problem.k, problem.alpha, problem.beta, _strides(a, b, c, out))


def _strides(a, b, c, out):
    return (*a.stride(), *b.stride(), *(c.stride() if c is not None else (0, 0)), *out.stride())


def _threads(config):
    return config["BM"] * config["BN"] // (config.get("TM", 1) * config.get("TN", 1))


def _group(problem, config):
    """Rows of tiles that blocks walk down together (rasterized.cuh); GROUP 0 is all of them."""
    return config["GROUP"] or tile_grid(problem, config)[0]


# How a rung is launched: (problem, config, kernels, a, b, c, out) -> (kernel, grid, threads, arguments, shared bytes) a launch.
def _a_block_per_tile(problem, config, kernels, *tensors):
    down, across = tile_grid(problem, config)
    yield kernels[0], (down * across,), _threads(config), _blas(problem, *tensors), 0


def _in_order(problem, config, kernels, *tensors):
    down, across = tile_grid(problem, config)
    yield kernels[0], (down * across,), _threads(config), (*_blas(problem, *tensors), _group(problem, config)), _staged(config)


def _staged(config):
    """Dynamic shared memory of the STAGES slices, A's in a PaddedTile."""
    return config.get("STAGES", 0) * config["BK"] * (config["BM"] + 4 + config["BN"]) * 4


def _in_splits(problem, config, kernels, a, b, c, out):
    m, n, k, splits = problem.m, problem.n, problem.k, config["SPLITS"]
    down, across = tile_grid(problem, config)
    split_size = ceil_div(ceil_div(k, config["BK"]), splits) * config["BK"]
    partial = torch.empty(splits, m, n, dtype=out.dtype, device=out.device)
    arguments = (a, b, partial, m, n, k, _strides(a, b, None, partial[0]), _group(problem, config), split_size)
    yield kernels[0], (down * across, splits), _threads(config), arguments, 0
    arguments = (partial, c, out, m, n, splits, problem.alpha, problem.beta, _strides(a, b, c, out))
    yield kernels[1], (m * ceil_div(n, 256),), 256, arguments, 0


def _in_runs(problem, config, kernels, *tensors):
    out, blocks, threads, group = tensors[-1], config["BLOCKS"], _threads(config), _group(problem, config)
    down, across = tile_grid(problem, config)
    left = down * across % blocks  # after whole waves; with one wave more the runs are long enough to hide their ends
    left += blocks if left and down * across > blocks else 0
    whole = down * across - left
    workspace = torch.empty(2 * blocks * config["BM"] * config["BN"] if left else 0, dtype=out.dtype, device=out.device)
    a, b, c, out, *rest = _blas(problem, *tensors)
    yield kernels[0], (blocks,), threads, (a, b, c, out, workspace, *rest, group, whole), 0
    if left:
        yield kernels[1], (left, config["TM"]), threads, (workspace, c, out, *rest, group, whole, blocks), 0


def _needs_cp_async(problem, target):
    return target.lacks("cp.async", 80)


def _rung(
    name, template, space, summary, mirrors, order=configs.fewest_rounds, launch=_a_block_per_tile, refuses=takes_everything
):
    """A Design from its row in the table. `template` is the arguments of gemm::name, or a tuple of whole expressions."""
    templates = (f"gemm::{name}<{template}>",) if isinstance(template, str) else template

    def kernels(config, vector):
        return [t.format(**config, VECTOR="true" if vector else "false") for t in templates]

    every = (kernel for config in space for vector in (True, False) for kernel in kernels(config, vector))
    source = Source(f"gemm/{name}.cuh", tuple(dict.fromkeys(every)))

    def launches(problem, config, a, b, c, out):
        steps = launch(problem, config, kernels(config, _vectors(a) and _vectors(b)), a, b, c, out)
        for kernel, grid, threads, arguments, shared_bytes in steps:
            yield CudaLaunch(source, kernel, grid, (threads, 1, 1), arguments, shared_bytes)

    return Design(
        name=name,
        summary=summary,
        mirrors=mirrors,
        refuses=refuses,
        configs=lambda problem, target: order(space, problem, target),
        launches=launches,
    )


SEED = (128, 128, 8, 8, 8)  # the seed's tile; the others are for few tiles, for longer slices, and for fewer loads per FMA
SMALL, LONG, WIDE = (64, 64, 16, 4, 4), (128, 128, 16, 8, 8), (128, 256, 8, 8, 16)
TILE = "{BM}, {BN}, {BK}, {TM}, {TN}"

DESIGNS = (
    _rung(
        "naive",
        "{BM}, {BN}",
        [{"BM": 8, "BN": 32}, {"BM": 4, "BN": 64}, {"BM": 32, "BN": 32}],
        "one thread per element of C, operands straight from the caches",
        "gemm seed: naive",
        order=configs.as_given,
    ),
    _rung(
        "tiled",
        TILE,
        tiles(SEED, (64, 64, 8, 4, 4)),
        "block tile in shared memory, outer products in registers",
        "gemm seed: shared memory + outer product",
    ),
    _rung(
        "warp_tiled",
        TILE,
        tiles(SEED, (64, 64, 8, 4, 4)),
        "tiled, a warp's lanes in a grid of 4 x 8 thread tiles",
        "gemm seed: warp tile",
    ),
    _rung(
        "vectorized",
        TILE + ", {VECTOR}",
        tiles(SEED, SMALL),
        "warp_tiled with 128-bit accesses of global and shared memory",
        "gemm seed: vectorised access",
    ),
    _rung(
        "conflict_free",
        TILE + ", gemm::{A_TILE}, {VECTOR}",
        each(tiles(SEED, SMALL), A_TILE=("PaddedTile", "RemappedTile")),
        "vectorized without bank conflicts: A's tile padded or remapped, lanes 4 x 2 a phase",
        "gemm seed: conflict-free store, conflict-free load",
    ),
    _rung(
        "z_order",
        TILE + ", {VECTOR}",
        tiles(LONG, SEED, SMALL),
        "conflict_free, the thread tile in quadrants and lanes in Z order",
        "gemm seed: z-order thread map",
    ),
    _rung(
        "double_buffered",
        TILE + ", {VECTOR}",
        tiles(LONG, SEED, SMALL, WIDE),
        "z_order, slices and fragments fetched a step ahead, one barrier a slice",
        "gemm seed: double buffer",
    ),
    _rung(
        "rasterized",
        TILE + ", {VECTOR}",
        each(tiles(LONG, SEED, SMALL, WIDE), GROUP=(1, 4, 16, 0)),
        "double_buffered, tiles taken along N, along M or in bands of GROUP rows",
        "gemm seed: block rasterisation",
        order=configs.squarest_wave,
        launch=_in_order,
    ),
    _rung(
        "split_k",
        (f"gemm::split_k<{TILE}, {{VECTOR}}>", "gemm::add_splits<256>"),
        each(tiles(SEED, SMALL, GROUP=1), SPLITS=(2, 4, 8, 16)),
        "rasterized, K in parts for more blocks, their sums added in the order of K",
        "gemm seed: split-K, named as future work",
        order=configs.enough_splits,
        launch=_in_splits,
    ),
    _rung(
        "stream_k",
        (f"gemm::stream_k<{TILE}, {{VECTOR}}>", f"gemm::add_runs<{TILE}>"),
        tiles(WIDE, SEED, SMALL, GROUP=4),
        "rasterized, the GPU's blocks share the last waves evenly, to the slice",
        "gemm seed: tail effect, named as future work",
        order=configs.a_block_per_slot,
        launch=_in_runs,
    ),
    _rung(
        "async_copy",
        TILE + ", {STAGES}, {VECTOR}",
        tiles(WIDE, STAGES=4, GROUP=4) + tiles(WIDE, LONG, SEED, SMALL, STAGES=3, GROUP=4),
        "rasterized, slices copied past the registers by cp.async, in 3 or 4 stages",
        "gemm seed: double buffer, by cp.async",
        order=configs.fewest_rounds,
        launch=_in_order,
        refuses=_needs_cp_async,
    ),
)


LIBRARY.serve(GEMM, prefer=prefer)
