"""Matrix product, persistent: the configs, tensor maps and launches of persistent.cuh."""

import dataclasses
import functools

import torch

from tritonkernels.design import Design
from tritonkernels.operations.gemm.split_counts import splits_that_fill
from tritonkernels.operations.matmul.work import of_splits
from tritonkernels.problem import rows_are_whole_chunks

from ..common.align import aligned, k_major, without_idle_strides
from ..launch import Kernel, TensorMap, ceil_div, resident
from .parts.add_parts import addition, work_of_addition
from .parts.arguments import ELEMENTS, arguments, gated, layouts, mma_types, scaled
from .parts.space import tiles
from .parts.turned import turned, turned_operands, turns_around
from .parts.wgmma_tiles import (
    MOST_BYTES,
    SLICE,
    candidates,
    legal,
    lines_of_slices,
    promotes,
    shared_bytes,
    sharers_of_slices,
    taken,
)
from .pipelined import packed

SIZES = "{ELEMENT}, {RESULT}, {SUMS}, {BM}, {BN}, {CONSUMERS}, {STAGES}"
# PROMOTES: slices have sums of their own. IN_BOXES: TMA writes the result
_CASES = "{A_BY_K}, {B_BY_K}, {PROMOTES}, matmul::{SCALES}, {SCALED}, {IN_BOXES}{GATED}"
_TEMPLATE = f"matmul::persistent<{SIZES}, {{CLUSTER}}, {{SHARE_A}}, {{SWAPPED}}, {{IN_TURN}}, {_CASES}>"
_SCALES = {None: "NO_SCALES", "matrix": "MATRIX_SCALES", "rows": "ROW_SCALES"}


def configs(problem, target):
    """Tiles in turn where a block has more than one. In the emulation so few blocks that each walks several tiles."""
    space = []  # (config, blocks of the GPU, clusters of tiles)
    for config in candidates(problem, target):
        if legal(config, problem, target):
            space.append((config, _blocks(problem, config, target), problem.batch * tiles_of_clusters(problem, config)))
    for config, blocks, clusters in space:
        if "IN_TURN" not in config or clusters * config["CLUSTER"] > blocks or not target.is_gpu:
            yield config | {"BLOCKS": blocks, "SPLIT_K": 1}
    if problem.accumulate == "fp32" and not problem.scales and not problem.is_gated:
        for config, blocks, clusters in space:
            if "IN_TURN" not in config:
                for splits in splits_that_fill(clusters, problem.k, blocks // config.get("CLUSTER", 1)):
                    yield config | {"BLOCKS": blocks, "SPLIT_K": splits}


def _blocks(problem, config, target):
    """The blocks that the SMs hold, in whole clusters: the kernel's blocks_of_an_sm."""
    alone = promotes(problem) or problem.beta or problem.bias or problem.activation
    consumers, _, nbytes = taken(config)
    two = consumers == 1 and not alone and 2 * (nbytes + 1024) <= target.shared_per_sm
    return resident(target, config.get("CLUSTER", 1), 1 + two)


def refuses(problem, target):
    if problem.precision not in (*ELEMENTS, "fp8") or problem.precision == "fp64":
        return f"it has no {problem.precision}"
    if target.is_gpu and target.arch != 90:
        return f"it needs wgmma, which only sm_90 has; {target.name} is {target.isa}"
    return None


def as_tma_reads(matrix, span_dim, transposable=None):
    """k_major of a matrix that TMA can read: its rows must not overlap, so it cannot be expanded. wgmma reads elements of 16
    bits along M or N, too."""
    by_k = k_major(matrix, span_dim, matrix.element_size() == 2 if transposable is None else transposable)
    row, column = (span_dim, 3 - span_dim) if by_k else (3 - span_dim, span_dim)
    sizes, strides = matrix.shape, matrix.stride()
    apart = sizes[row] == 1 or strides[row] >= sizes[column] or not matrix.numel()
    return by_k if apart else None


def operand_map(problem, matrix, span_dim, span, transposable, share=1):
    """(the operand, its TensorMap, whether its slices lie along K, the launches that copy it, if any), for blocks that request
    their parts of slices that they `share`: OperandSlice::copy.

    TMA rounds to tf32: wgmma does not, and would ignore the low bits of what it reads.
    """
    layout = functools.partial(as_tma_reads, transposable=transposable)
    matrix, copies = aligned(matrix, span_dim, layout)
    by_k = layout(matrix, span_dim)
    rows = matrix if by_k == (span_dim == 1) else matrix.transpose(1, 2)
    depth = SLICE // matrix.element_size()  # of a slice; across K the columns of a box
    in_boxes = 2 if span // share > 256 else 1
    lines = span // share // in_boxes if by_k else depth if ceil_div(span, depth) % share == 0 else depth // share
    tensor_map = TensorMap(rows if matrix.stride(0) else rows[:1], (lines, depth), problem.precision == "tf32")
    return matrix, tensor_map, by_k, copies


def takes_one_across_k(problem, config):
    """Whether the kernel takes one operand of tf32 that lies across K: with 64 columns for each consumer (transposed.cuh)."""
    alone = "IN_TURN" in config or problem.is_gated
    return problem.precision == "tf32" and config["BN"] == 64 * config["CONSUMERS"] and not alone


def as_taken(problem, config, *operands):
    """(the problem, the operands a, b, c, bias and out, if given) as the kernel takes them: maybe those of the transposed
    product."""
    if takes_one_across_k(problem, config) and turns_around(problem):
        return turned(problem), *(turned_operands(*operands) if operands else ())
    return problem, *operands


def tiles_of_clusters(problem, config):
    """Tiles of one matrix of the result, as many of them as a cluster has at once."""
    share_a, share_b = sharers_of_slices(config)
    return tiles(problem, config["BM"] * share_b, config["BN"] * share_a)


def prepared(problem, config, a, b, c, bias, out, scale_a=None, scale_b=None, b_across_k=False):
    """(launches that copy operands, the kernel's arguments, the parameters of its template) of tiles of the config's sizes.

    out         may have the batch several times, once for each split of K
    b_across_k  the kernel takes a B across K of any type
    """
    share_a, share_b = sharers_of_slices(config)
    a, b, itemsize = without_idle_strides(a, 1), without_idle_strides(b, 2), a.element_size()
    # The tile may be chosen for operands along K, as another operation's problem says: its filter is transposed, say. Slices
    # across K are whole boxes, which take more of shared memory.
    along_k = as_tma_reads(a, 1) is not False, as_tma_reads(b, 2) is not False
    across_k = itemsize == 2 and shared_bytes(config, lines=lines_of_slices(config, itemsize, *along_k)) <= MOST_BYTES
    a, a_map, a_by_k, copies_of_a = operand_map(problem, a, 1, config["BM"], across_k, share_a)
    b, b_map, b_by_k, copies_of_b = operand_map(problem, b, 2, config["BN"], across_k or b_across_k, share_b)
    in_boxes = bool(as_tma_reads(out, 1)) and rows_are_whole_chunks(out)
    swapped = config.get("SWAPPED", problem.precision == "tf32" and not b_by_k)
    out_map = TensorMap(out if in_boxes else out[:0], (32 if swapped else 64, SLICE // out.element_size()))
    _, _, *others = arguments(problem, a, b, c, bias, out)
    scale_strides = (
        *((0, 0) if scale_a is None else scale_a.stride()[:2]),
        *((0, 0) if scale_b is None else scale_b.stride()[::2]),
    )
    whole = {
        "CLUSTER": share_a * share_b,
        "SHARE_A": share_a,
        "SWAPPED": swapped,
        "IN_TURN": False,
        **config,
        "A_BY_K": a_by_k,
        "B_BY_K": b_by_k,
        "SCALED": scaled(problem, c, bias),
        "IN_BOXES": in_boxes,
        "GATED": gated(problem),
    }
    whole |= {"PROMOTES": promotes(problem), "SCALES": _SCALES[problem.scales]}
    given = a_map, b_map, out_map, *others, a.shape[0], config["GROUP"] // share_b, scale_a, scale_b, scale_strides
    return copies_of_a + copies_of_b, given, mma_types(problem) | whole


def variants(problem, config):
    """What is built together."""
    fits_a_size = "SWAPPED" in config or config["BM"] % 64 or config["BN"] % 64  # of which there are too many
    return layouts() if problem.dtype.itemsize == 2 and not fits_a_size else [{}]


def _launches(problem, config, a, b, c, bias, out, *scales):
    problem, a, b, c, bias, out = as_taken(problem, config, a, b, c, bias, out)
    across, splits = takes_one_across_k(problem, config), config["SPLIT_K"]
    sums, result = problem, (c, bias, out)
    if splits > 1:
        pitch = ceil_div(problem.n, 4) * 4  # TMA writes whole chunks of 16 bytes
        workspace = torch.empty(splits * out.shape[0], problem.m, pitch, dtype=torch.float32, device=out.device)
        alone = {"alpha": 1.0, "beta": 0.0, "bias": False, "activation": None, "out_dtype": torch.float32}
        sums, result = dataclasses.replace(problem, **alone), (None, None, workspace)
    yield from multiplying(sums, config, a, b, *result, *scales, splits=splits, b_across_k=across)
    if splits > 1:
        yield addition(problem, splits, workspace, arguments(problem, a, b, c, bias, out))


def multiplying(problem, config, a, b, c, bias, out, *scales, splits=1, b_across_k=False, **parameters):
    """The launches of a product: out (splits * batch, M, N in whole boxes) is its result, or the sums of each split of K.
    Parameters of the template may be others than the problem's, for operands that always lie the same way."""
    copies, given, own = prepared(problem, config, a, b, c, bias, out, *scales, b_across_k=b_across_k)
    yield from copies
    clusters = out.shape[0] * tiles_of_clusters(problem, config)
    yield Kernel(_TEMPLATE, [{}] if parameters else variants(problem, config)).launch(
        own | parameters,
        (min(config["BLOCKS"], clusters * config.get("CLUSTER", 1)),),
        (config["CONSUMERS"] + 1) * 128,
        (*_with_addend_in_boxes(given, own), splits),
        block_bytes(problem, config, own),
    )


def _with_addend_in_boxes(given, parameters):
    """The arguments and C's TensorMap. TMA brings C (addend.cuh) where it can, and writes the result: then C is left out."""
    *maps, c, bias, out = given[:6]
    in_boxes = parameters["IN_BOXES"] and not parameters["SWAPPED"] and c is not None and as_tma_reads(c, 1)
    read = out[:0] if not in_boxes else c if c.stride(0) else c[:1]
    return *maps, None if in_boxes else c, bias, out, *given[6:], TensorMap(read, (64, SLICE // out.element_size()))


def block_bytes(problem, config, parameters):
    """Bytes of shared memory for operands that lie as the kernel's parameters say."""
    lines = lines_of_slices(config, problem.dtype.itemsize, parameters["A_BY_K"], parameters["B_BY_K"])
    return shared_bytes(config, lines=lines)


def block_tile(config, itemsize):
    """The block tile of a config in the analysis' terms."""
    return dict(config) | {
        "BK": SLICE // itemsize,
        "threads": (config["CONSUMERS"] + 1) * 128,
        "stages": config["STAGES"],
        "GROUP_M": config["GROUP"],
        "programs": config.get("BLOCKS"),  # None: a block a tile
        "splits": config.get("SPLIT_K", 1),
        "share": sharers_of_slices(config),
        "in_turn": config.get("IN_TURN", False),
        "box": SLICE // itemsize if itemsize == 2 else None,
    }


def packs_for_tma(problem, config):
    return packed(problem, problem.dtype.itemsize == 2)


def packs(problem, config):
    """Whether A and B of a problem as_taken are packed."""
    a, b = packs_for_tma(problem, config)
    taken = problem.aligned and problem.b_layout == "row" and takes_one_across_k(problem, config)
    return a, b and not taken


@functools.cache
def _work(itemsize):
    return of_splits(lambda config: block_tile(config, itemsize), packs, 0, second=work_of_addition)


def work(problem, config, target):
    return _work(problem.dtype.itemsize)(*as_taken(problem, config), config, target)


DESIGN = Design(refuses=refuses, configs=configs, launches=_launches, work=work, gates=True)
