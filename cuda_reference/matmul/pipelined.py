"""Matrix product, pipelined: the configs and launches of pipelined.cuh."""

import functools

from tritonkernels.choice.work import KNOWN_PROBLEMS
from tritonkernels.design import Design
from tritonkernels.operations.matmul.work import of_tiles

from ..common.align import CHUNK, in_pieces, k_major
from ..launch import Kernel, configs_of, in_order
from .parts.arguments import ELEMENTS, arguments, gated, layouts, mma_types, scaled
from .parts.space import tiles

# SLICE is BK in bytes: copies and ldmatrix work on bytes of any type, and shared memory limits the slices
_NAMES = "BM BN SLICE WM WN STAGES GROUP"
_SPACE = configs_of(
    _NAMES,
    (128, 256, 128, 64, 64, 3, 8),
    (256, 128, 128, 64, 64, 3, 4),
    (128, 128, 128, 64, 64, 3, 8),
    (128, 256, 64, 64, 64, 4, 8),
    (128, 128, 64, 64, 64, 4, 8),
    (128, 64, 128, 64, 32, 3, 8),
    (64, 64, 128, 32, 32, 4, 8),
    (64, 64, 64, 32, 32, 4, 8),
)
THIN = configs_of(  # for few rows or columns
    _NAMES,
    (16, 128, 128, 16, 32, 4, 8),
    (16, 64, 128, 16, 32, 8, 8),
    (128, 32, 128, 32, 32, 4, 8),
    (64, 16, 128, 16, 16, 8, 8),
)
# For little K besides: a block waits for its slices once, so an SM needs many of them, each with less of its shared memory
FOR_LITTLE_K = configs_of(
    _NAMES,
    (128, 32, 64, 32, 32, 3, 8),
    (128, 16, 128, 32, 16, 3, 8),
    (64, 16, 64, 32, 16, 3, 8),
    (32, 128, 64, 32, 32, 3, 8),
)
# For rows of 16 bits that TMA does not write besides: each warp writes 64 columns of a row at once, which is one line or two
FOR_ODD_ROWS = configs_of(
    _NAMES,
    (128, 64, 64, 32, 64, 3, 8),
    (128, 64, 128, 32, 64, 3, 8),
    (64, 128, 64, 32, 64, 3, 8),
)
LITTLE, WORD = 256, 4  # bytes of a row's K; of the least that cp.async copies
# A sum has two registers, so warp tiles are smaller. Of 8 of k one of 64 x 32 reads (64 + 32) * 64 bytes, 48 clocks of shared
# memory, for 16384 multiply-adds, 128 clocks of Hopper's tensor cores and 256 of an A100's
FP64 = configs_of(
    _NAMES,
    (128, 128, 128, 64, 32, 4, 8),
    (128, 64, 128, 64, 32, 4, 8),
    (64, 64, 128, 32, 32, 4, 8),
    (64, 32, 128, 32, 16, 4, 8),  # 160 columns are five of these, and three of 64, of which one is half empty
    (32, 64, 128, 16, 32, 4, 8),
)
_TEMPLATE = (
    "matmul::pipelined<{ELEMENT}, {RESULT}, {SUMS}, {BM}, {BN}, {DEPTH}, {WM}, {WN}, {STAGES},"
    " {A_BY_K}, {B_BY_K}, {A_PIECE}, {B_PIECE}, {SCALED}, {BY_ROWS}{GATED}>"
)


def shared_bytes(config):
    """Per block: STAGES slices of both operands."""
    return config["STAGES"] * config["SLICE"] * (config["BM"] + config["BN"])


def candidates(problem, target):
    """Thin tiles are for few rows or columns, and for small products: then each SM has a tile."""
    thin = [c for c in THIN if covers(problem, c) or is_small(problem, c, target)]
    if problem.k * problem.dtype.itemsize <= LITTLE and problem.precision != "fp64":  # of which 64 bytes are one step
        thin += [c for c in FOR_LITTLE_K if covers(problem, c)]
    odd = FOR_ODD_ROWS if problem.out_dtype.itemsize == 2 and problem.row_bytes["out"] % CHUNK else ()
    return *in_order(FP64 if problem.precision == "fp64" else _SPACE, target), *thin, *odd


def legal(config, problem, target, others=0):
    """Whether the slices fit in shared memory with so many other bytes, and sums leave registers for slices on their way."""
    return not target.is_gpu or (shared_bytes(config) + others <= target.shared_per_block and _has_room(problem, config))


def configs(problem, target):
    return [config for config in candidates(problem, target) if legal(config, problem, target)]


def _has_room(problem, config):
    """Slices of lines of 16 bits that begin within words are on their way in registers."""
    lie_along_k = problem.a_layout == "row", problem.b_layout == "col"
    lines = [problem.k if along_k else span for along_k, span in zip(lie_along_k, (problem.m, problem.n))]
    shifted = problem.dtype.itemsize == 2 and not problem.aligned and any(line % 2 for line in lines)
    return not shifted or config["WM"] * config["WN"] < 64 * 64


def covers(problem, config):
    """Whether a tile has all rows and columns, or 64: thin ones are for few."""
    return config["BM"] >= min(64, problem.m) and config["BN"] >= min(64, problem.n)


def is_small(problem, config, target):
    """Whether the tiles are one wave."""
    return problem.batch * tiles(problem, config["BM"], config["BN"]) <= target.sms


def refuses(problem, target):
    if problem.precision not in ELEMENTS:
        return f"it has no {problem.precision}"
    return target.lacks("cp.async", 80)


def _launches(problem, config, a, b, c, bias, out):
    a, b, pieces, copies = in_pieces(a, b)
    yield from copies
    numbers = {**config, **pieces, **ends(problem, c, bias, out), "DEPTH": config["SLICE"] // a.element_size()}
    # the layouts of operands that need not lie along K are built in one module, which takes little longer than one of them
    yield Kernel(_TEMPLATE, layouts() if turns(problem) else [{}]).launch(
        {**mma_types(problem), **numbers},
        (a.shape[0] * tiles(problem, config["BM"], config["BN"]),),
        config["BM"] // config["WM"] * (config["BN"] // config["WN"]) * 32,
        (*arguments(problem, a, b, c, bias, out), config["GROUP"]),
        shared_bytes(config),
    )


def ends(problem, c, bias, out):
    """The parameters of templates that say what follows the products: whether only a scale, and how they are written."""
    by_rows = out.stride(2) == 1 and not k_major(out, 1)
    return {"SCALED": scaled(problem, c, bias), "BY_ROWS": by_rows, "GATED": gated(problem)}


def turns(problem):
    """Whether fragments are read from slices along M or N, too: as k_major's `transposable`."""
    return problem.dtype.itemsize > 1


def packs(problem, config):
    """Operands that are copied first: of single bytes those that do not lie along K, or have lines of no whole words."""
    if turns(problem):
        return False, False
    lie_along_k = problem.a_layout == "row", problem.b_layout == "col"
    return tuple(not along_k or not (problem.aligned or problem.k % WORD == 0) for along_k in lie_along_k)


@functools.lru_cache(KNOWN_PROBLEMS)
def packed(problem, any_layout):
    """Whether A and B are copied for TMA: in any case if they are not aligned."""
    return (
        not problem.aligned or not (any_layout or problem.a_layout == "row"),
        not problem.aligned or not (any_layout or problem.b_layout == "col"),
    )


def block_tile(config, itemsize):
    """The block tile of a config in the analysis' terms."""
    warps = config["BM"] // config["WM"] * (config["BN"] // config["WN"])
    bk = config["SLICE"] // itemsize
    return dict(config) | {"BK": bk, "threads": 32 * warps, "stages": config["STAGES"], "GROUP_M": config["GROUP"]}


@functools.cache
def _work(itemsize):
    return of_tiles(lambda config: block_tile(config, itemsize), packs)


def work(problem, config, target):
    return _work(problem.dtype.itemsize)(problem, config, target)


DESIGN = Design(refuses=refuses, configs=configs, launches=_launches, work=work, gates=True)
