"""mma_async: its kernel's instantiations, their config space, and which of them a problem gets."""

import itertools

import torch

from tritonkernels.design import Design

from ..launch import CudaLaunch, Source, ceil_div, holds
from .wmma import SUMS, TYPES, arguments

ELEMENTS = {"fp16": "__half", "bf16": "__nv_bfloat16", "tf32": "float", "int8": "signed char", "uint8": "unsigned char"}

# SLICE is BK in bytes: to copies and ldmatrix all elements are bytes, and shared memory is what limits it
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
_ALIGN = (*(f"matmul::align<uint{bits}_t>" for bits in (8, 16, 32)), "matmul::align<uint32_t, true>")
OPERAND_FMAS = 64  # multiply-adds in the time that an SM fetches a 16-bit operand from L2: 1280 and 20 a clock on an H200


def shared_bytes(config):
    """Of a block: STAGES slices of both operands."""
    return config["STAGES"] * config["SLICE"] * (config["BM"] + config["BN"])


def soonest(configs, problem, target, operand_fmas):
    """First the tile that is done soonest: rounds of a tile per SM, times its multiply-adds and the operands it fetches."""

    def time(config):
        tiles = ceil_div(problem.m, config["BM"]) * ceil_div(problem.n, config["BN"]) * problem.batch
        fmas = config["BM"] * config["BN"] + operand_fmas * (config["BM"] + config["BN"])
        return ceil_div(tiles, max(target.sms, 1)) * fmas

    return sorted(configs, key=time)


def configs(problem, target):
    """First the tile that is done soonest; the smallest where it is emulated, so that few are built."""
    if not target.is_gpu:
        return _SPACE[::-1]
    fitting = [config for config in _SPACE if shared_bytes(config) <= target.shared_per_block]
    return soonest(fitting, problem, target, OPERAND_FMAS)


def _refuses(problem, target):
    if problem.precision not in ELEMENTS:
        return f"it has no {problem.precision}"
    return target.lacks("cp.async", 80)


def k_major(matrix, span_dim, transposable=None):
    """Whether rows of 16-byte chunks lie along K (True) or along M or N (False) in a (batch, M, K) or (batch, K, N), whose
    dimension `span_dim` is M or N; None where neither does, or the latter is not `transposable` (by ldmatrix, 16 bits are)."""
    chunk = 16 // matrix.element_size()
    span_stride, k_stride = matrix.stride(span_dim), matrix.stride(3 - span_dim)
    if not matrix.numel():
        return True  # nothing of it is read
    if matrix.data_ptr() % 16 or matrix.stride(0) % chunk:
        return None
    if k_stride == 1 and span_stride % chunk == 0:
        return True
    transposable = matrix.element_size() == 2 if transposable is None else transposable
    apart = k_stride >= matrix.shape[span_dim]
    return False if transposable and apart and span_stride == 1 and k_stride % chunk == 0 else None


def without_idle_strides(matrix, span_dim):
    """Of what is empty, or one row, no next row is read: any stride will do, and 0 is aligned."""
    idle = [not matrix.numel() or (matrix.shape[dim] == 1 and dim in (0, span_dim)) for dim in range(3)]
    return matrix.as_strided(matrix.shape, [0 if idle[dim] else matrix.stride(dim) for dim in range(3)])


def in_whole_chunks(matrix, span_dim):
    """k_major of what cp.async reads: the chunk in which the last line ends must be the matrix' own."""
    by_k = k_major(matrix, span_dim)
    along = 3 - span_dim if by_k else span_dim
    chunk = 16 // matrix.element_size()
    lines = sum((size - 1) * stride for dim, (size, stride) in enumerate(zip(matrix.shape, matrix.stride())) if dim != along)
    fits = not matrix.numel() or holds(matrix, lines + ceil_div(matrix.shape[along], chunk) * chunk)
    return by_k if fits else None


def aligned(matrix, span_dim, layout=in_whole_chunks):
    """(the matrix, or where its `layout` is None room for it with rows along K of whole chunks; the launches that copy it)."""
    matrix = without_idle_strides(matrix, span_dim)
    return (matrix, ()) if layout(matrix, span_dim) is not None else along_k(matrix, span_dim)


def along_k(matrix, span_dim, to_tf32=False):
    """(room for the matrix with rows along K of whole chunks, the launches that copy it there)."""
    batch = matrix.shape[0] if matrix.stride(0) else 1
    span, k = matrix.shape[span_dim], matrix.shape[3 - span_dim]
    chunk = 16 // matrix.element_size()
    room = torch.empty(batch, span, ceil_div(k, chunk) * chunk, dtype=matrix.dtype, device=matrix.device)
    kernel = f"matmul::align<uint{8 * matrix.element_size()}_t{', true' * to_tf32}>"
    strides = matrix.stride(0), matrix.stride(span_dim), matrix.stride(3 - span_dim)
    blocks = ceil_div(span, 64) * ceil_div(k, 64) * batch
    launch = CudaLaunch(Source("matmul/align.cuh", _ALIGN), kernel, (blocks,), (256, 1, 1), (matrix, room, span, k, strides))
    rows = room[:, :, :k].expand(matrix.shape[0], span, k)
    return rows if span_dim == 1 else rows.transpose(1, 2), (launch,) if blocks else ()


def _launches(problem, config, a, b, c, bias, out):
    a, copies_of_a = aligned(a, 1)
    b, copies_of_b = aligned(b, 2)
    yield from (*copies_of_a, *copies_of_b)
    depth = config["SLICE"] // a.element_size()
    types = ELEMENTS[problem.precision], TYPES[problem.out_dtype], SUMS[problem.accumulate]
    numbers = (config["BM"], config["BN"], depth, *(config[name] for name in ("WM", "WN", "STAGES")))
    present = tuple(str(k_major(*operand)).lower() for operand in ((a, 1), (b, 2)))
    layouts = list(itertools.product(("true", "false"), repeat=2)) if a.element_size() == 2 else [present]
    kernels = {layout: f"matmul::mma_async<{', '.join(map(str, (*types, *numbers, *layout)))}>" for layout in layouts}
    tiles = ceil_div(problem.m, config["BM"]) * ceil_div(problem.n, config["BN"])
    threads = config["BM"] // config["WM"] * (config["BN"] // config["WN"]) * 32
    yield CudaLaunch(
        Source("matmul/mma_async.cuh", tuple(kernels.values())),  # built together: that takes little longer than one
        kernels[present],
        (a.shape[0] * tiles,),
        (threads, 1, 1),
        (*arguments(problem, a, b, c, bias, out), config["GROUP"]),
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
