"""conv2d, winograd: tiles of M x M outputs of a 3 x 3 filter from (M + 2)^2 products a channel instead of 9 M^2.

F(2 x 2, 3 x 3) takes 16 products where the direct sum takes 36, 2.25 times fewer; F(4 x 4, 3 x 3) takes 36 for 144, 4 times
(A. Lavin and S. Gray, Fast algorithms for convolutional neural networks, 2016). cook_toom.py has the matrices and what they
cost: the result is a rounding or two of S' off, not of S, which is 7 and 40 times as large.

Filters and tiles of inputs are transformed once each into a workspace, U and V, point by point. What is left at each of the
(M + 2)^2 points is a matrix product over the channels, U V, and all of them are one batch: matmul's `pipelined`, with its
configs. A last kernel transforms the products of a tile to its outputs. V and the products are (1 + 2 / M)^2 = 4 or 2.25 times
as large as what they are of; where they would take more than a gigabyte, they are made for some of the images at a time. (Only
for as many as L2 holds, an H200 took longer: more launches, each too small to fill it.)

With channels_last, channels lie side by side in V, U and the products too: whatever lies side by side in memory is read and
written by neighbouring lanes.

Mirrors cuda_reference/conv2d/winograd.cuh.
"""

import itertools

import torch
import triton
import triton.language as tl

from ..cook_toom import transform
from ..design import Design
from ..language.dot import widened
from ..language.epilogue import rounded
from ..language.tiles import span
from ..launch import TritonLaunch
from ..matmul import pipelined
from ..problem import needs_wide_offsets
from .parts.operands import arguments
from .parts.points import images_at_once, product_at_points, refuses_winograd, winograd_variants
from .parts.transforms import across, of_inputs, of_taps, to_outputs


@triton.jit
def place_of(index, CHANNELS, tiles, CHANNELS_INSIDE: tl.constexpr):
    """(channel, tile) of an element of V or of the products; with CHANNELS_INSIDE a group's channels are innermost."""
    if CHANNELS_INSIDE:
        return index // CHANNELS // tiles * CHANNELS + index % CHANNELS, index // CHANNELS % tiles
    else:
        return index // tiles, index % tiles


@triton.jit
def _filters_kernel(
    weight_ptr,  # (K, C / GROUPS, 3, 3)
    u_ptr,  # (POINTS, GROUPS, K / GROUPS, C / GROUPS); channels inside: (POINTS, GROUPS, C / GROUPS, K / GROUPS)
    C_PER_GROUP,
    K_PER_GROUP,
    filters,  # at one point
    stride_wk,
    stride_wc,
    stride_wr,
    stride_ws,
    OUTPUTS: tl.constexpr,
    BLOCK: tl.constexpr,
    CHANNELS_INSIDE: tl.constexpr,
    WIDE: tl.constexpr,  # offsets need 64 bits
):
    SUMS: tl.constexpr = u_ptr.dtype.element_ty
    program = tl.program_id(0)
    if WIDE:
        program = program.to(tl.int64)
    index = span(program * BLOCK, BLOCK, WIDE)
    if CHANNELS_INSIDE:
        k = index // K_PER_GROUP // C_PER_GROUP * K_PER_GROUP + index % K_PER_GROUP
        c = index // K_PER_GROUP % C_PER_GROUP
    else:
        k = index // C_PER_GROUP
        c = index % C_PER_GROUP
    valid = index < filters
    tap_ptrs = weight_ptr + k * stride_wk + c * stride_wc
    columns = ()
    for _ in tl.static_range(3):
        row_ptrs = tap_ptrs  # pointers step by strides: a tap's index times its stride could leave 32 bits
        taps = ()
        for _ in tl.static_range(3):
            taps += (widened(tl.load(row_ptrs, mask=valid, other=0), SUMS),)
            row_ptrs += stride_wr
        columns += (of_taps(taps, OUTPUTS),)
        tap_ptrs += stride_ws
    u_ptrs = u_ptr + index
    for i in tl.static_range(OUTPUTS + 2):
        points = of_taps(across(columns, i), OUTPUTS)
        for j in tl.static_range(OUTPUTS + 2):
            tl.store(u_ptrs, points[j], mask=valid)
            u_ptrs += filters


@triton.jit
def _inputs_kernel(
    input_ptr,  # (IMAGES, C, H, W)
    v_ptr,  # (POINTS, C, tiles); channels inside: (POINTS, GROUPS, tiles, C / GROUPS)
    H,
    W,
    C_PER_GROUP,
    images,
    tiles,  # of all images, and such as are of none
    tiles_p,
    tiles_q,
    v_elements,  # at one point
    PADDING_H,
    PADDING_W,
    stride_in,
    stride_ic,
    stride_ih,
    stride_iw,
    OUTPUTS: tl.constexpr,
    BLOCK: tl.constexpr,
    CHANNELS_INSIDE: tl.constexpr,
    WIDE: tl.constexpr,  # offsets need 64 bits
):
    SUMS: tl.constexpr = v_ptr.dtype.element_ty
    program = tl.program_id(0)
    if WIDE:
        program = program.to(tl.int64)
    index = span(program * BLOCK, BLOCK, WIDE)
    c, tile = place_of(index, C_PER_GROUP, tiles, CHANNELS_INSIDE)
    image = tile // tiles_q // tiles_p
    h = tile // tiles_q % tiles_p * OUTPUTS - PADDING_H
    w = tile % tiles_q * OUTPUTS - PADDING_W
    inside = index < v_elements
    plane_ptrs = input_ptr + image * stride_in + c * stride_ic
    columns = ()
    for s in tl.static_range(OUTPUTS + 2):
        column_ptrs = plane_ptrs + (w + s) * stride_iw
        in_column = inside & (image < images) & (w + s >= 0) & (w + s < W)
        pixels = ()
        for r in tl.static_range(OUTPUTS + 2):
            there = in_column & (h + r >= 0) & (h + r < H)
            pixels += (widened(tl.load(column_ptrs + (h + r) * stride_ih, mask=there, other=0), SUMS),)
        columns += (of_inputs(pixels, OUTPUTS),)
    v_ptrs = v_ptr + index
    for i in tl.static_range(OUTPUTS + 2):
        points = of_inputs(across(columns, i), OUTPUTS)
        for j in tl.static_range(OUTPUTS + 2):
            tl.store(v_ptrs, points[j], mask=inside)
            v_ptrs += v_elements


@triton.jit
def _outputs_kernel(
    products_ptr,  # (POINTS, K, tiles); channels inside: (POINTS, GROUPS, tiles, K / GROUPS)
    bias_ptr,  # (K,), None without HAS_BIAS
    out_ptr,  # (IMAGES, K, P, Q)
    P,
    Q,
    K_PER_GROUP,
    images,
    tiles,
    tiles_p,
    tiles_q,
    products,  # at one point
    stride_bias,
    stride_on,
    stride_ok,
    stride_op,
    stride_oq,
    OUTPUTS: tl.constexpr,
    BLOCK: tl.constexpr,
    CHANNELS_INSIDE: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    WIDE: tl.constexpr,  # offsets need 64 bits
):
    SUMS: tl.constexpr = products_ptr.dtype.element_ty
    program = tl.program_id(0)
    if WIDE:
        program = program.to(tl.int64)
    index = span(program * BLOCK, BLOCK, WIDE)
    k, tile = place_of(index, K_PER_GROUP, tiles, CHANNELS_INSIDE)
    image = tile // tiles_q // tiles_p
    p = tile // tiles_q % tiles_p * OUTPUTS
    q = tile % tiles_q * OUTPUTS
    inside = (index < products) & (image < images)
    column_ptrs = products_ptr + index
    columns = ()
    for _ in tl.static_range(OUTPUTS + 2):
        point_ptrs = column_ptrs
        points = ()
        for _ in tl.static_range(OUTPUTS + 2):
            points += (tl.load(point_ptrs, mask=inside, other=0),)
            point_ptrs += (OUTPUTS + 2) * products
        columns += (to_outputs(points, OUTPUTS),)
        column_ptrs += products
    bias = tl.zeros((BLOCK,), SUMS)
    if HAS_BIAS:
        bias += widened(tl.load(bias_ptr + k * stride_bias, mask=inside, other=0), SUMS)
    tile_ptrs = out_ptr + image * stride_on + k * stride_ok + q * stride_oq
    for i in tl.static_range(OUTPUTS):
        row_ptrs = tile_ptrs + (p + i) * stride_op
        in_row = inside & (p + i < P)
        y = to_outputs(across(columns, i), OUTPUTS)
        if CHANNELS_INSIDE:
            for j in tl.static_range(OUTPUTS):
                tl.store(row_ptrs + j * stride_oq, rounded(y[j] + bias, out_ptr.dtype.element_ty), mask=in_row & (q + j < Q))
        else:  # a row of a tile side by side, so that neighbouring lanes write neighbours
            if OUTPUTS == 2:
                row = tl.join(y[0], y[1])
            else:
                row = tl.reshape(tl.join(tl.join(y[0], y[2]), tl.join(y[1], y[3])), (BLOCK, OUTPUTS))
            j = span(0, OUTPUTS, WIDE)
            row_inside = in_row[:, None] & (q[:, None] + j[None, :] < Q)
            row = rounded(row + bias[:, None], out_ptr.dtype.element_ty)
            tl.store(row_ptrs[:, None] + j[None, :] * stride_oq, row, mask=row_inside)


def configs(problem, target):
    """Both variants, each with the first of matmul's tiles for the product."""
    for outputs in winograd_variants(problem, target):
        product = product_at_points(problem, outputs, images_at_once(problem, outputs))
        own = {"OUTPUTS": outputs, "BLOCK": 128 if target.is_gpu else 2**12}
        for config in itertools.islice(pipelined.configs(product, target), 3):
            yield triton.Config({**config.kwargs, **own}, num_warps=config.num_warps, num_stages=config.num_stages)


def launches(problem, config, input, weight, bias, out):
    outputs, block, inside = config.kwargs["OUTPUTS"], config.kwargs["BLOCK"], problem.channels_last
    images = images_at_once(problem, outputs)
    product = product_at_points(problem, outputs, images)
    like = {"dtype": product.dtype, "device": out.device}
    batch, rows, cols, depth = product.batch, product.m, product.n, product.k
    a, b, products = (torch.empty(batch, *shape, **like) for shape in ((rows, depth), (depth, cols), (rows, cols)))
    u, v = (b, a) if inside else (a, b)
    lanes = triton.Config({"OUTPUTS": outputs, "BLOCK": block, "CHANNELS_INSIDE": inside}, num_warps=4, num_stages=1)
    points = (outputs + 2) ** 2
    common = {
        "u_ptr": u,
        "v_ptr": v,
        "products_ptr": products,
        "filters": u.numel() // points,
        "v_elements": v.numel() // points,
        "products": products.numel() // points,
        "tiles": rows if inside else cols,
        "tiles_p": triton.cdiv(problem.p, outputs),
        "tiles_q": triton.cdiv(problem.q, outputs),
    }
    wide = {"WIDE": problem.wide or needs_wide_offsets(u, v, products)}
    for first in range(0, problem.n, images):
        part = slice(first, first + images)
        given = arguments(problem, input[part], weight, bias, out[part]) | common | wide
        given["images"] = min(images, problem.n - first)
        if first == 0 and u.numel():
            yield TritonLaunch(_filters_kernel, (triton.cdiv(common["filters"], block),), lanes, given)
        if v.numel():
            yield TritonLaunch(_inputs_kernel, (triton.cdiv(common["v_elements"], block),), lanes, given)
        yield from pipelined.DESIGN.launches(product, config, a, b, None, None, products)
        yield TritonLaunch(_outputs_kernel, (triton.cdiv(common["products"], block),), lanes, given)


DESIGN = Design(
    name="winograd",
    summary="tiles of 4 x 4 or 2 x 2 outputs of a 3 x 3 filter by a quarter or a half of the products, as a batch of matmuls",
    mirrors="conv2d: what cuDNN calls WINOGRAD_NONFUSED",
    refuses=refuses_winograd,
    configs=configs,
    launches=launches,
    transform=lambda numbers: transform(numbers["OUTPUTS"]),
)
