"""conv2d, winograd: tiles of M x M outputs of a 3 x 3 filter from (M + 2)^2 products a channel instead of 9 M^2.

F(2 x 2, 3 x 3) takes 16 products where the direct sum takes 36, 2.25 times fewer; F(4 x 4, 3 x 3) takes 36 for 144, 4 times
(A. Lavin and S. Gray, Fast algorithms for convolutional neural networks, 2016). cook_toom.py has the matrices and their error:
a rounding or two of S', which is 7 and 40 times as large as S.

Filters and tiles of inputs are transformed once each into a workspace, U and V, point by point. At each of the (M + 2)^2
points a matrix product over the channels is left, U V, and all of them are one batch for matmul's pipelined, with its
configs. A last kernel transforms the products of a tile to its outputs. V and the products are (1 + 2 / M)^2 = 4 or 2.25 times
as large as inputs and outputs. Where they would take more than a gigabyte, they are made for some of the images at a time.
(Parts that fit into L2 were slower on an H200: more launches, each too small to fill it.)

With channels_last, channels are contiguous in V, U and the products too, so that neighbouring lanes read and write neighbouring
elements.

Mirrors cuda_reference/conv2d/winograd.cuh.
"""

from typing import Any, NamedTuple

import torch

from ..config import config_of
from ..cook_toom import transform
from ..design import Design
from ..integers import ceil_div
from ..language.convolution import Geometry
from ..language.dot import widened
from ..language.epilogue import rounded
from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Filters, Images, Vector
from ..language.tiles import span
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from ..matmul import pipelined
from ..operations.conv2d.points import OUTPUTS, images_at_once, product_at_points, refuses_winograd
from ..operations.conv2d.work import of_winograd
from ..problem import needs_wide_offsets
from .parts.transforms import across, of_inputs, of_taps, to_outputs


class Tiles(NamedTuple):
    """Tiles of M x M outputs: how many there are, some of no image, and the rows and columns of an image's."""

    count: Any
    rows: Any
    cols: Any


@triton.jit
def place_of(index, CHANNELS, tiles, CHANNELS_INSIDE: tl.constexpr):
    """(channel, tile) of an element of V or of the products; with CHANNELS_INSIDE a group's channels are innermost."""
    if CHANNELS_INSIDE:
        return index // CHANNELS // tiles * CHANNELS + index % CHANNELS, index // CHANNELS % tiles
    else:
        return index // tiles, index % tiles


@triton.jit
def _filters_kernel(
    weight: Filters, u, g: Geometry, elements,
    OUTPUTS: tl.constexpr, BLOCK: tl.constexpr, CHANNELS_INSIDE: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """u (points, groups, K / groups, C / groups), or with CHANNELS_INSIDE (points, groups, C / groups, K / groups): `elements`
    at a point. WIDE, here and below: offsets need 64 bits.
    """
    wait_for_earlier_kernels()
    SUMS: tl.constexpr = u.dtype.element_ty
    program = tl.program_id(0)
    if WIDE:
        program = program.to(tl.int64)
    index = span(program * BLOCK, BLOCK, WIDE)
    if CHANNELS_INSIDE:
        k = index // g.k_per_group // g.c_per_group * g.k_per_group + index % g.k_per_group
        c = index // g.k_per_group % g.c_per_group
    else:
        k = index // g.c_per_group
        c = index % g.c_per_group
    valid = index < elements
    tap_ptrs = weight.ptr + k * weight.k + c * weight.c
    columns = ()
    for _ in tl.static_range(3):
        row_ptrs = tap_ptrs  # pointers advance by strides: a tap's index times its stride could exceed 32 bits
        taps = ()
        for _ in tl.static_range(3):
            taps += (widened(tl.load(row_ptrs, mask=valid, other=0), SUMS),)
            row_ptrs += weight.r
        columns += (of_taps(taps, OUTPUTS),)
        tap_ptrs += weight.s
    u_ptrs = u + index
    for i in tl.static_range(OUTPUTS + 2):
        points = of_taps(across(columns, i), OUTPUTS)
        for j in tl.static_range(OUTPUTS + 2):
            tl.store(u_ptrs, points[j], mask=valid)
            u_ptrs += elements


@triton.jit
def _inputs_kernel(
    input: Images, v, g: Geometry, tiles: Tiles, elements,
    OUTPUTS: tl.constexpr, BLOCK: tl.constexpr, CHANNELS_INSIDE: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """v (points, C, tiles), or with CHANNELS_INSIDE (points, groups, tiles, C / groups): `elements` at a point."""
    wait_for_earlier_kernels()
    SUMS: tl.constexpr = v.dtype.element_ty
    program = tl.program_id(0)
    if WIDE:
        program = program.to(tl.int64)
    index = span(program * BLOCK, BLOCK, WIDE)
    c, tile = place_of(index, g.c_per_group, tiles.count, CHANNELS_INSIDE)
    image = tile // tiles.cols // tiles.rows
    h = tile // tiles.cols % tiles.rows * OUTPUTS - g.padding_h
    w = tile % tiles.cols * OUTPUTS - g.padding_w
    inside = index < elements
    plane_ptrs = input.ptr + image * input.n + c * input.c
    columns = ()
    for s in tl.static_range(OUTPUTS + 2):
        column_ptrs = plane_ptrs + (w + s) * input.w
        in_column = inside & (image < g.N) & (w + s >= 0) & (w + s < g.W)
        pixels = ()
        for r in tl.static_range(OUTPUTS + 2):
            there = in_column & (h + r >= 0) & (h + r < g.H)
            pixels += (widened(tl.load(column_ptrs + (h + r) * input.h, mask=there, other=0), SUMS),)
        columns += (of_inputs(pixels, OUTPUTS),)
    v_ptrs = v + index
    for i in tl.static_range(OUTPUTS + 2):
        points = of_inputs(across(columns, i), OUTPUTS)
        for j in tl.static_range(OUTPUTS + 2):
            tl.store(v_ptrs, points[j], mask=inside)
            v_ptrs += elements


@triton.jit
def _outputs_kernel(
    products, bias: Vector, out: Images, g: Geometry, tiles: Tiles, elements,
    OUTPUTS: tl.constexpr, BLOCK: tl.constexpr, CHANNELS_INSIDE: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """products (points, K, tiles), or with CHANNELS_INSIDE (points, groups, tiles, K / groups): `elements` at a point."""
    wait_for_earlier_kernels()
    SUMS: tl.constexpr = products.dtype.element_ty
    program = tl.program_id(0)
    if WIDE:
        program = program.to(tl.int64)
    index = span(program * BLOCK, BLOCK, WIDE)
    k, tile = place_of(index, g.k_per_group, tiles.count, CHANNELS_INSIDE)
    image = tile // tiles.cols // tiles.rows
    p = tile // tiles.cols % tiles.rows * OUTPUTS
    q = tile % tiles.cols * OUTPUTS
    inside = (index < elements) & (image < g.N)
    column_ptrs = products + index
    if WIDE:
        elements = tl.cast(elements, tl.int64)  # those of several points may be too many for 32 bits
    columns = ()
    for _ in tl.static_range(OUTPUTS + 2):
        point_ptrs = column_ptrs
        points = ()
        for _ in tl.static_range(OUTPUTS + 2):
            points += (tl.load(point_ptrs, mask=inside, other=0),)
            point_ptrs += (OUTPUTS + 2) * elements
        columns += (to_outputs(points, OUTPUTS),)
        column_ptrs += elements
    first = tl.zeros((BLOCK,), SUMS)
    if bias is not None:
        first += widened(tl.load(bias.ptr + k * bias.step, mask=inside, other=0), SUMS)
    tile_ptrs = out.ptr + image * out.n + k * out.c + q * out.w
    for i in tl.static_range(OUTPUTS):
        row_ptrs = tile_ptrs + (p + i) * out.h
        in_row = inside & (p + i < g.P)
        y = to_outputs(across(columns, i), OUTPUTS)
        if CHANNELS_INSIDE:
            for j in tl.static_range(OUTPUTS):
                tl.store(row_ptrs + j * out.w, rounded(y[j] + first, out.ptr.dtype.element_ty), mask=in_row & (q + j < g.Q))
        else:  # a row of a tile side by side, so that neighbouring lanes write neighbours
            if OUTPUTS == 2:
                row = tl.join(y[0], y[1])
            else:
                row = tl.reshape(tl.join(tl.join(y[0], y[2]), tl.join(y[1], y[3])), (BLOCK, OUTPUTS))
            j = span(0, OUTPUTS, WIDE)
            row_inside = in_row[:, None] & (q[:, None] + j[None, :] < g.Q)
            row = rounded(row + first[:, None], out.ptr.dtype.element_ty)
            tl.store(row_ptrs[:, None] + j[None, :] * out.w, row, mask=row_inside)


def configs(problem, target):
    """Both variants, each with the configs of matmul's design for the product."""
    for outputs in OUTPUTS:
        product = product_at_points(problem, outputs, images_at_once(problem, outputs))
        own = {"OUTPUTS": outputs, "BLOCK": 128 if target.is_gpu else 2**12}
        for config in pipelined.configs(product, target):
            yield config_of({**config.kwargs, **own}, num_warps=config.num_warps, num_stages=config.num_stages)


def launches(problem, config, input, weight, bias, out):
    outputs, block, inside = config.kwargs["OUTPUTS"], config.kwargs["BLOCK"], problem.channels_last
    images = images_at_once(problem, outputs)
    product = product_at_points(problem, outputs, images)
    like = {"dtype": product.dtype, "device": out.device}
    batch, rows, cols, depth = product.batch, product.m, product.n, product.k
    a, b, products = (torch.empty(batch, *shape, **like) for shape in ((rows, depth), (depth, cols), (rows, cols)))
    u, v = (b, a) if inside else (a, b)
    tiles = Tiles(rows if inside else cols, ceil_div(problem.p, outputs), ceil_div(problem.q, outputs))
    lanes = triton.Config({"OUTPUTS": outputs, "BLOCK": block, "CHANNELS_INSIDE": inside}, num_warps=4, num_stages=1)
    wide = problem.wide or needs_wide_offsets(u, v, products)

    def over(kernel, points, *given):
        elements = points.numel() // (outputs + 2) ** 2
        return TritonLaunch(kernel, (ceil_div(elements, block),), lanes, *given, elements, WIDE=wide)

    for first in range(0, problem.n, images):
        part = slice(first, first + images)
        g = Geometry.of(problem)._replace(N=min(images, problem.n - first))
        if first == 0 and u.numel():
            yield over(_filters_kernel, u, Filters.of(weight), u, g)
        if v.numel():
            yield over(_inputs_kernel, v, Images.of(input[part]), v, g, tiles)
        yield from pipelined.DESIGN.launches(product, config, a, b, None, None, products)
        yield over(_outputs_kernel, products, products, Vector.of(bias), Images.of(out[part]), g, tiles)


def work(problem, config, target):
    outputs, images = config.kwargs["OUTPUTS"], images_at_once(problem, config.kwargs["OUTPUTS"])
    product = product_at_points(problem, outputs, images)
    of_product = pipelined.DESIGN.work(product, config, target)
    return of_winograd(problem, outputs, images, (product.m, product.n, product.k), of_product, config.kwargs["BLOCK"])


DESIGN = Design(
    refuses=refuses_winograd,
    configs=configs,
    launches=launches,
    work=work,
    transform=lambda numbers: transform(numbers["OUTPUTS"]),
)
