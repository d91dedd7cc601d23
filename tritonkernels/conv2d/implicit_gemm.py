"""conv2d, implicit GEMM: a matrix product of (pixels, taps x channels) and (taps x channels, output channels) on tensor cores.

Every output is an inner product of R S C terms, so a convolution is a product of M = N P Q rows, one per output pixel, and
N = K columns. The left matrix holds each input R S times and is never written (im2col would write it): its elements are
gathered from the input when a slice is staged in shared memory, with zeros for padding. The rows are one flat axis over images
and pixels, so planes of 7 x 7 fill tiles as well as large ones.

The loop has no division. A slice is BLOCK_K channels of one tap, (r, s, c), advanced by additions with carries. With few
channels in a group, that would pad each tap to BLOCK_K. So FLAT slices run over taps: every lane has its own (r, s, c),
advanced in the same way. So 7 x 7 taps of 3 channels are 3 slices of 64 products, not 49.

Lanes go along channels where these are contiguous (channels_last), 16 bytes each, or along pixels (NCHW, PIXELS_INSIDE), where
the tile is transposed: output channels times pixels. Filters whose channels are apart are copied once, with contiguous
channels, where many pixels read them. So are both operands of tf32 on Hopper if they are read often, and rounded in the copy:
WGMMA does not round operands in shared memory, and stalls on operands in registers.

Groups whose channels are no chunks of 16 bytes would be gathered element by element; COPIED, each group's are padded with
zeros to whole chunks first, of inputs and filters alike.

Where there are few tiles, SPLIT_K programs share one, each with its range of slices. The last of them to arrive adds their sums
in order, so the bits are always the same. For fp32 on CUDA cores there are larger tiles in Gluon, too: parts/cuda_cores.py.

Mirrors cuda_reference/conv2d/implicit_gemm.cuh.
"""

import math
from typing import Any, NamedTuple

from ..batches import merges
from ..choice.work import copy
from ..config import config_with
from ..design import Design
from ..integers import ceil_div
from ..language.activation import activated
from ..language.channels_last import are_in_chunks, copied, in_chunks
from ..language.convolution import Geometry, operands
from ..language.dot import faithful_dot, widened
from ..language.epilogue import rounded
from ..language.last_to_arrive import last_to_arrive, sum_in_order
from ..language.on_target import lacks_products
from ..language.overlap import wait_for_earlier_kernels
from ..language.packed import packed
from ..language.structs import Filters, Images, Vector
from ..language.tiles import grouped_tile, span
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from ..operations.conv2d import chunks
from ..operations.conv2d.work import gathered, of_product
from ..problem import needs_wide_offsets
from ..workspace import counters, partial_sums
from .parts import cuda_cores
from .parts.columns import next_slice
from .parts.lanes import load_along, store_along
from .parts.slices import channels_of_a_tap, count_slices, count_tiles, rows_by_element, sizes
from .parts.slices import configs as of_dot

ENOUGH = 32  # tiles of pixels


@triton.jit
def along(x, AXIS: tl.constexpr):
    """A vector along that axis of a tile."""
    return tl.expand_dims(x, 1 - AXIS)


@triton.jit
def load_rows(ptr, left, right, mask, VECTOR: tl.constexpr):
    """The tile at ptr + left + right. It tells the compiler what it cannot prove: a row has aligned runs of VECTOR."""
    offsets = left + right
    if VECTOR > 1:
        offsets = tl.multiple_of(tl.max_contiguous(offsets, (1, VECTOR)), (1, VECTOR))
        return tl.load(ptr + offsets, mask=mask, other=0)
    else:
        return load_along(False, ptr, offsets, mask)


@triton.jit
def both_in_vectors(left, right, VECTOR: tl.constexpr):
    """left & right, masks that are constant in such runs."""
    return tl.max_constancy(left & right, (1, VECTOR))


class Product(NamedTuple):
    """The sizes of the matrix product."""

    pixels: Any  # N P Q
    channels: Any  # of a tap, in slices: c_per_group, or the next multiple of BLOCK_K
    slices: Any
    slices_per_split: Any


class How(NamedTuple):
    """The kernel's constants besides its tile."""

    GROUP_M: Any
    SPLIT_K: Any
    FLAT: Any  # slices run over taps
    WHOLE: Any  # every slice is BLOCK_K channels, none left over
    PIXELS_INSIDE: Any  # the input's pixels are closer together than its channels
    OUT_PIXELS_INSIDE: Any
    X_VECTOR: Any  # contiguous, aligned channels of the input
    W_VECTOR: Any  # of a filter
    PRECISION: Any
    ARE_TF32: Any  # operands are rounded already
    ACTIVATION: Any


@triton.jit
def _implicit_gemm_kernel(
    g: Geometry,  # not the last: then ptxas takes up to 32 registers more
    input: Images, weight: Filters, bias: Vector, out: Images, residual: Images, workspace, counters, product: Product,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, how: How, WIDE: tl.constexpr,
):  # fmt: skip
    """bias and residual may be None. Where there are splits, workspace is (tiles, SPLIT_K, BLOCK_M * BLOCK_N) and counters are
    zeros, one a tile. WIDE: offsets need 64 bits.
    """
    wait_for_earlier_kernels()
    # Lanes lie along the rows of a tile, so that what is closer together is there.
    M_AXIS: tl.constexpr = 1 if how.PIXELS_INSIDE else 0  # of the sums; K is the other of the input's
    K_AXIS: tl.constexpr = 1 - M_AXIS
    OUT_AXIS: tl.constexpr = 1 if how.OUT_PIXELS_INSIDE else 0  # of the pixels in the result
    tiles_m = tl.cdiv(product.pixels, BLOCK_M)
    tiles_n = tl.cdiv(g.k_per_group, BLOCK_N)
    tiles = tiles_m * tiles_n
    split = tl.program_id(0) // (g.groups * tiles)
    index = tl.program_id(0) % (g.groups * tiles)
    group = index // tiles
    tile_m, tile_n = grouped_tile(index % tiles, tiles_m, tiles_n, how.GROUP_M)
    if WIDE:
        group = group.to(tl.int64)
        tile_m = tile_m.to(tl.int64)
    pixel = span(tile_m * BLOCK_M, BLOCK_M, WIDE)
    q = pixel % g.Q
    p = pixel // g.Q % g.P
    image = pixel // g.Q // g.P
    k = span(tile_n * BLOCK_N, BLOCK_N, WIDE)

    h0 = along(p * g.step_h - g.padding_h, M_AXIS)
    w0 = along(q * g.step_w - g.padding_w, M_AXIS)
    origin = along(image * input.n + group * g.c_per_group * input.c, M_AXIS) + h0 * input.h + w0 * input.w
    of_image = along(pixel < product.pixels, M_AXIS)
    of_filter = along(k < g.k_per_group, 0)
    filters = along((group * g.k_per_group + k) * weight.k, 0)

    first = split * product.slices_per_split
    at = first * BLOCK_K
    if how.FLAT:
        at = span(at, BLOCK_K, WIDE)
    elif WIDE:
        at = at.to(tl.int64)
    c = at % product.channels
    s = at // product.channels % g.S
    r = at // product.channels // g.S
    step = BLOCK_K % product.channels, BLOCK_K // product.channels % g.S, BLOCK_K // product.channels // g.S

    SUMS: tl.constexpr = tl.float64 if out.ptr.dtype.element_ty == tl.float64 else tl.float32
    acc = tl.zeros((BLOCK_N, BLOCK_M) if how.PIXELS_INSIDE else (BLOCK_M, BLOCK_N), SUMS)
    for _ in range(first, min(first + product.slices_per_split, product.slices)):
        channel = c if how.FLAT else c + tl.arange(0, BLOCK_K)
        of_x = channel * input.c + (r * g.dilation_h * input.h + s * g.dilation_w * input.w)
        of_w = channel * weight.c + (r * weight.r + s * weight.s)
        h = h0 + (along(r * g.dilation_h, K_AXIS) if how.FLAT else r * g.dilation_h)
        w = w0 + (along(s * g.dilation_w, K_AXIS) if how.FLAT else s * g.dilation_w)
        x_inside = of_image & (h >= 0) & (h < g.H) & (w >= 0) & (w < g.W)
        w_inside = of_filter
        if not how.WHOLE:
            inside = r < g.R if how.FLAT else channel < g.c_per_group
            x_inside = both_in_vectors(x_inside, along(inside, K_AXIS), how.X_VECTOR)
            w_inside = both_in_vectors(w_inside, along(inside, 1), how.W_VECTOR)
        left = load_rows(input.ptr, origin, along(of_x, K_AXIS), x_inside, how.X_VECTOR)
        right = load_rows(weight.ptr, filters, along(of_w, 1), w_inside, how.W_VECTOR)
        if how.PIXELS_INSIDE:
            left, right = right, left
        else:
            right = tl.trans(right)
        acc = faithful_dot(left, right, acc, how.PRECISION, how.ARE_TF32)
        c, s, r = next_slice((c, s, r), step, g.S, product.channels)

    offsets = places(out, image, p, q, group * g.k_per_group + k, OUT_AXIS)
    added = None
    if residual is not None:
        added = residual.ptr, places(residual, image, p, q, group * g.k_per_group + k, OUT_AXIS)
    pixel_inside = along(pixel < product.pixels, OUT_AXIS)
    k_inside = along(k < g.k_per_group, 1 - OUT_AXIS)
    bias_ptrs = None
    if bias is not None:
        bias_ptrs = bias.ptr + group * g.k_per_group * bias.step + along(k, 1 - OUT_AXIS) * bias.step
    if how.SPLIT_K == 1:
        finish(acc, bias_ptrs, added, out, offsets, pixel_inside, k_inside, OUT_AXIS != M_AXIS, how.ACTIVATION)
    else:
        SIZE: tl.constexpr = BLOCK_M * BLOCK_N
        within = tl.arange(0, acc.shape[0])[:, None] * acc.shape[1] + tl.arange(0, acc.shape[1])[None, :]
        place = workspace + index.to(tl.int64) * (how.SPLIT_K * SIZE) + within
        tl.store(place + split * SIZE, acc)
        if last_to_arrive(counters + index, how.SPLIT_K):
            acc = sum_in_order(place, SIZE, how.SPLIT_K, how.SPLIT_K)
            finish(acc, bias_ptrs, added, out, offsets, pixel_inside, k_inside, OUT_AXIS != M_AXIS, how.ACTIVATION)


@triton.jit
def places(images: Images, image, p, q, k, AXIS: tl.constexpr):
    """The offsets of a tile's pixels, along that axis, and channels."""
    return along(image * images.n + p * images.h + q * images.w, AXIS) + along(k * images.c, 1 - AXIS)


@triton.jit
def finish(
    acc, bias_ptrs, added, out: Images, offsets, pixel_inside, k_inside, ACROSS: tl.constexpr, ACTIVATION: tl.constexpr
):  # fmt: skip
    """Add bias and residual, if there are any, apply the activation, and write the part of the tile that is inside the result.
    added: the residual's pointer and offsets. ACROSS: acc's axes are the result's the other way round."""
    if ACROSS:
        acc = tl.trans(acc)
    if bias_ptrs is not None:
        acc += widened(tl.load(bias_ptrs, mask=k_inside, other=0), acc.dtype)
    if added is not None:
        acc += widened(load_along(False, *added, pixel_inside & k_inside), acc.dtype)
    acc = activated(acc, ACTIVATION, out.ptr.dtype.element_ty.primitive_bitwidth == 16)
    store_along(False, out.ptr, offsets, rounded(acc, out.ptr.dtype.element_ty), pixel_inside & k_inside)


def refuses(problem, target):
    return lacks_products(problem.precision, target)


def configs(problem, target):
    yield from of_dot(problem, target)
    if problem.groups > 1 and problem.precision in ("fp16", "bf16", "tf32") and chunks.copies_pay(problem):
        yield from (config_with(config, COPIED=True) for config in of_dot(chunks.of_copies(problem), target))
    yield from cuda_cores.configs(problem, target)


def _is_in_gluon(config):
    return "FLAT" not in config.kwargs


def launches(problem, config, input, weight, bias, out, residual=None):
    if _is_in_gluon(config):
        yield from cuda_cores.launches(problem, config, input, weight, bias, out, residual)
        return
    tile, split_k = config.kwargs, config.kwargs["SPLIT_K"]
    if "COPIED" in tile:
        (input,), copies = in_chunks((input, are_in_chunks), groups=problem.groups)
        yield from copies
        (weight,), copies = in_chunks((weight, are_in_chunks))
        yield from copies
        problem = chunks.of_copies(problem)
    tiles, slices = count_tiles(problem, tile), count_slices(problem, tile)
    are_tf32 = tile["PACK"] and merges(input, 2) and merges(weight, 2)
    if are_tf32:
        copies, input = _copied(input, to_tf32=True)
        yield from copies
    if are_tf32 or (merges(weight, 2) and _pays_to_copy(problem, tile, weight)):
        copies, weight = _copied(weight, to_tf32=are_tf32)
        yield from copies
    pixels_inside, out_pixels_inside = (t.stride(3) < t.stride(1) for t in (input, out))
    whole = problem.c // problem.groups % tile["BLOCK_K"] == 0 and not tile["FLAT"]
    vectors = 1 if pixels_inside else _side_by_side(input, problem), _side_by_side(weight, problem)
    order = tile["GROUP_M"], split_k, tile["FLAT"], whole, pixels_inside, out_pixels_inside
    how = How(*map(tl.constexpr, (*order, *vectors, problem.precision, are_tf32, problem.activation)))
    pixels = problem.n * problem.p * problem.q
    product = Product(pixels, channels_of_a_tap(problem, tile), slices, ceil_div(slices, split_k))
    sums = arrivals = None
    if split_k > 1:
        sums = partial_sums(split_k, tiles * tile["BLOCK_M"] * tile["BLOCK_N"], out)
        arrivals = counters(tiles, out)
    structs = (Geometry.of(problem), *operands(input, weight, bias, out), Images.of(residual), sums, arrivals, product)
    wide = needs_wide_offsets(input, weight, bias, out, residual)
    yield TritonLaunch(_implicit_gemm_kernel, (tiles * split_k,), config, *structs, how=how, WIDE=wide)


def _pays_to_copy(problem, tile, weight):
    """Whether the channels of a filter are not contiguous and at least ENOUGH tiles of pixels read them."""
    return weight.stride(1) != 1 and weight.shape[1] > 1 and _enough_tiles(problem, tile)


def _enough_tiles(problem, tile):
    return problem.n * problem.p * problem.q >= ENOUGH * tile["BLOCK_M"] and not tile["FLAT"]


def _copied(t, to_tf32):
    """(the launches that fill it, the copy), with contiguous channels, aligned for vectors."""
    launches, copy = packed(t.flatten(2), to_tf32)
    return launches, copy.unflatten(2, t.shape[2:])


def _side_by_side(t, problem):
    """How many contiguous channels of a group one aligned load of up to 16 bytes takes, at every pixel."""
    apart = [stride for dim, (size, stride) in enumerate(zip(t.shape, t.stride())) if dim != 1 and size > 1]
    if t.stride(1) != 1:
        return 1
    whole = math.gcd(problem.c // problem.groups, *apart) * t.element_size()
    return max(1, math.gcd(whole, t.data_ptr(), 16) // t.element_size())


def work(problem, config, target):
    if _is_in_gluon(config):
        return cuda_cores.work(problem, config, target)
    tile, itemsize, taps = config.kwargs, problem.dtype.itemsize, problem.r * problem.s
    copies, packs = [], tile["PACK"]
    if "COPIED" in tile:
        copies += copied(problem, (problem.n, problem.c, problem.h * problem.w), groups=problem.groups)
        copies += copied(problem, (problem.k, problem.c // problem.groups, taps))
        problem = chunks.of_copies(problem)
    m, n, channels = sizes(problem)
    copies += [copy(problem.n, problem.c, problem.h * problem.w, itemsize)] if packs else []
    if packs or (not problem.channels_last and taps > 1 and channels > 1 and _enough_tiles(problem, tile)):
        copies.append(copy(problem.k, channels, taps, itemsize))
    shape = tile["BLOCK_M"], tile["BLOCK_N"], tile["BLOCK_K"]
    a_slice = gathered(problem, shape, 0 if packs else rows_by_element(problem, tile))
    given = count_slices(problem, tile), tile["SPLIT_K"], a_slice, problem.precision
    threads = target.warp_size * config.num_warps
    return *copies, of_product(problem, m, n, shape, *given, threads, config.num_stages)


DESIGN = Design(refuses=refuses, configs=configs, launches=launches, work=work)
