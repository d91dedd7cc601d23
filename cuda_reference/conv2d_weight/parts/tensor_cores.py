"""The configs, launches and work of tensor_cores.cuh: implicit_gemm where the precision is one of the tensor cores'."""

from tritonkernels.operations.conv2d.chunks import padded
from tritonkernels.operations.conv2d.work import of_product
from tritonkernels.operations.conv2d_weight.space import in_waves

from ...conv2d.parts.operands import TYPES
from ...conv2d.parts.splits import ADD, added, launches_of_splits
from ...conv2d.parts.taps import are_in_chunks
from ...launch import Source, ceil_div, configs_of
from .channels_last import copied, in_chunks
from .operands import arguments, moves

# BL is the positions of a slice, in bytes of an element's: 64 of 16 bits, 32 of tf32. WM is 16 for WGMMA, as in conv2d.
_NAMES = "MATH BM BN SLICE WM WN STAGES"
_WGMMA = tuple(
    ("WGMMA", bm, bn, 128, 16, bn, stages)
    for bm, bn, stages in ((128, 256, 4), (128, 128, 6), (128, 128, 3), (128, 64, 4), (64, 128, 4), (64, 64, 4))
)
_MMA = tuple(("MMA", *sizes) for sizes in ((128, 128, 128, 64, 32, 3), (128, 64, 128, 64, 32, 3), (64, 64, 128, 32, 32, 4)))
PLACES = 3 * 1024  # bytes of shared memory, of two slices' positions


def tiles(problem, target):
    """Configs that the GPU has instructions and shared memory for: wgmma reads tf32 along the reduction only."""
    if problem.precision not in ("fp16", "bf16", "tf32") or target.lacks("cp.async", 80):
        return []
    by_wgmma = target.arch in (0, 90) and problem.precision != "tf32"
    found = configs_of(_NAMES, *(_WGMMA + _MMA[-1:] if by_wgmma else _MMA))
    return [tile for tile in found if not target.is_gpu or shared_bytes(tile) + PLACES <= target.shared_per_block]


def shared_bytes(tile):
    """Per block: STAGES slices of both operands."""
    return tile["STAGES"] * tile["SLICE"] * (tile["BM"] + tile["BN"])


def threads_of(tile):
    """Per block."""
    return tile["BM"] // tile["WM"] * (tile["BN"] // tile["WN"]) * 32


def _columns(problem):
    """Columns of a group, with the padding of channels."""
    return problem.r * problem.s * padded(problem.c // problem.groups, problem.dtype.itemsize)


def _count_tiles(problem, tile):
    return problem.groups * ceil_div(problem.rows, tile["BM"]) * ceil_div(_columns(problem), tile["BN"])


def configs(problem, target):
    """Each tile with as many splits as are one, two and four waves of blocks; in the emulation with few."""
    for tile in tiles(problem, target):
        step = tile["SLICE"] // problem.dtype.itemsize
        for splits in in_waves(problem, target, _count_tiles(problem, tile), step) if target.is_gpu else (1, 3):
            yield tile | {"SPLITS": splits}


def launches(problem, config, input, grad_output, out):
    operands = (input, are_in_chunks), (grad_output, are_in_chunks)
    (input, grad_output), copies = in_chunks(*operands, groups=problem.groups)
    yield from copies
    splits, depth = config["SPLITS"], config["SLICE"] // problem.dtype.itemsize
    sizes = config["MATH"] == "WGMMA", config["BM"], config["BN"], depth, config["WM"], config["WN"], config["STAGES"]
    numbers = ", ".join(str(size).lower() for size in sizes)
    kernels = f"conv2d_weight::tensor_cores<{TYPES[problem.dtype]}, {numbers}>", ADD.format(T=TYPES[problem.dtype])
    tensors, structs = arguments(problem, input, grad_output, out)
    yield from launches_of_splits(
        Source("conv2d_weight/parts/tensor_cores.cuh", kernels),
        kernels,
        (_count_tiles(problem, config), splits),
        threads_of(config),
        tensors,
        (*structs, moves(problem, input, grad_output, depth), ceil_div(ceil_div(problem.terms, splits), depth) * depth),
        out.permute(0, 2, 3, 1),  # in the order of the sums
        shared_bytes(config),
    )


def work(problem, config, target):
    bm, bn, depth = config["BM"], config["BN"], config["SLICE"] // problem.dtype.itemsize
    slices, splits, a_slice = ceil_div(problem.terms, depth), config["SPLITS"], config["SLICE"] * (bm + bn)
    given = (bm, bn, depth), slices, splits, a_slice, problem.precision, threads_of(config), config["STAGES"]
    of_input, of_grad = (problem.n, problem.c, problem.h * problem.w), (problem.n, problem.k, problem.p * problem.q)
    return (
        *copied(problem, of_input, of_grad, groups=problem.groups),
        of_product(problem, problem.rows, _columns(problem), *given, adds=False),
        *added(problem, splits),
    )
