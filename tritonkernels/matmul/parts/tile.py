"""Where a tile begins, and its sum of products over a range of K."""

from ...language.dot import faithful_dot, settled
from ...language.tiles import grouped_tile, known_multiples, multiple, span
from ...language.triton import tl, triton


@triton.jit
def tile_corner(index, sizes, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr, WIDE: tl.constexpr):
    """(batch, first row, first column) of a tile of a batch of results, each walked in groups of GROUP_M tile rows."""
    tiles_m = tl.cdiv(sizes.M, BLOCK_M)
    tiles_n = tl.cdiv(sizes.N, BLOCK_N)
    tile_m, tile_n = grouped_tile(index % (tiles_m * tiles_n), tiles_m, tiles_n, GROUP_M)
    batch = index // (tiles_m * tiles_n)
    if WIDE:
        batch = batch.to(tl.int64)
    return batch, tile_m * BLOCK_M, tile_n * BLOCK_N


@triton.jit
def count_tiles_of(sizes, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Tiles of all results of the batch."""
    return sizes.batches * tl.cdiv(sizes.M, BLOCK_M) * tl.cdiv(sizes.N, BLOCK_N)


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
def tile_product(a, b, batch, rows, cols, first_k, end_k, sizes, how, BLOCK_K: tl.constexpr):
    """The sum over k in [first_k, end_k) of a tile, in slices of BLOCK_K that Triton stages in shared memory.

    rows (BLOCK_M,) and cols (BLOCK_N,) are the tile's indices into M and N. fp16 sums come out as fp32: what follows rounds
    once more otherwise.
    """
    a = known_multiples(a, sizes.OF_A)
    b = known_multiples(b, sizes.OF_B)
    end_k = multiple(end_k, sizes.OF_SIZES[2])
    a_rows = a.ptr + batch * a.batch + rows[:, None] * a.row
    b_cols = b.ptr + batch * b.batch + cols[None, :] * b.col
    a_inside = (rows < multiple(sizes.M, sizes.OF_SIZES[0]))[:, None]
    b_inside = (cols < multiple(sizes.N, sizes.OF_SIZES[1]))[None, :]
    acc = no_sum(rows.shape[0], cols.shape[0], how.ACCUMULATE)
    for k in range(first_k, end_k, BLOCK_K):
        ks = span(k, BLOCK_K, how.WIDE)
        a_ptrs = a_rows + ks[None, :] * a.col
        b_ptrs = b_cols + ks[:, None] * b.row
        a_slice = tl.load(a_ptrs, mask=a_inside & (ks < end_k)[None, :], other=0.0)
        b_slice = tl.load(b_ptrs, mask=b_inside & (ks < end_k)[:, None], other=0.0)
        acc = faithful_dot(a_slice, b_slice, acc, how.PRECISION, how.ARE_TF32, how.ACCUMULATE == "fast")
    acc = settled(acc, tl.cdiv(end_k - first_k, BLOCK_K) * BLOCK_K, how.PRECISION)
    return acc.to(tl.float32) if how.ACCUMULATE == "fp16" else acc
