"""GEMV, transposed: A with contiguous columns, as a.t() of a row-major matrix has them; x^T A without transposing.

A thread owns V neighbouring rows of the result and walks columns of A with one x for all: loads are coalesced and 128 bits
wide, UNROLL of them under way, and no sum crosses threads until the end. LANES threads side by side own a tile of rows; the
others of the program take a share of its columns each. Narrow tiles make many programs and few partial sums; 8 lanes are
the 128 bytes that memory likes to be read in. Where there are few tiles all the same, N is split over programs as well: the
last to arrive adds the partial sums up in a fixed order (as in `split_n`).

Mirrors cuda_reference/gemv/transposed.cuh.
"""

import triton
import triton.language as tl

from ..design import Design, takes_everything
from ..language.splits import last_to_arrive, sum_of_splits
from ..language.tiles import span
from ..launch import TritonLaunch
from ..workspace import counters, partial_sums
from .parts.operands import cut, full_vector, results
from .parts.regime import BLOCK, UNROLL, streams, tile_of_columns
from .parts.row_tile import REGISTERS, store_rows, within


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
    DEPTH: tl.constexpr,  # columns side by side, one a thread
    UNROLL: tl.constexpr,
    STREAMS: tl.constexpr,  # A is first to leave the caches
    V: tl.constexpr,
    HAS_Y: tl.constexpr,
    HAS_SCALE: tl.constexpr,
    SPLIT: tl.constexpr,
    WIDE: tl.constexpr,  # offsets need 64 bits
):
    BLOCK_M: tl.constexpr = LANES * V
    POLICY: tl.constexpr = "evict_first" if STREAMS else ""
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
    a_rows = a_ptr + batch * stride_ab * V + m * stride_am
    x_ptr += batch * stride_xb
    partial = tl.zeros((DEPTH, BLOCK_M), tl.float32)
    for n in range(first, last, DEPTH * UNROLL):
        for step in tl.static_range(UNROLL):
            cols = span(n + step * DEPTH, DEPTH, WIDE)
            a_ptrs = a_rows[None, :] + (cols * stride_an)[:, None] * V
            inside = (cols < last)[:, None] & valid[None, :]
            a = tl.load(a_ptrs, mask=inside, other=0, eviction_policy=POLICY)
            x = tl.load(x_ptr + cols * stride_x, mask=cols < last, other=0)
            partial += a.to(tl.float32) * x.to(tl.float32)[:, None]
    sums = tl.sum(partial, axis=0)
    if SPLIT:
        width = tl.num_programs(0).to(tl.int64) * BLOCK_M
        place = workspace_ptr + program.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
        tl.store(place + split * width, sums, mask=valid)
        if last_to_arrive(counters_ptr + program, tl.num_programs(1)):
            sums = sum_of_splits(place, valid, tl.num_programs(1), width, DEPTH)
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
    """The tile and the splits that fill the GPU come first. The interpreter pays by the operation, so there tiles are large.

    Half the threads with twice the loads each do as much with fewer partial sums, but for a tile that has an SM to itself.
    """
    if not target.is_gpu:
        quads = triton.cdiv(problem.m, full_vector(problem.a_dtype))
        for splits in (2, 1):
            yield _config(problem, target, within(quads, 128), within(problem.n, 128), 1, splits)
        return
    lanes, threads, best = tile_of_columns(problem, target)
    shapes = ((threads, UNROLL),) if threads > BLOCK or lanes == BLOCK else ((BLOCK // 2, 2 * UNROLL), (BLOCK, UNROLL))
    for splits in dict.fromkeys((best, 1, 4)):
        for threads, unroll in shapes:
            depth = threads // lanes
            rounds = triton.next_power_of_2(max(1, problem.n // (depth * splits)))
            yield _config(problem, target, lanes, depth, min(unroll, rounds), splits)


def _config(problem, target, lanes, depth, unroll, splits):
    """With registers for the loads under way, and for BLOCKS_AT_ONCE where these are few."""
    numbers = {"LANES": lanes, "DEPTH": depth, "UNROLL": unroll, "SPLITS": splits, "STREAMS": streams(problem, target)}
    registers = REGISTERS if unroll > UNROLL else REGISTERS // 2
    return triton.Config(numbers, num_warps=max(1, lanes * depth // target.warp_size), num_stages=1, maxnreg=registers)


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
