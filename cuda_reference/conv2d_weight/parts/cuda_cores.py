"""The configs, launches and work of cuda_cores.cuh: implicit_gemm in fp32, in IEEE arithmetic."""

import torch

from tritonkernels.analysis.occupancy import occupancy
from tritonkernels.operations.conv2d.chunks import padded
from tritonkernels.operations.conv2d_weight.pieces import cut
from tritonkernels.operations.conv2d_weight.work import of_pieces
from tritonkernels.operations.gemm.split_counts import one_by_one

from ...conv2d.parts.taps import are_in_chunks
from ...launch import CudaLaunch, Source, ceil_div, configs_of
from .channels_last import copied, in_chunks
from .operands import arguments, moves
from .pieces import workspace

SPACE = configs_of(
    "BM BN BL TM TN STAGES",
    (128, 128, 32, 8, 8, 2),
    (64, 128, 32, 8, 8, 2),
    (128, 64, 32, 8, 8, 2),
    (64, 64, 32, 8, 8, 2),
    (128, 256, 32, 8, 16, 2),
)
LEAST = 2  # slices of a piece (pieces.py): 128 x 128 x 32 products take 4 us, as long as a part of the sums
PLACES = 2 * 24  # bytes of shared memory for a position, of two slices' places


def _kernel(config):
    return "conv2d_weight::cuda_cores<{BM}, {BN}, {BL}, {TM}, {TN}, {STAGES}>".format(**config)


SOURCE = Source("conv2d_weight/parts/cuda_cores.cuh", tuple(map(_kernel, SPACE)))


def threads_of(config):
    """Per block."""
    return config["BM"] // config["TM"] * (config["BN"] // config["TN"])


def configs(problem, target):
    """Each tile on as many blocks as the GPU holds, and on half of them, which have half as many sums to add."""
    if problem.dtype != torch.float32 or problem.precision != "ieee" or target.lacks("cp.async", 80):
        return
    for tile in SPACE:
        for blocks in (_held(tile, target), _held(tile, target) // 2) if target.is_gpu else (5, 2, 20):
            yield tile | {"BLOCKS": blocks}


def _held(tile, target):
    """Blocks that the GPU holds."""
    most = 128 if tile["TM"] * tile["TN"] <= 64 else 255  # registers of a thread: gemm::Shape::blocks_per_sm
    return max(1, occupancy(target, threads_of(tile), most, _shared_bytes(tile) + PLACES * tile["BL"]).blocks) * target.sms


def cut_of(problem, config):
    columns = problem.r * problem.s * padded(problem.c // problem.groups, problem.dtype.itemsize)
    tiles = problem.groups * ceil_div(problem.rows, config["BM"]) * ceil_div(columns, config["BN"])
    return cut(tiles, max(1, ceil_div(problem.terms, config["BL"])), config["BLOCKS"], LEAST)


def launches(problem, config, input, grad_output, out):
    operands = (input, are_in_chunks), (grad_output, are_in_chunks)
    (input, grad_output), copies = in_chunks(*operands, groups=problem.groups)
    yield from copies
    share = cut_of(problem, config)
    tensors, structs = arguments(problem, input, grad_output, out)
    sums = workspace(share, config["BM"] * config["BN"], 1, out)
    given = *tensors, *sums, *structs, moves(problem, input, grad_output, config["BL"]), share[:-1]
    threads, kernel = (threads_of(config), 1, 1), _kernel(config)
    yield CudaLaunch(SOURCE, kernel, (share.blocks,), threads, given, _shared_bytes(config), (kernel,))


def _shared_bytes(config):
    """Per block: STAGES slices of both operands."""
    return 4 * config["STAGES"] * config["BL"] * (config["BM"] + config["BN"])


def work(problem, config, target):
    share, tile, threads = cut_of(problem, config), (config["BM"], config["BN"], config["BL"]), threads_of(config)
    registers = config["TM"] * config["TN"] + 60
    main = of_pieces(problem, share, tile, threads, "ieee", config["STAGES"], registers, one_by_one(share.parts))
    of_input, of_grad = (problem.n, problem.c, problem.h * problem.w), (problem.n, problem.k, problem.p * problem.q)
    return *copied(problem, of_input, of_grad, groups=problem.groups), main
