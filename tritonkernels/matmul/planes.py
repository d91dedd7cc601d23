import triton
import triton.language as tl

from ..design import Design
from ..language.dot import INTERPRETED, bf16_to_fp32
from ..language.epilogue import rounded
from ..language.tiles import grouped_tile, span
from ..launch import TritonLaunch
from ..problem import needs_wide_offsets
from .split import SCHEMES, shift_of, shifted, split


@triton.jit
def _planes_kernel(
    a_ptr,  # (PLANES, BATCH, M, padded_k), K contiguous
    b_ptr,  # (PLANES, BATCH, N, padded_k), K contiguous
    a_largest_ptr,  # (BATCH, M), None without SHIFTED
    b_largest_ptr,  # (BATCH, N), None without SHIFTED
    out_ptr,  # (BATCH, M, N)
    M,
    N,
    padded_k,
    stride_ap,
    stride_ab,
    stride_bp,
    stride_bb,
    stride_ob,
    stride_om,
    stride_on,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    PAIRS: tl.constexpr,
    STEP: tl.constexpr,
    SHIFTED: tl.constexpr,
    WIDE: tl.constexpr,
):
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    program = tl.program_id(0)
    batch = program // (tiles_m * tiles_n)
    tile_m, tile_n = grouped_tile(program % (tiles_m * tiles_n), tiles_m, tiles_n, GROUP_M)
    rows = span(tile_m * BLOCK_M, BLOCK_M, WIDE)
    cols = span(tile_n * BLOCK_N, BLOCK_N, WIDE)
    ks = tl.arange(0, BLOCK_K)
    if WIDE:
        batch = batch.to(tl.int64)
    a_ptrs = a_ptr + batch * stride_ab + tl.minimum(rows, M - 1)[:, None] * padded_k + ks[None, :]
    b_ptrs = b_ptr + batch * stride_bb + tl.minimum(cols, N - 1)[None, :] * padded_k + ks[:, None]
    main = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    corrections = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, padded_k, BLOCK_K):
        slice_sum = _plane_dot(tl.load(a_ptrs), tl.load(b_ptrs), tl.zeros((BLOCK_M, BLOCK_N), tl.float32))
        main = tl.fma(slice_sum, 1.0, main)
        for pair in tl.static_range(len(PAIRS)):
            a = tl.load(a_ptrs + PAIRS[pair][0] * stride_ap)
            b = tl.load(b_ptrs + PAIRS[pair][1] * stride_bp)
            corrections = _plane_dot(a, b, corrections)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    acc = tl.where(tl.abs(main) < float("inf"), main + corrections * (1 / STEP), main)
    if SHIFTED:
        a_shift = shift_of(tl.load(a_largest_ptr + batch * M + rows, mask=rows < M, other=0))
        b_shift = shift_of(tl.load(b_largest_ptr + batch * N + cols, mask=cols < N, other=0))
        acc = shifted(acc, -(a_shift[:, None] + b_shift[None, :]))
    inside = (rows < M)[:, None] & (cols < N)[None, :]
    out_ptrs = out_ptr + batch * stride_ob + rows[:, None] * stride_om + cols[None, :] * stride_on
    tl.store(out_ptrs, rounded(acc, out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _plane_dot(a, b, acc):
    """acc + a b of two planes, exact but for the sums; tf32 planes are rounded already."""
    if a.dtype == tl.bfloat16 and INTERPRETED:
        return tl.dot(bf16_to_fp32(a), bf16_to_fp32(b), acc, input_precision="ieee")
    else:
        return tl.dot(a, b, acc, input_precision="tf32")
