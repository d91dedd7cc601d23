"""A copy of a matrix for bulk copies: contiguous columns, aligned to lines of L2, padded with zeros.

cp.async moves 16 bytes along a line, TMA needs lines that begin at multiples of 16 bytes, and WGMMA reads 8-bit and tf32
operands along K only. Lines that begin within sectors of 32 bytes take L2 almost twice as long to send. Packing reads and
writes each element once. For 4-byte elements and a product over N columns of B at 50 TFLOP/s it costs 50 / N of the time on an
H200 (4.3 TB/s): 5 % at N = 1024, under 1 % at 8192. The workspace is as large as the matrix. GotoBLAS packs for the same reason
(Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008).
"""

import torch

from ..choice.work import LINE
from ..integers import ceil_div
from ..launch import TritonLaunch
from ..problem import needs_wide_offsets
from .dot import round_to_tf32
from .overlap import wait_for_earlier_kernels
from .structs import Matrices
from .tiles import span
from .triton import tl, triton

CONFIG = triton.Config({"BLOCK_M": 64, "BLOCK_N": 64}, num_warps=8, num_stages=1)
MULTIPLE = 16  # of elements, since Triton specialises sizes and strides on divisibility by 16; and of LINE, if they fill one


@triton.jit
def _pack_kernel(
    matrices: Matrices,  # (BATCH, M, N)
    out,  # (BATCH, N, padded_m), contiguous
    M, N, padded_m, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, TO_TF32: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    wait_for_earlier_kernels()
    tiles_n = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(padded_m, BLOCK_M) * tiles_n
    tile = tl.program_id(0) % tiles
    batch = tl.program_id(0) // tiles
    if WIDE:
        batch = batch.to(tl.int64)
    rows = span(tile // tiles_n * BLOCK_M, BLOCK_M, WIDE)
    cols = span(tile % tiles_n * BLOCK_N, BLOCK_N, WIDE)
    inside = (rows < M)[:, None] & (cols < N)[None, :]
    offsets = rows[:, None] * matrices.row + cols[None, :] * matrices.col
    values = tl.load(matrices.ptr + batch * matrices.batch + offsets, mask=inside, other=0.0)
    if TO_TF32:
        values = round_to_tf32(values)
    inside = (cols < N)[:, None] & (rows < padded_m)[None, :]
    tl.store(out + (batch * N + cols[:, None]) * padded_m + rows[None, :], values.T, mask=inside)


def packed(matrix, to_tf32=False):
    """(the launches that fill it, the packed matrix): the (..., M, N) matrix, padded with zeros to a multiple of 16 rows, or to
    columns of whole lines of L2.

    An empty matrix needs no launch. There may be one batch dimension. `to_tf32` rounds fp32 elements to tf32.
    """
    matrices = matrix if matrix.ndim == 3 else matrix[None]
    batch, m, n = matrices.shape
    multiple = MULTIPLE if m * matrix.element_size() < LINE else max(MULTIPLE, LINE // matrix.element_size())
    padded_m = ceil_div(m, multiple) * multiple
    out = torch.empty((batch, n, padded_m), dtype=matrix.dtype, device=matrix.device)
    blocks = batch * ceil_div(padded_m, CONFIG.kwargs["BLOCK_M"]) * ceil_div(n, CONFIG.kwargs["BLOCK_N"])
    constants = {"TO_TF32": to_tf32, "WIDE": needs_wide_offsets(matrices, out)}
    arguments = Matrices.of(matrices), out, m, n, padded_m
    launches = [TritonLaunch(_pack_kernel, (blocks,), CONFIG, *arguments, **constants)] if out.numel() else []
    return launches, (out.mT if matrix.ndim == 3 else out[0].t())
