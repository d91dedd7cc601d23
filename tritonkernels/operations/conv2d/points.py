"""winograd's variants, its product at its points, and its number of images at a time; for both packages."""

import torch

from ...problem import FLOAT_PRECISION, MatmulProblem
from .shapes import refuses_what_follows

# Per row and column of a tile. Larger tiles have fewer products and smaller inputs and products at their points, but 36 points
# for 9 taps where smaller ones have 16: these win with few outputs of many channels
OUTPUTS = 4, 2
WORKSPACE = 2**30  # bytes of inputs and products at their points, or those of one image if larger


def product_at_points(problem, outputs, images):
    """The MatmulProblem at winograd's points, in each group: (K, C) (C, tiles); with channels_last (tiles, C) (C, K).

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
    """Why the transforms do not apply to the problem, or None."""
    if refusal := refuses_what_follows(problem, target):
        return refusal
    if (problem.r, problem.s) != (3, 3):
        return f"it transforms filters of 3 x 3, not {problem.r} x {problem.s}"
    if problem.stride != (1, 1) or problem.dilation != (1, 1):
        steps, apart = (" x ".join(map(str, pair)) for pair in (problem.stride, problem.dilation))
        return f"its tiles need stride 1 and dilation 1, not {steps} and {apart}"
    return None


def images_at_once(problem, outputs):
    """How many images' transforms and products fit into WORKSPACE, at least one."""
    product = product_at_points(problem, outputs, 1)
    tiles = product.m if problem.channels_last else product.n
    bytes_ = product.batch * tiles * (problem.c + problem.k) // problem.groups * product.dtype.itemsize
    return max(1, min(problem.n, WORKSPACE // max(1, bytes_)))
