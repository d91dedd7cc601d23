"""conv2d, pointwise: a filter of one tap is a matrix product, (pixels, C) times (C, K), and matmul's designs compute it.

Nothing is moved: pixels are the rows of two matrices, whose columns are channels. These are contiguous in channels_last and a
plane apart in NCHW, which is only another pair of strides. Images, or even lines, that are not evenly spaced are a batch. Bias,
precision and the choice among matmul's designs (TMA, split-K for few pixels) come with it.

Mirrors cuda_reference/conv2d/pointwise.py.
"""

import copy

from ..batches import merges, uniform_batches
from ..design import Design
from ..launch import LIBRARY
from ..problem import MatmulProblem, is_aligned, layout_of


def refuses(problem, target):
    one_tap, no_steps = (problem.r, problem.s) == (1, 1), problem.stride == (1, 1)
    every_pixel = (problem.p, problem.q) == (problem.h, problem.w)
    faults = {
        f"a filter of {problem.r} x {problem.s}": not one_tap,
        "steps": not no_steps,
        "padding": problem.padding != (0, 0) or (one_tap and no_steps and not every_pixel),
        "groups": problem.groups != 1,
    }
    found = [what for what, is_so in faults.items() if is_so]
    return f"it is a product of matrices, of every pixel and one tap, and this has {' and '.join(found)}" if found else None


def _product(problem, batch, rows, **layouts):
    """The MatmulProblem of `batch` matrices of `rows` pixels each."""
    return MatmulProblem(
        dtype=problem.dtype,
        out_dtype=problem.out_dtype,
        precision=problem.precision,
        wide=problem.wide,
        batch=batch,
        m=rows,
        n=problem.k,
        k=problem.c,
        a_shared=False,
        b_shared=True,
        accumulate="fp64" if problem.precision == "fp64" else "fp32",
        alpha=1.0,
        beta=0.0,
        bias=problem.has_bias,
        activation=None,
        **layouts,
    )


def configs(problem, target):
    """The first config of each of matmul's designs, the preferred design's first; MATMUL names the design."""
    images, pixels = (1, problem.n * problem.p * problem.q) if problem.channels_last else (problem.n, problem.p * problem.q)
    line = problem.c if problem.channels_last else pixels
    aligned = line * problem.dtype.itemsize % 16 == 0
    layouts = {"a_layout": "row" if problem.channels_last else "col", "b_layout": "col", "aligned": aligned}
    product = _product(problem, images, pixels, **layouts)
    preferred, _ = LIBRARY.choose(product, target)
    designs = [d for d in LIBRARY.designs("matmul") if d.name in ("pipelined", "persistent", "split_k")]
    for design in sorted(designs, key=lambda d: d is not preferred):
        if design.refuses(product, target) is None:
            config = copy.copy(next(iter(design.configs(product, target))))
            config.kwargs = config.kwargs | {"MATMUL": design.name}
            yield config


def launches(problem, config, input, weight, bias, out):
    (design,) = (d for d in LIBRARY.designs("matmul") if d.name == config.kwargs["MATMUL"])
    a, result = (t.permute(0, 2, 3, 1) for t in (input, out))
    while a.ndim > 2 and all(merges(t, a.ndim - 3) for t in (a, result)):
        a, result = a.flatten(-3, -2), result.flatten(-3, -2)
    b = weight[:, :, 0, 0].t().expand(*a.shape[:-2], problem.c, problem.k)
    for x, y, z in uniform_batches(a, b, result):
        layouts = {"a_layout": layout_of(x), "b_layout": layout_of(y), "aligned": is_aligned(x) and is_aligned(y)}
        yield from design.launches(_product(problem, z.shape[0], z.shape[1], **layouts), config, x, y, None, bias, z)


DESIGN = Design(refuses=refuses, configs=configs, launches=launches)
