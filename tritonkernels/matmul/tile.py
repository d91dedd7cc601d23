"""What the designs share: where a tile begins, one tile's sum of products over a range of K, and the end of a tile."""

import triton
import triton.language as tl

from ..language.dot import faithful_dot, settled, widened
from ..language.epilogue import activated, blend, rounded, scalar
from ..language.tiles import grouped_tile, span


@triton.jit
def tile_corner(index, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr, WIDE: tl.constexpr):
    """(batch, first row, first column) of a tile of a batch of results, each walked in groups of GROUP_M tile rows."""
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    tile_m, tile_n = grouped_tile(index % (tiles_m * tiles_n), tiles_m, tiles_n, GROUP_M)
    batch = index // (tiles_m * tiles_n)
    if WIDE:
        batch = batch.to(tl.int64)
    return batch, tile_m * BLOCK_M, tile_n * BLOCK_N


@triton.jit
def no_sum(BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, ACCUMULATE: tl.constexpr):
    """A tile of zeros in the type of the sums."""
    if ACCUMULATE == "fp16":
        return tl.zeros((BLOCK_M, BLOCK_N), tl.float16)
    elif ACCUMULATE == "fp64":
        return tl.zeros((BLOCK_M, BLOCK_N), tl.float64)
    elif ACCUMULATE == "int32":
        return tl.zeros((BLOCK_M, BLOCK_N), tl.int32)
    else:
        return tl.zeros((BLOCK_M, BLOCK_N), tl.float32)


@triton.jit
def tile_product(
    a_ptr, b_ptr, rows, cols, first_k, end_k, M, N, stride_am, stride_ak, stride_bk, stride_bn,
    BLOCK_K: tl.constexpr, PRECISION: tl.constexpr, ACCUMULATE: tl.constexpr, ARE_TF32: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """The sum over k in [first_k, end_k) of a tile, in slices of BLOCK_K that Triton stages in shared memory.

    rows (BLOCK_M,) and cols (BLOCK_N,) are the tile's indices into M and N; a_ptr and b_ptr point at its batch.

    fp16 sums come out as fp32: what follows rounds once more otherwise.
    """
    acc = no_sum(rows.shape[0], cols.shape[0], ACCUMULATE)
    for k in range(first_k, end_k, BLOCK_K):
        ks = span(k, BLOCK_K, WIDE)
        a_inside = (rows < M)[:, None] & (ks < end_k)[None, :]
        b_inside = (ks < end_k)[:, None] & (cols < N)[None, :]
        a = tl.load(a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak, mask=a_inside, other=0.0)
        b = tl.load(b_ptr + ks[:, None] * stride_bk + cols[None, :] * stride_bn, mask=b_inside, other=0.0)
        acc = faithful_dot(a, b, acc, PRECISION, ARE_TF32)
    acc = settled(acc, tl.cdiv(end_k - first_k, BLOCK_K) * BLOCK_K, PRECISION)
    return acc.to(tl.float32) if ACCUMULATE == "fp16" else acc


@triton.jit
def finished(
    acc, c_ptr, bias_ptr, rows, cols, M, N, alpha, beta, stride_cm, stride_cn, stride_bias,
    HAS_C: tl.constexpr, HAS_BIAS: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    """activation(alpha * acc + beta * C + bias) of a tile, in the type of acc."""
    inside = (rows < M)[:, None] & (cols < N)[None, :]
    c_ptrs = c_ptr + rows[:, None] * stride_cm + cols[None, :] * stride_cn if HAS_C else None
    result = blend(acc, c_ptrs, scalar(alpha, acc.dtype), scalar(beta, acc.dtype), inside, HAS_C)
    if HAS_BIAS:
        result += widened(tl.load(bias_ptr + cols * stride_bias, mask=cols < N, other=0), acc.dtype)[None, :]
    return activated(result, ACTIVATION)


@triton.jit
def store_tile(
    acc, c_ptr, bias_ptr, out_ptr, batch, rows, cols, M, N, alpha, beta,
    stride_cb, stride_cm, stride_cn, stride_bias, stride_ob, stride_om, stride_on,
    HAS_C: tl.constexpr, HAS_BIAS: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    """Finish a tile and write the part of it that lies inside."""
    if HAS_C:
        c_ptr += batch * stride_cb
    result = finished(
        acc, c_ptr, bias_ptr, rows, cols, M, N, alpha, beta, stride_cm, stride_cn, stride_bias, HAS_C, HAS_BIAS, ACTIVATION
    )
    inside = (rows < M)[:, None] & (cols < N)[None, :]
    out_ptrs = out_ptr + batch * stride_ob + rows[:, None] * stride_om + cols[None, :] * stride_on
    tl.store(out_ptrs, rounded(result, out_ptr.dtype.element_ty), mask=inside)
