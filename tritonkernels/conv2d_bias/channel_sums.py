"""conv2d_bias, channel_sums: a program sums its share of the positions of BLOCK_K channels; few channels are split over many.

Bound by the one read of grad_output. A tile of channels and positions is added to registers, slice by slice, and reduced once,
at the end. Lanes lie along positions, or along channels where those are side by side in memory (channels_last).

Mirrors cuda_reference/conv2d_bias/channel_sums.cuh.
"""

import triton
import triton.language as tl

from ..conv2d.parts.splits import launches_of_splits, position
from ..design import Design, takes_everything
from ..language.dot import widened
from ..language.epilogue import rounded
from ..language.tiles import span


@triton.jit
def _channel_sums_kernel(
    grad_ptr,  # (N, K, P, Q)
    sums_ptr,  # (SPLITS, K)
    N,
    K,
    P,
    Q,
    positions_per_split,
    stride_gn,
    stride_gk,
    stride_gp,
    stride_gq,
    stride_split,
    stride_wk,
    BLOCK_K: tl.constexpr,
    BLOCK_L: tl.constexpr,  # positions
    WIDE: tl.constexpr,  # offsets need 64 bits
):
    blocks_k = tl.cdiv(K, BLOCK_K)
    split = tl.program_id(0) // blocks_k
    positions = N * P * Q
    if WIDE:
        split = split.to(tl.int64)
        positions = N.to(tl.int64) * P * Q
    k = span(tl.program_id(0) % blocks_k * BLOCK_K, BLOCK_K, WIDE)
    channel_ptrs = (grad_ptr + k * stride_gk)[:, None]

    SUMS: tl.constexpr = tl.float64 if sums_ptr.dtype.element_ty == tl.float64 else tl.float32
    acc = tl.zeros((BLOCK_K, BLOCK_L), SUMS)
    first = split * positions_per_split
    end = min(first + positions_per_split, positions)
    for l in range(first, end, BLOCK_L):
        at = span(l, BLOCK_L, WIDE)
        image, p, q = position(at, P, Q)
        ptrs = channel_ptrs + (image * stride_gn + p * stride_gp + q * stride_gq)[None, :]
        acc += widened(tl.load(ptrs, mask=(k < K)[:, None] & (at < end)[None, :], other=0), SUMS)
    sums = rounded(tl.sum(acc, axis=1), sums_ptr.dtype.element_ty)
    tl.store(sums_ptr + split * stride_split + k * stride_wk, sums, mask=k < K)


def splits_for(problem, target, tile):
    """Enough to give each SM four programs of at least eight slices."""
    blocks = max(1, triton.cdiv(problem.k, tile["BLOCK_K"]))
    return max(1, min(triton.cdiv(4 * target.sms, blocks), problem.terms // (8 * tile["BLOCK_L"]), 1024))


def configs(problem, target):
    """A channel with many positions, or, in channels_last, many channels; the interpreter takes many of both."""
    if not target.is_gpu:
        length = min(2**12, triton.next_power_of_2(max(1, problem.terms // 2)))
        yield triton.Config({"BLOCK_K": 16, "BLOCK_L": length, "SPLITS": 2})
        yield triton.Config({"BLOCK_K": 4, "BLOCK_L": 64, "SPLITS": 1})
        return
    tiles = [{"BLOCK_K": 1, "BLOCK_L": 1024}, {"BLOCK_K": 64, "BLOCK_L": 16}, {"BLOCK_K": 4, "BLOCK_L": 256}]
    for tile in [tiles[1], tiles[2]] if problem.channels_last else tiles:
        yield triton.Config(tile | {"SPLITS": splits_for(problem, target, tile)}, num_warps=4, num_stages=1)


def launches(problem, config, grad_output, out):
    tile, splits = config.kwargs, config.kwargs["SPLITS"]
    given = {
        "grad_ptr": grad_output,
        **dict(zip("NKPQ", grad_output.shape)),
        "positions_per_split": triton.cdiv(triton.cdiv(problem.terms, splits), tile["BLOCK_L"]) * tile["BLOCK_L"],
        **dict(zip(("stride_gn", "stride_gk", "stride_gp", "stride_gq"), grad_output.stride())),
        "WIDE": problem.wide,
    }
    grid = (triton.cdiv(problem.k, tile["BLOCK_K"]) * splits,)
    yield from launches_of_splits(_channel_sums_kernel, grid, config, given, out[:, None, None, None])


DESIGN = Design(
    name="channel_sums",
    summary="channels and positions over programs, partial sums in registers, added up in a fixed order",
    mirrors="conv2d_bias: a sum per channel",
    refuses=takes_everything,
    configs=configs,
    launches=launches,
)
