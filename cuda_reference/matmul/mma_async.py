"""mma_async: its kernel's instantiations, their config space, and which of them a problem gets."""

import itertools

from tritonkernels.design import Design

from ..launch import CudaLaunch, Source, ceil_div
from .wmma import SUMS, TYPES, arguments

ELEMENTS = {"fp16": "__half", "bf16": "__nv_bfloat16", "tf32": "float", "int8": "signed char", "uint8": "unsigned char"}
ACTIVATIONS = {None: "NONE", "relu": "RELU", "gelu": "GELU", "silu": "SILU"}

# Bytes of k in a slice instead of BK: the kernel sees operands as bytes
_NAMES = ("BM", "BN", "SLICE", "WM", "WN", "STAGES", "GROUP")
_SPACE = [
    dict(zip(_NAMES, sizes))
    for sizes in (
        (128, 256, 128, 64, 64, 3, 8),
        (256, 128, 128, 64, 64, 3, 4),
        (128, 128, 128, 64, 64, 3, 8),
        (128, 256, 64, 64, 64, 4, 8),
        (128, 128, 64, 64, 64, 4, 8),
        (64, 64, 128, 32, 32, 4, 8),
        (64, 64, 64, 32, 32, 4, 8),
    )
]
OPERAND_FMAS = 64  # multiply-adds in the time that an SM fetches a 16-bit operand from L2: 1280 and 20 a clock on an H200


def shared_bytes(config):
    """Of a block: STAGES slices of both operands."""
    return config["STAGES"] * config["SLICE"] * (config["BM"] + config["BN"])


def configs(problem, target):
    """First the tile that is done soonest: rounds of a tile per SM, times its multiply-adds and the operands it fetches."""

    def time(config):
        tiles = ceil_div(problem.m, config["BM"]) * ceil_div(problem.n, config["BN"]) * problem.batch
        fmas = config["BM"] * config["BN"] + OPERAND_FMAS * (config["BM"] + config["BN"])
        return ceil_div(tiles, max(target.sms, 1)) * fmas

    fitting = [config for config in _SPACE if not target.is_gpu or shared_bytes(config) <= target.shared_per_block]
    return sorted(fitting, key=time)


def _refuses(problem, target):
    if problem.precision not in ELEMENTS:
        return f"it has no {problem.precision}"
    if target.is_gpu and target.arch < 80:
        return f"cp.async and this mma.sync need sm_80, {target.name} is sm_{target.arch}"
    return None


def operand(matrix, span_dim):
    """(K_MAJOR, VECTOR) of (batch, M, K) or (batch, K, N), whose dimension `span_dim` is M or N: how its slices are copied."""
    k_dim = 3 - span_dim
    span, span_stride, k_stride = matrix.shape[span_dim], matrix.stride(span_dim), matrix.stride(k_dim)
    chunk = 16 // matrix.element_size()
    k_major = k_stride <= span_stride or matrix.element_size() != 2
    inner, pitch = (k_stride, span_stride) if k_major else (span_stride, k_stride)
    aligned = matrix.data_ptr() % 16 == 0 and pitch % chunk == 0 and matrix.stride(0) % chunk == 0
    return k_major, inner == 1 and aligned and (k_major or pitch >= span)


def _launches(problem, config, a, b, c, bias, out):
    depth = config["SLICE"] // a.element_size()
    numbers = (config["BM"], config["BN"], depth, *(config[name] for name in ("WM", "WN", "STAGES")))
    flags = (str(flag).lower() for flag in itertools.chain(operand(a, 1), operand(b, 2)))
    types = ELEMENTS[problem.precision], TYPES[problem.out_dtype], SUMS[problem.accumulate]
    activation = f"matmul::{ACTIVATIONS[problem.activation]}"
    kernel = f"matmul::mma_async<{', '.join(map(str, (*types, *numbers, *flags, activation)))}>"
    tiles = ceil_div(problem.m, config["BM"]) * ceil_div(problem.n, config["BN"])
    threads = config["BM"] // config["WM"] * (config["BN"] // config["WN"]) * 32
    *operands, _, strides = arguments(problem, a, b, c, bias, out)
    yield CudaLaunch(
        Source("matmul/mma_async.cuh", (kernel,)),
        kernel,
        (a.shape[0] * tiles,),
        (threads, 1, 1),
        (*operands, strides, config["GROUP"]),
        shared_bytes(config),
    )


DESIGN = Design(
    name="mma_async",
    summary="mma.sync from swizzled shared memory by ldmatrix, slices copied by cp.async in 3 or 4 stages",
    mirrors="tensor_core",
    refuses=_refuses,
    configs=configs,
    launches=_launches,
)
