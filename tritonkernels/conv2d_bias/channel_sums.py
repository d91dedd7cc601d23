"""conv2d_bias, channel_sums: a program sums its share of the positions of BLOCK_K channels; few channels are split over many.

It is limited by reading grad_output once. A tile of channels and positions is added to registers, slice by slice, and reduced
once, at the end. Lanes lie along positions, or along channels where those are side by side in memory (channels_last).

Mirrors cuda_reference/conv2d_bias/channel_sums.cuh.
"""

from ..config import config_of
from ..design import Design
from ..integers import ceil_div, next_power_of_2
from ..language.dot import widened
from ..language.epilogue import rounded
from ..language.overlap import wait_for_earlier_kernels
from ..language.position_sums import Sums, added, count_positions, launches_of_splits, position
from ..language.structs import Images
from ..language.tiles import span
from ..language.triton import tl, triton
from ..operations.conv2d_bias.work import of_sums
from ..operations.conv2d_weight.space import near, splits_for


@triton.jit
def _channel_sums_kernel(
    grad: Images, sums: Sums, N, K, P, Q, positions_per_split,
    BLOCK_K: tl.constexpr, BLOCK_L: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """grad (N, K, P, Q), BLOCK_L positions of it at a time. WIDE: offsets need 64 bits."""
    wait_for_earlier_kernels()
    blocks_k = tl.cdiv(K, BLOCK_K)
    split = tl.program_id(0) // blocks_k
    if WIDE:
        split = split.to(tl.int64)
    k = span(tl.program_id(0) % blocks_k * BLOCK_K, BLOCK_K, WIDE)
    channel_ptrs = (grad.ptr + k * grad.c)[:, None]

    SUMS: tl.constexpr = tl.float64 if sums.ptr.dtype.element_ty == tl.float64 else tl.float32
    acc = tl.zeros((BLOCK_K, BLOCK_L), SUMS)
    first = split * positions_per_split
    end = min(first + positions_per_split, count_positions(N, P, Q, WIDE))
    for l in range(first, end, BLOCK_L):
        at = span(l, BLOCK_L, WIDE)
        image, p, q = position(at, P, Q)
        ptrs = channel_ptrs + (image * grad.n + p * grad.h + q * grad.w)[None, :]
        acc += widened(tl.load(ptrs, mask=(k < K)[:, None] & (at < end)[None, :], other=0), SUMS)
    total = rounded(tl.sum(acc, axis=1), sums.ptr.dtype.element_ty)
    tl.store(sums.ptr + split * sums.split + k * sums.k, total, mask=k < K)


def configs(problem, target):
    """A channel with many positions, or many channels; four programs per SM, half and twice as many. The interpreter pays by
    the operation, so it takes many of both."""
    if not target.is_gpu:
        length = min(2**12, next_power_of_2(max(1, problem.terms // 2)))
        yield config_of({"BLOCK_K": 16, "BLOCK_L": length, "SPLITS": 2})
        yield config_of({"BLOCK_K": 4, "BLOCK_L": 64, "SPLITS": 1})
        return
    tiles = [{"BLOCK_K": 1, "BLOCK_L": 1024}, {"BLOCK_K": 64, "BLOCK_L": 16}, {"BLOCK_K": 4, "BLOCK_L": 256}]
    for tile in tiles:
        for splits in near(splits_for(problem, target, ceil_div(problem.k, tile["BLOCK_K"]), tile["BLOCK_L"], 4)):
            yield config_of(tile | {"SPLITS": splits}, num_warps=4, num_stages=1)


def launches(problem, config, grad_output, out):
    tile, splits = config.kwargs, config.kwargs["SPLITS"]
    grid = (ceil_div(problem.k, tile["BLOCK_K"]) * splits,)
    per_split = ceil_div(ceil_div(problem.terms, splits), tile["BLOCK_L"]) * tile["BLOCK_L"]
    before, after = (Images.of(grad_output),), (*grad_output.shape, per_split)
    yield from launches_of_splits(_channel_sums_kernel, grid, config, before, after, out[:, None, None, None], problem.wide)


def work(problem, config, target):
    tile, splits = config.kwargs, config.kwargs["SPLITS"]
    main = of_sums(problem, tile["BLOCK_K"], tile["BLOCK_L"], splits, target.warp_size * config.num_warps)
    return main, *added(problem, splits)


DESIGN = Design(configs=configs, launches=launches, work=work)
