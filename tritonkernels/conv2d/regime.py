"""Which design for which convolution: rules, each with its reason. Pure functions of (problem, target), for both packages."""

import torch

from ..problem import FLOAT_PRECISION, MatmulProblem

TILE = 4, 8  # outputs of `direct`
BIG_TILE = 16, 64  # of `register_blocked`
STAGED_BYTES = 48 * 1024  # what a block may have of shared memory on every architecture
WORKSPACE = 2**30  # bytes of `winograd`'s inputs and products at their points, where one image takes no more
MOST_TAPS = 16  # of a row, which Triton's `register_blocked` unrolls


def busy_lanes(problem, tile):
    """The share of a tile's positions that are outputs, over all tiles of a plane."""
    tiles = -(-problem.p // tile[0]) * -(-problem.q // tile[1])
    return problem.p * problem.q / (tiles * tile[0] * tile[1]) if tiles else 1.0


def halo_bytes(problem, tile, row_unit):
    """Shared memory for the inputs that a tile of outputs needs of a channel; rows are padded to `row_unit` bytes of inputs."""
    rows, cols = (
        (outputs - 1) * step + (taps - 1) * dilation + 1
        for outputs, step, taps, dilation in zip(tile, problem.stride, (problem.r, problem.s), problem.dilation)
    )
    unit = row_unit // problem.dtype.itemsize
    return rows * -(-cols // unit) * unit * max(4, problem.dtype.itemsize)


def blocked_bytes(problem, kt):
    """Shared memory of `register_blocked` for a channel's inputs and the filters of kt output channels, in whole quads."""
    return halo_bytes(problem, BIG_TILE, 32) + problem.r * problem.s * -(-kt // 4) * 16


def product_at_points(problem, outputs, images):
    """What `winograd` does at its points, in each group: (K, C) (C, tiles); with channels_last (tiles, C) (C, K).

    The tiles are those of `images` images, rounded up to 16, so that every row of them can be read in vectors.
    """
    sums = torch.float64 if problem.dtype == torch.float64 else torch.float32
    tiles = -(-images * -(-problem.p // outputs) * -(-problem.q // outputs) // 16) * 16
    k, c = problem.k // problem.groups, problem.c // problem.groups
    m, n = (tiles, k) if problem.channels_last else (k, tiles)
    return MatmulProblem(
        dtype=sums,
        out_dtype=sums,
        precision=FLOAT_PRECISION[sums],
        wide=False,
        batch=(outputs + 2) ** 2 * problem.groups,
        m=m,
        n=n,
        k=c,
        a_shared=False,
        b_shared=False,
        a_layout="row",
        b_layout="row",
        aligned=c % 4 == 0 and n % 4 == 0,
        accumulate="fp64" if sums == torch.float64 else "fp32",
        alpha=1.0,
        beta=0.0,
        bias=False,
        activation=None,
    )


def refuses_winograd(problem, target):
    """What has no tiles to transform, or too large ones."""
    if (problem.r, problem.s) != (3, 3):
        return f"it transforms filters of 3 x 3, not {problem.r} x {problem.s}"
    if problem.stride != (1, 1) or problem.dilation != (1, 1):
        steps, apart = (" x ".join(map(str, pair)) for pair in (problem.stride, problem.dilation))
        return f"its tiles need stride 1 and dilation 1, not {steps} and {apart}"
    return None


def images_at_once(problem, outputs):
    """How many images' transforms and products WORKSPACE has room for, at least one."""
    product = product_at_points(problem, outputs, 1)
    tiles = product.m if problem.channels_last else product.n
    bytes_ = product.batch * tiles * (problem.c + problem.k) // problem.groups * product.dtype.itemsize
    return max(1, min(problem.n, WORKSPACE // max(1, bytes_)))


def winograd_variants(problem, target):
    """4 and 2, outputs of a tile, that which is done sooner first.

    Either makes filters, inputs and products at its points, writes them and reads them. Larger tiles take fewer products and
    less of the latter two, but 36 points for 9 taps where the smaller ones take 16: few outputs of many channels are theirs.
    """

    def seconds(outputs):
        product = product_at_points(problem, outputs, problem.n)
        return product.flops / peak + 2 * product.bytes / target.dram_bandwidth

    peak = target.peak(FLOAT_PRECISION[problem.dtype] if problem.dtype == torch.float64 else "ieee")
    return sorted((4, 2), key=seconds) if peak and target.dram_bandwidth else (4, 2)


def prefer(problem, target):
    """The design that wastes least.

    - depthwise, where a group has one input channel and few output channels: there is no sum over channels to block for.
    - naive, where tiles of 4 x 8 outputs would be mostly empty (a filter almost as large as the image): its lanes are not idle.
    - register_blocked, where at least half of its tiles of 16 x 64 is filled: each load serves several outputs. fp64 has
      no room in its registers, steps and dilations of many pixels none in its shared memory.
    - direct for everything else.
    """
    fits = problem.s <= MOST_TAPS and blocked_bytes(problem, 16) <= STAGED_BYTES and problem.dtype != torch.float64
    if problem.c == problem.groups and problem.k <= 4 * problem.groups:
        return "depthwise"
    if busy_lanes(problem, TILE) < 0.25:
        return "naive"
    if fits and busy_lanes(problem, BIG_TILE) >= 0.5:
        return "register_blocked"
    return "direct"
