"""conv2d, implicit_gemm: the configs and launches of implicit_gemm.cuh."""

import functools

import torch

from tritonkernels.choice.work import KNOWN_PROBLEMS, kept
from tritonkernels.design import Design
from tritonkernels.operations.conv2d import chunks
from tritonkernels.operations.conv2d.work import gathered, of_product, rewritten
from tritonkernels.workspace import counters, partial_sums

from ..conv2d_weight.parts import channels_last
from ..launch import Kernel, ceil_div, configs_of
from .parts.operands import TYPES, arguments, followed, what_follows
from .parts.taps import THREADS, are_in_chunks, in_chunks, rows_of_filters, table_of_taps

BAND = 8  # rows of tiles in a group of blocks: their inputs are still in L2 for the next output channels
BESIDES = 96  # registers of a thread on CUDA cores that are neither sums nor operands, as nvcc compiles for sm_90
MOST_PIXELS = 2**31 - 2**10  # pixel numbers up to the end of the last tile fit in 32 bits

# SLICE is BK in bytes. WM is 16 for WGMMA: each warp of a warpgroup holds 16 rows of the result
_NAMES = "MATH BM BN SLICE WM WN STAGES"
_WGMMA = tuple(
    ("WGMMA", bm, bn, 128, 16, bn, stages)
    for bm, bn, stages in ((128, 256, 4), (128, 128, 6), (128, 128, 3), (128, 64, 4), (64, 64, 4))
)
_MMA = tuple(("MMA", *sizes) for sizes in ((128, 128, 128, 64, 32, 3), (128, 64, 128, 64, 32, 3), (64, 64, 128, 32, 32, 4)))
_FFMA = tuple(("FFMA", *sizes) for sizes in ((128, 128, 64, 64, 32, 3), (128, 64, 64, 64, 32, 3), (64, 64, 64, 32, 16, 3)))
SPLITS = (1, 2, 3, 4, 6, 8, 12, 16)
KERNEL = Kernel(
    "conv2d::implicit_gemm<{T}, conv2d::Math::{MATH}, {BM}, {BN}, {BK}, {WM}, {WN}, {STAGES}, {CHUNKED}>",
    [{"CHUNKED": True}, {"CHUNKED": False}],
)
FOLLOWED = followed(KERNEL)


def on_tensor_cores(problem):
    """Whether the products are computed on tensor cores, by mma.sync or wgmma."""
    return problem.precision in ("fp16", "bf16", "tf32")


def shared_bytes(config):
    """Per block: STAGES slices of both operands."""
    return config["STAGES"] * config["SLICE"] * (config["BM"] + config["BN"])


def tiles_of(problem, config):
    """Tiles of the result, which is the number of blocks per split."""
    pixels = ceil_div(problem.n * problem.p * problem.q, config["BM"])
    return pixels * ceil_div(problem.k // problem.groups, config["BN"]) * problem.groups


def slices_of(problem, slice_bytes):
    """How many slices the reduction has."""
    return max(1, ceil_div(problem.terms * problem.dtype.itemsize, slice_bytes))


def threads_of(config):
    """Per block."""
    return config["BM"] // config["WM"] * (config["BN"] // config["WN"]) * 32


def _kinds(problem, target):
    kinds = _FFMA
    if problem.dtype == torch.float64:
        kinds = _FFMA[-1:]  # larger tiles would need too many registers
    elif on_tensor_cores(problem):  # tf32 is rounded in registers, which wgmma bypasses
        kinds = _WGMMA + _MMA[-1:] if target.arch in (0, 90) and problem.precision != "tf32" else _MMA
    return kinds


@functools.cache
def _fitting(kinds, most_bytes):
    fitting = [config for config in configs_of(_NAMES, *kinds) if shared_bytes(config) <= most_bytes]
    return [config | {"SPLITS": splits} for config in fitting for splits in SPLITS]


def configs(problem, target):
    """Each tile that fits, with each number of splits; in the emulation the smallest first, in few splits. COPIED: after copies
    of input and filters as channels_last, each group's channels in whole chunks."""
    kinds = _kinds(problem, target)
    if not target.is_gpu:
        own = [config | {"SPLITS": splits} for config in configs_of(_NAMES, *kinds[::-1]) for splits in (1, 3)]
    else:
        own = _fitting(kinds, target.shared_per_block - 1024)
    return [*own, *(config | {"COPIED": True} for config in own)] if _copies_pay(problem) else own


def _copies_pay(problem):
    """Without groups 16 bits and tf32 have a design that copies, warp_specialized."""
    own = problem.precision == "ieee" or (on_tensor_cores(problem) and problem.groups > 1)
    return own and chunks.copies_pay(problem)


def refuses(problem, target):
    if missing := target.lacks("cp.async", 80):
        return missing
    if problem.n * problem.p * problem.q > MOST_PIXELS:
        return f"it numbers output pixels in 32 bits, {problem.n * problem.p * problem.q} are too many"
    return None


def splits_of(config, slices):
    """The number of splits: the config's, or fewer, so that none is empty."""
    own = -(-slices // min(config["SPLITS"], slices))
    return -(-slices // own)


def launches(problem, config, input, weight, bias, out, residual=None):
    if "COPIED" in config:
        (input,), copies = channels_last.in_chunks((input, are_in_chunks), groups=problem.groups)
        yield from copies
        (weight,), copies = channels_last.in_chunks((weight, are_in_chunks))
        yield from copies
        problem = chunks.of_copies(problem)
    chunked = in_chunks(problem, input)
    filters, pitch, copies = rows_of_filters(problem, weight, chunked)
    yield from copies
    slices, depth = slices_of(problem, config["SLICE"]), config["SLICE"] // problem.dtype.itemsize
    taps = None
    if not chunked:
        taps, launch = table_of_taps(problem, input, slices * depth)
        yield launch
    splits = splits_of(config, slices)
    tiles = tiles_of(problem, config)
    partial = arrivals = None
    if splits > 1:
        partial = partial_sums(splits, tiles * config["BM"] * config["BN"], out)
        arrivals = counters(tiles, out)
    *_, geometry, strides = arguments(problem, input, weight, bias, out)
    tensors = input, filters, bias, out, taps, partial, arrivals
    yield (FOLLOWED if problem.after else KERNEL).launch(
        {"T": TYPES[problem.dtype], "BK": depth, "CHUNKED": chunked, **config},
        (tiles, splits),
        threads_of(config),
        (*tensors, geometry, strides, pitch, ceil_div(slices, splits) * depth, BAND, *what_follows(problem, residual)),
        shared_bytes(config),
    )


@kept
def _tile_of(config):
    """What its Work depends on but for the splits."""
    return config["BM"], config["BN"], config["SLICE"], threads_of(config), config["STAGES"], "COPIED" in config


def work(problem, config, target):
    slices, works, known = _of_tile(problem, *_tile_of(config))
    splits = splits_of(config, slices)
    if splits not in known:
        known[splits] = works(splits)
    return known[splits]


@functools.lru_cache(KNOWN_PROBLEMS)
def _of_tile(problem, bm, bn, slice_bytes, threads, stages, copied):
    """(slices, splits -> the Works, and those that are known by now: the configs' numbers of splits come down to a few).

    The filters are packed where their rows are no whole chunks in the order of the reduction, and a table of taps is written
    where pixels' channels are none.
    """
    found = []
    if copied:
        found += channels_last.copied(problem, (problem.n, problem.c, problem.h * problem.w), groups=problem.groups)
        found += channels_last.copied(problem, (problem.k, problem.c // problem.groups, problem.r * problem.s))
        problem = chunks.of_copies(problem)
    itemsize, terms, channels = problem.dtype.itemsize, problem.terms, problem.c // problem.groups
    chunk, slices, depth = 16 // itemsize, slices_of(problem, slice_bytes), slice_bytes // itemsize
    chunked = problem.channels_last and channels > 0 and channels % chunk == 0
    if terms % chunk or (problem.channels_last and not chunked and channels > 1 and problem.r * problem.s > 1):
        row = ceil_div(terms, chunk) * chunk
        found.append(rewritten(problem.k * ceil_div(row, THREADS), THREADS, 2 * problem.k * terms * itemsize))
    if not chunked:
        found.append(rewritten(ceil_div(slices * depth, THREADS), THREADS, slices * depth * 16))
    sizes, tile = (problem.n * problem.p * problem.q, problem.k // problem.groups), (bm, bn, depth)
    a_slice = gathered(problem, tile, 0 if chunked else bm)

    def works(splits):
        given = slices, splits, a_slice, problem.precision, threads, stages
        return *found, of_product(problem, *sizes, tile, *given, besides=BESIDES if problem.precision == "ieee" else 40)

    return slices, works, {}


DESIGN = Design(refuses=refuses, configs=configs, launches=launches, work=work)
