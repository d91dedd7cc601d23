"""GEMV, transposed: A with contiguous columns, as a.t() of a row-major matrix has them; x^T A without transposing.

Now neighbouring lanes own neighbouring rows of the result, V each by 128-bit loads, and walk the columns of A with one x for
all: every load is coalesced and no sum crosses lanes. N is split over the warps of a block, and, while there are fewer tiles
than SMs want, over blocks: the last to arrive adds the partial sums up in the order of N (as in `split_n`).

Mirrors cuda_reference/gemv/transposed.cuh.
"""

import triton
import triton.language as tl

from ..design import Design, takes_everything
from ..language.tiles import span
from ..launch import TritonLaunch
from .operands import cut, full_vector, results
from .regime import splits_of_columns
from .row_tile import store_rows, within
from .splits import last_to_arrive, sum_of_splits
from .workspace import counters, partial_sums


@triton.jit
def _transposed_kernel(
    a_ptr,  # (batch, M, N)
    x_ptr,  # (batch, N)
    y_ptr,  # (batch, M), None without HAS_Y
    scale_ptr,  # (M,), None without HAS_SCALE
    out_ptr,  # (batch, M)
    workspace_ptr,  # (splits, programs * BLOCK_M)
    counters_ptr,  # (programs,), zeros
    M,
    vectors,  # of V rows
    N,
    columns_per_split,
    alpha,
    beta,
    stride_ab,  # in units of V, like stride_an
    stride_am,
    stride_an,
    stride_xb,
    stride_x,
    stride_yb,
    stride_y,
    stride_s,
    stride_ob,
    stride_o,
    LANES: tl.constexpr,  # vectors of rows side by side
    BLOCK_N: tl.constexpr,
    V: tl.constexpr,
    HAS_Y: tl.constexpr,
    HAS_SCALE: tl.constexpr,
    SPLIT: tl.constexpr,
    WIDE: tl.constexpr,  # offsets need 64 bits
):
    BLOCK_M: tl.constexpr = LANES * V
    program = tl.program_id(0)
    split = tl.program_id(1)
    tiles = tl.cdiv(M, BLOCK_M)
    batch = program // tiles
    m = span(program % tiles * BLOCK_M, BLOCK_M, WIDE)
    if WIDE:
        batch = batch.to(tl.int64)
    valid = m < vectors * V
    first = split * columns_per_split
    last = tl.minimum(first + columns_per_split, N)
    partial = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)
    for n in range(first, last, BLOCK_N):
        cols = span(n, BLOCK_N, WIDE)
        inside = (cols < last)[:, None] & valid[None, :]
        a_ptrs = a_ptr + (batch * stride_ab + cols[:, None] * stride_an) * V + m[None, :] * stride_am
        a = tl.load(a_ptrs, mask=inside, other=0)
        x_ptrs = tl.broadcast_to(x_ptr + batch * stride_xb + (cols * stride_x)[:, None], (BLOCK_N, BLOCK_M))
        partial += a.to(tl.float32) * tl.load(x_ptrs, mask=inside, other=0).to(tl.float32)
    sums = tl.sum(partial, axis=0)
    if SPLIT:
        width = tl.num_programs(0) * BLOCK_M
        place = workspace_ptr + program.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
        tl.store(place + split.to(tl.int64) * width, sums, mask=valid)
        if last_to_arrive(counters_ptr + program, tl.num_programs(1)):
            sums = sum_of_splits(place, valid, tl.num_programs(1), width.to(tl.int64))
            store_rows(
                sums, batch, m, valid, y_ptr, scale_ptr, out_ptr, alpha, beta,
                stride_yb, stride_y, stride_s, stride_ob, stride_o, HAS_Y, HAS_SCALE,
            )  # fmt: skip
    else:
        store_rows(
            sums, batch, m, valid, y_ptr, scale_ptr, out_ptr, alpha, beta,
            stride_yb, stride_y, stride_s, stride_ob, stride_o, HAS_Y, HAS_SCALE,
        )  # fmt: skip


def configs(problem, target):
    """Eight warps over the columns, two of which each has in flight; splits as fill the GPU come first."""
    width = full_vector(problem.a_dtype)
    lanes = 32 if target.is_gpu else within(triton.cdiv(problem.m, width), 128)
    best = splits_of_columns(problem, target)
    for splits in dict.fromkeys((best, 1, 4, 16) if target.is_gpu else (best, 1)):
        for warps in (8, 4):
            block_n = (2 if width > 4 else 4) * warps if target.is_gpu else within(problem.n, 128)
            yield triton.Config({"LANES": lanes, "BLOCK_N": block_n, "SPLITS": splits}, num_warps=warps, num_stages=1)


def launches(problem, config, a, x, y, scale, out):
    pieces, splits = cut(a.mT, may_have_head=False), config.kwargs["SPLITS"]
    width, rows = pieces.width, config.kwargs["LANES"] * pieces.width
    programs = a.shape[0] * triton.cdiv(a.shape[1], rows)
    given = results(problem, y, scale, out) | {
        "a_ptr": a,
        "x_ptr": x,
        "workspace_ptr": partial_sums(splits, programs * rows, out) if splits > 1 else None,
        "counters_ptr": counters(programs, out) if splits > 1 else None,
        "vectors": pieces.vectors,
        "N": a.shape[2],
        "columns_per_split": triton.cdiv(a.shape[2], splits),
        "stride_ab": a.stride(0) // width if a.shape[0] > 1 else 0,
        "stride_am": a.stride(1),
        "stride_an": a.stride(2) // width if a.shape[2] > 1 else 0,
        "stride_xb": x.stride(0),
        "stride_x": x.stride(1),
        "V": width,
        "SPLIT": splits > 1,
        "WIDE": problem.wide,
    }
    yield TritonLaunch(_transposed_kernel, (programs, splits), config, given)


DESIGN = Design(
    name="transposed",
    summary="lanes side by side over rows for contiguous columns, N over warps and blocks",
    mirrors="gemv seed: none; x^T A",
    refuses=takes_everything,
    configs=configs,
    launches=launches,
)
