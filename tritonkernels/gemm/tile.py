"""What the blocked designs share: one tile's sum of products over a range of K, and the writing of a tile."""

import triton
import triton.language as tl

from ..language.epilogue import blend
from ..language.tiles import span


@triton.jit
def tile_product(
    a_ptr,
    b_ptr,
    rows,  # (BLOCK_M,) indices into M
    cols,  # (BLOCK_N,) indices into N
    first_k,
    end_k,
    M,
    N,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    BLOCK_K: tl.constexpr,
    WIDE: tl.constexpr,
):
    """The (BLOCK_M, BLOCK_N) sum over k in [first_k, end_k), in slices of BLOCK_K that Triton stages in shared memory."""
    acc = tl.zeros((rows.shape[0], cols.shape[0]), tl.float32)
    for k in range(first_k, end_k, BLOCK_K):
        ks = span(k, BLOCK_K, WIDE)
        a_inside = (rows < M)[:, None] & (ks < end_k)[None, :]
        b_inside = (ks < end_k)[:, None] & (cols < N)[None, :]
        a = tl.load(a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak, mask=a_inside, other=0)
        b = tl.load(b_ptr + ks[:, None] * stride_bk + cols[None, :] * stride_bn, mask=b_inside, other=0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    return acc


@triton.jit
def store_tile(
    acc,
    c_ptr,
    out_ptr,
    rows,
    cols,
    M,
    N,
    alpha,
    beta,
    stride_cm,
    stride_cn,
    stride_om,
    stride_on,
    HAS_C: tl.constexpr,
):
    """out = alpha * acc + beta * C on the part of the tile that lies inside."""
    inside = (rows < M)[:, None] & (cols < N)[None, :]
    c_ptrs = c_ptr + rows[:, None] * stride_cm + cols[None, :] * stride_cn if HAS_C else None
    result = blend(acc, c_ptrs, alpha, beta, inside, HAS_C)
    tl.store(out_ptr + rows[:, None] * stride_om + cols[None, :] * stride_on, result, mask=inside)
