"""conv2d_weight, depthwise: the configs and launches of depthwise.cuh."""

from tritonkernels.design import Design
from tritonkernels.operations.conv2d_weight.patches import (
    count_tiles,
    patches_per_split,
    refuses,
    splits_of,
    tile_of_taps,
    work_of,
)

from ..conv2d.parts.operands import TYPES
from ..conv2d.parts.runs import are_channels_inside, are_pieces
from ..conv2d.parts.splits import ADD, added, launches_of_splits
from ..launch import Source, config_of
from .parts.operands import arguments

THREADS, DOWN, QUAD = 128, 7, 4
PER_SM, REGISTERS = 3, 168  # blocks, and what a thread may then have; of doubles 2
MOST_SUMS = 50  # of a thread, with which ptxas keeps its patch in registers
_KERNEL = "conv2d_weight::depthwise<{T}, {R}, {S}, {STEP_H}, {STEP_W}, {ACROSS}, {LANES}, {WIDTH}, {SHIFT}>"


def configs(problem, target):
    """ACROSS: columns of a patch, WIDTH: channels that a thread loads at once, LANES: threads along channels, 1 where these are
    not side by side."""
    r, s = tile_of_taps(problem)
    inside = are_channels_inside(problem) and problem.k > 1
    channels = 128 // max(4, problem.dtype.itemsize)
    widths = [width for width in (4, 2, 1) if width == 1 or (inside and r * s * width <= MOST_SUMS)]
    for across in (QUAD, DOWN):
        for width in widths:
            lanes = channels // width if inside else 1
            at_once = THREADS // lanes
            for splits in splits_of(problem, target, lanes * width, (DOWN, across), at_once, PER_SM):
                yield config_of(ACROSS=across, LANES=lanes, WIDTH=width, SPLITS=splits)


def shift(problem, across, *images):
    """How far inside of an aligned quad a patch's inputs begin, or -1 where rows are not of such quads."""
    tiled = tile_of_taps(problem)[1] < problem.s
    whole = problem.w % QUAD == problem.q % QUAD == 0 and all(are_pieces(t.transpose(1, 3), QUAD) for t in images)
    return -problem.padding[1] % QUAD if whole and across == QUAD and not tiled else -1


def launches(problem, config, input, grad_output, out):
    across, lanes, width, splits = (config[name] for name in ("ACROSS", "LANES", "WIDTH", "SPLITS"))
    if problem.k % width or problem.k != problem.c or not all(are_pieces(t, width) for t in (input, grad_output)):
        width = 1  # lanes stay, so blocks have fewer channels
    (r, s), (step_h, step_w) = tile_of_taps(problem), problem.stride
    sizes = {"R": r, "S": s, "STEP_H": step_h, "STEP_W": step_w, "ACROSS": across, "LANES": lanes, "WIDTH": width}
    quads = shift(problem, across, input, grad_output) if lanes == 1 else -1
    kernels = _KERNEL.format(T=TYPES[problem.dtype], SHIFT=quads, **sizes), ADD.format(T=TYPES[problem.dtype])
    tensors, structs = arguments(problem, input, grad_output, out)
    yield from launches_of_splits(
        Source("conv2d_weight/depthwise.cuh", kernels),
        kernels,
        (count_tiles(problem, lanes * width), splits),
        THREADS,
        tensors,
        (*structs, patches_per_split(problem, (DOWN, across), THREADS // lanes, splits)),
        out.permute(2, 3, 0, 1),  # in the order of the sums
    )


def work(problem, config, target):
    across, lanes, width, splits = (config[name] for name in ("ACROSS", "LANES", "WIDTH", "SPLITS"))
    given = lanes * width, (DOWN, across), THREADS // lanes, splits, THREADS, REGISTERS
    return work_of(problem, *given), *added(problem, splits)


DESIGN = Design(refuses=refuses, configs=configs, launches=launches, work=work)
