"""GEMV, N split over blocks: `block_per_row` with several blocks a row, for fewer rows than SMs.

Each block leaves one partial sum; the last to arrive adds them up in a fixed order, so that the bits do not depend on which
it was. One launch, a counter a row that is zero before and after (workspace.py). What it costs: splits words written and
read, an atomic a block, and one round trip through L2 at the end, about a microsecond.

Mirrors cuda_reference/gemv/split_n.cuh.
"""

import triton
import triton.language as tl

from ..design import Design, takes_everything
from ..language.splits import last_to_arrive, sum_of_splits
from ..language.tiles import span
from ..launch import TritonLaunch
from ..workspace import counters, partial_sums
from .parts.operands import arguments, cut
from .parts.regime import UNROLL, splits_of_row, streams
from .parts.row_tile import REGISTERS, ends, row_sums, store_rows, within


@triton.jit
def _split_n_kernel(
    a_ptr,  # (batch, M, N), from after the head on
    x_ptr,  # (batch, N), likewise
    y_ptr,  # (batch, M), None without HAS_Y
    scale_ptr,  # (M,), None without HAS_SCALE
    out_ptr,  # (batch, M)
    workspace_ptr,  # (batch * M, splits)
    counters_ptr,  # one a program along the rows, zeros
    rows,  # batch * M
    M,
    head,
    vectors,
    size,  # columns after the head
    vectors_per_split,
    alpha,
    beta,
    stride_ab,  # in units of V, like stride_am
    stride_am,
    stride_an,
    stride_xb,  # in units of XV
    stride_x,
    stride_yb,
    stride_y,
    stride_s,
    stride_ob,
    stride_o,
    BLOCK_M: tl.constexpr,
    LANES: tl.constexpr,  # vectors side by side
    UNROLL: tl.constexpr,
    STREAMS: tl.constexpr,  # A is first to leave the caches
    V: tl.constexpr,  # elements of a vector
    XV: tl.constexpr,
    HEAD: tl.constexpr,  # there is one
    TAIL: tl.constexpr,
    HAS_Y: tl.constexpr,
    HAS_SCALE: tl.constexpr,
    WIDE: tl.constexpr,  # offsets need 64 bits
):
    BLOCK_N: tl.constexpr = LANES * V
    index = span(tl.program_id(0) * BLOCK_M, BLOCK_M, WIDE)
    split = tl.program_id(1)
    splits = tl.num_programs(1)
    batch = index // M
    m = index - batch * M
    valid = index < rows
    a_rows = a_ptr + (batch * stride_ab + m * stride_am)[:, None] * V
    x_rows = x_ptr + (batch * stride_xb)[:, None] * XV
    first = split * vectors_per_split * V
    last = tl.minimum(split * vectors_per_split + vectors_per_split, vectors) * V
    in_tile = valid[:, None]
    partial = row_sums(a_rows, x_rows, in_tile, first, last, stride_an, stride_x, BLOCK_M, BLOCK_N, UNROLL, STREAMS, WIDE)
    if split == 0:  # it takes both ends
        body = vectors * V
        partial = ends(
            partial, a_rows, x_rows, in_tile, head, body, size, stride_an, stride_x, BLOCK_N, HEAD, TAIL, STREAMS, WIDE
        )
    of_rows = workspace_ptr + index.to(tl.int64) * splits
    tl.store(of_rows + split, tl.sum(partial, axis=1), mask=valid)
    if last_to_arrive(counters_ptr + tl.program_id(0), splits):
        sums = sum_of_splits(of_rows, valid, splits, 1, LANES)
        store_rows(
            sums, batch, m, valid, y_ptr, scale_ptr, out_ptr, alpha, beta,
            stride_yb, stride_y, stride_s, stride_ob, stride_o, HAS_Y, HAS_SCALE,
        )  # fmt: skip


def configs(problem, target):
    """As many splits as fill the GPU come first. The interpreter pays by the program: there one takes many rows."""
    best, rows = splits_of_row(problem, target), 1 if target.is_gpu else within(problem.rows, 512)
    for splits in dict.fromkeys((best, 2, 16, 64) if target.is_gpu else (best, 3)):
        for warps in (8, 4):
            lanes = target.warp_size * warps if target.is_gpu else within(problem.n, target.warp_size * warps)
            tile = {"SPLITS": splits, "BLOCK_M": rows, "LANES": lanes, "UNROLL": UNROLL, "STREAMS": streams(problem, target)}
            yield triton.Config(tile, num_warps=warps, num_stages=1, maxnreg=REGISTERS)


def launches(problem, config, a, x, y, scale, out):
    pieces, splits, block_m = cut(a), config.kwargs["SPLITS"], config.kwargs["BLOCK_M"]
    given = arguments(problem, a, x, y, scale, out, pieces)
    programs = triton.cdiv(given["rows"], block_m)
    given |= {
        "vectors_per_split": triton.cdiv(pieces.vectors, splits),
        "workspace_ptr": partial_sums(splits, given["rows"], out),
        "counters_ptr": counters(programs, out),
    }
    yield TritonLaunch(_split_n_kernel, (programs, splits), config, given)


DESIGN = Design(
    name="split_n",
    summary="block_per_row with several blocks a row, partial sums added in order by the last",
    mirrors="gemv seed: N >= 128, for fewer rows than SMs",
    refuses=takes_everything,
    configs=configs,
    launches=launches,
)
