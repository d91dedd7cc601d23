"""A matrix written once more, as cp.async wants it: columns contiguous, 16 bytes aligned and padded with zeros to whole quads.

It reads and writes 8 bytes an element, so beside a product over N columns of B at 50 TFLOP/s it costs a share of 50 / N of the
time on an H200 (4.3 TB/s): 5 % at N = 1024, under 1 % at 8192. The workspace is as large as the matrix. GotoBLAS packs for the
same reason (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008).
"""

import torch
import triton
import triton.language as tl

from ..language.tiles import span
from ..launch import TritonLaunch
from ..problem import needs_wide_offsets

CONFIG = triton.Config({"BLOCK_M": 64, "BLOCK_N": 64}, num_warps=8, num_stages=1)
MULTIPLE = 16  # of elements: what Triton can prove of a size or stride is whether 16 divides it


@triton.jit
def _pack_kernel(
    in_ptr,  # (M, N)
    out_ptr,  # (N, padded_m), contiguous
    M,
    N,
    padded_m,
    stride_im,
    stride_in,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    WIDE: tl.constexpr,
):
    tiles_n = tl.cdiv(N, BLOCK_N)
    rows = span(tl.program_id(0) // tiles_n * BLOCK_M, BLOCK_M, WIDE)
    cols = span(tl.program_id(0) % tiles_n * BLOCK_N, BLOCK_N, WIDE)
    inside = (rows < M)[:, None] & (cols < N)[None, :]
    tile = tl.load(in_ptr + rows[:, None] * stride_im + cols[None, :] * stride_in, mask=inside, other=0)
    inside = (cols < N)[:, None] & (rows < padded_m)[None, :]
    tl.store(out_ptr + cols[:, None] * padded_m + rows[None, :], tile.T, mask=inside)


def packed(matrix):
    """(the launch that fills it, the packed matrix): the (M, N) one with zeros below it to a multiple of 16 rows."""
    m, n = matrix.shape
    padded_m = triton.cdiv(m, MULTIPLE) * MULTIPLE
    out = torch.empty((n, padded_m), dtype=matrix.dtype, device=matrix.device)
    stride_im, stride_in = matrix.stride()
    arguments = {"in_ptr": matrix, "out_ptr": out, "M": m, "N": n, "stride_im": stride_im, "stride_in": stride_in}
    arguments |= {"padded_m": padded_m, "WIDE": needs_wide_offsets(matrix, out)}
    tiles = triton.cdiv(m, CONFIG.kwargs["BLOCK_M"]) * triton.cdiv(n, CONFIG.kwargs["BLOCK_N"])
    return TritonLaunch(_pack_kernel, (max(1, tiles),), CONFIG, arguments), out.t()
