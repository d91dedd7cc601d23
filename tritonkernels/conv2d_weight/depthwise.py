"""conv2d_weight, depthwise: a lane holds all sums of a filter in registers and walks patches of DOWN x ACROSS positions.

The filter has R S taps a channel, and every input meets up to R S gradients. `implicit_gemm` gathers it once for each: R S
loads for R S multiply-adds. Here a row of a patch's inputs is loaded once, and multiplied with each gradient that it meets.
Lanes lie along patches of a row in NCHW, where four neighbours are one load if rows are of aligned quads, and along channels in
channels_last, several of them a load. They add up their sums at the end; parts of the positions are added as in
language/position_sums.py. A filter of more than 7 x 7 taps is several of R x S, each with programs of its own.

In Gluon on a GPU, which compiles in 2 s what takes Triton 20; the interpreter runs the same source (parts/laid_out.py).

Mirrors cuda_reference/conv2d_weight/depthwise.cuh.
"""

import itertools
from typing import Any, NamedTuple

from triton.experimental.gluon.language import BlockedLayout, SliceLayout

from ..config import config_of
from ..design import Design
from ..integers import next_power_of_2
from ..language.convolution import Geometry
from ..language.dot import widened
from ..language.epilogue import rounded
from ..language.overlap import wait_for_earlier_kernels
from ..language.position_sums import Sums, added, launches_of_splits
from ..language.structs import Images
from ..operations.conv2d_weight.patches import (
    count_tiles,
    patches_per_split,
    refuses,
    splits_of,
    tile_of_taps,
    work_of,
)
from .parts.laid_out import along, arange, constexpr, constexpr_function, gl, jit, laid_out, span, threads, zeros

MOST_SUMS = 50  # of a lane
MOST_DOWN = 8
QUAD = 4  # neighbours of a row that are one load, where they are aligned
PER_SM = 12  # warps, with the registers that they need


class Patch(NamedTuple):
    """All constants: the tile of taps and their steps, the size of the patch.

    WHOLE  DOWN divides P, as ACROSS does Q
    PIECE  neighbours of a row that are one load: 4 of an aligned quad, or 1
    FIRST  a patch's first input is that element of its piece
    """

    R: Any
    S: Any
    STEP_H: Any
    STEP_W: Any
    DOWN: Any
    ACROSS: Any
    WHOLE: Any
    PIECE: Any
    FIRST: Any


@constexpr_function
def _layout(block, block_k, piece, threads):
    """The layout of (patches, channels), a thread's a piece or a vector of channels. Lanes lie along channels, then along
    patches, as warps do."""
    lanes, warps = threads
    vector = max(1, min(block_k, block * block_k // (lanes * warps)))
    across = min(lanes, block_k // vector)
    return SliceLayout(2, BlockedLayout([1, vector, piece], [lanes // across, across, 1], [warps, 1, 1], [2, 1, 0]))


@constexpr_function
def _of_piece(tile):
    """The layout of the elements of a thread's piece."""
    return SliceLayout(0, SliceLayout(1, tile.parent))


@jit
def _is_below(index, size):
    """Whether it is 0 to size - 1, in one comparison."""
    return index.to(gl.uint32) < gl.cast(size, gl.uint32)


@jit
def _load_row(ptr, offsets, first, step, inside, size, patch: Patch, COUNT: constexpr, TILE: constexpr, SUMS: constexpr):
    """COUNT neighbours, or more to end with a piece, from column `first` on, a tuple; zeros where there is none."""
    row = ()
    if patch.PIECE == 4:
        at = (offsets + first)[:, :, None] + arange(0, 4, _of_piece(TILE))[None, None, :]
        ptrs = ptr + gl.max_contiguous(gl.multiple_of(at, [1, 1, 4]), [1, 1, 4])
    else:
        ptrs = ptr + (offsets + first * step)
    for i in gl.static_range(0, COUNT, patch.PIECE):
        exists = inside & _is_below(first + i, size)
        if patch.PIECE == 4:
            quad = gl.load(ptrs if i == 0 else ptrs + i, mask=exists[:, :, None], other=0)
            row += _elements(quad, TILE, SUMS)
        else:
            row += (widened(gl.load(ptrs + i * step, mask=exists, other=0), SUMS),)
    return row


@jit
def _elements(quad, TILE: constexpr, SUMS: constexpr):
    """The elements of (patches, channels, 4), a tuple; a thread has them already."""
    even, odd = gl.split(gl.reshape(quad, (quad.shape[0], quad.shape[1], 2, 2)))
    even = gl.split(even)
    odd = gl.split(odd)
    elements = ()
    for i in gl.static_range(2):
        elements += (widened(laid_out(even[i], TILE), SUMS), widened(laid_out(odd[i], TILE), SUMS))
    return elements


@jit
def _multiplied(sums, x, gradients, patch: Patch, exist):
    """The sums of a row of taps, a tuple, after a row of inputs and one of gradients. If these may not `exist`, it says where
    they do: gradients are 0 elsewhere, and there 0 times an infinity would be a NaN."""
    factors = ()
    for i in gl.static_range(len(x)):
        factors += (x[i] if exist is None else gl.where(exist, x[i], 0.0),)
    after = ()
    for s in gl.static_range(patch.S):
        total = sums[s]
        for j in gl.static_range(patch.ACROSS):
            total += gradients[j] * factors[patch.FIRST + j * patch.STEP_W + s]
        after += (total,)
    return after


@jit
def _walk(sums, input, grad, g, at, first_r, first_s, patch: Patch, TILE: constexpr, SUMS: constexpr):
    """The sums of all taps, a tuple, after a patch `at` (image, k, p, q, exists) of each lane."""
    S: constexpr = patch.S
    STEP_H: constexpr = patch.STEP_H
    COLUMNS: constexpr = patch.FIRST + (patch.ACROSS - 1) * patch.STEP_W + S
    image, k, p, q, exists = at
    h = p * STEP_H - g.padding_h + first_r
    w = q * patch.STEP_W - g.padding_w + first_s - patch.FIRST
    of_grads = image * grad.n + k * grad.c + p * grad.h
    of_inputs = image * input.n + k // g.k_per_group * input.c + h * input.h
    gradients = ()
    for row in gl.static_range((patch.DOWN - 1) * STEP_H + patch.R):
        if row // STEP_H * STEP_H == row and row // STEP_H < patch.DOWN:
            inside = exists & (p + row // STEP_H < g.P)
            gradients += (_load_row(grad.ptr, of_grads, q, grad.w, inside, g.Q, patch, patch.ACROSS, TILE, SUMS),)
            of_grads += grad.h
        inside = exists & _is_below(h + row, g.H)
        x = _load_row(input.ptr, of_inputs, w, input.w, inside, g.W, patch, COLUMNS, TILE, SUMS)
        of_inputs += input.h
        after = ()
        for r in gl.static_range(patch.R):
            if row >= r and (row - r) // STEP_H * STEP_H == row - r and (row - r) // STEP_H < patch.DOWN:
                exist = None if patch.WHOLE else exists & (p + (row - r) // STEP_H < g.P)
                after += _multiplied(sums[r * S : (r + 1) * S], x, gradients[(row - r) // STEP_H], patch, exist)
            else:
                after += sums[r * S : (r + 1) * S]
        sums = after
    return sums


@jit
def _depthwise_kernel(
    input: Images, grad: Images, sums: Sums, g: Geometry, patches_per_split, patch: Patch,
    BLOCK: constexpr, BLOCK_K: constexpr, WIDE: constexpr,
):  # fmt: skip
    """`sums` are (splits, R, S, K), so that neighbouring lanes store side by side: its strides k, c, r are those of rows and
    columns of taps, and of channels. WIDE: 64-bit offsets."""
    wait_for_earlier_kernels()
    R: constexpr = patch.R
    S: constexpr = patch.S
    TILE: constexpr = _layout(BLOCK, BLOCK_K, patch.PIECE, threads())
    # program -> (split, channels, tile of taps), the last fastest
    tiles_s = gl.cdiv(g.S, S)
    tiles_r = gl.cdiv(g.R, R)
    blocks_k = gl.cdiv(g.K, BLOCK_K)
    program = gl.program_id(0)
    first_s = program % tiles_s * S
    first_r = program // tiles_s % tiles_r * R
    split = program // (tiles_s * tiles_r * blocks_k)
    if WIDE:
        split = split.to(gl.int64)
    of_k = span(program // (tiles_s * tiles_r) % blocks_k * BLOCK_K, BLOCK_K, along(TILE, 1), WIDE)
    k = of_k[None, :]
    SUMS: constexpr = gl.float64 if sums.ptr.dtype.element_ty == gl.float64 else gl.float32
    acc = ()
    for _ in gl.static_range(R * S):
        acc += (zeros((BLOCK, BLOCK_K), SUMS, TILE),)
    wide = g.Q // patch.ACROSS
    high = gl.cdiv(g.P, patch.DOWN)
    first = split * patches_per_split
    end = min(first + patches_per_split, g.N * high * wide)
    for turn in range(first, end, BLOCK):
        index = span(turn, BLOCK, along(TILE, 0), WIDE)[:, None]
        q = index % wide * patch.ACROSS
        p = index // wide % high * patch.DOWN
        exists = (index < end) & (k < g.K)
        at = index // wide // high, k, p, q, exists
        acc = _walk(acc, input, grad, g, at, first_r, first_s, patch, TILE, SUMS)
    for r in gl.static_range(R):
        for s in gl.static_range(S):
            total = rounded(gl.sum(acc[r * S + s], axis=0), sums.ptr.dtype.element_ty)
            at = split * sums.split + (first_r + r) * sums.k + (first_s + s) * sums.c + of_k * sums.r
            gl.store(sums.ptr + at, total, mask=(of_k < g.K) & (first_r + r < g.R) & (first_s + s < g.S))


def configs(problem, target):
    """Long patches share most loads, where lanes are a patch apart in NCHW; in rows of quads those of 4 columns have a third of
    the loads, in which lanes are side by side. The interpreter pays by the operation, so it gets many patches."""
    r, s = tile_of_taps(problem)
    inside = problem.channels_last and problem.k > 1
    lanes = min(32, next_power_of_2(max(1, problem.k))) if inside else 1
    across = [columns for columns in (7, 4, 2, 1) if problem.q % columns == 0]
    if not target.is_gpu:
        yield _config(64, lanes, rows_of_patch(problem), across[-1], splits=2, warps=4)
        yield _config(16, lanes, rows_of_patch(problem), across[0], splits=1, warps=4)
        return
    widths = [width for width in (4, 2, 1) if width == 1 or (inside and r * s * width <= MOST_SUMS)]
    for columns, width, warps in itertools.product([QUAD] if _has_quads(problem, lanes) else across[:2], widths, (4, 1)):
        down, block = rows_of_patch(problem), max(1, target.warp_size * warps * width // lanes)
        for splits in splits_of(problem, target, lanes, (down, columns), block, PER_SM // warps):
            yield _config(block, lanes, down, columns, splits, warps)


def rows_of_patch(problem):
    """The rows, up to MOST_DOWN, that leave the fewest outside; the most of equals. With fewer than 3, inputs are loaded again
    and again."""
    return min(range(min(3, max(1, problem.p)), MOST_DOWN + 1), key=lambda rows: (-problem.p % rows, -rows))


def _has_quads(problem, block_k):
    """Whether patches can begin with a quad in rows of quads, all of whose elements are there or none."""
    return block_k == 1 and problem.w % QUAD == problem.q % QUAD == 0 and tile_of_taps(problem)[1] == problem.s


def _config(block, block_k, down, across, splits, warps):
    numbers = {"BLOCK": block, "BLOCK_K": block_k, "DOWN": down, "ACROSS": across, "SPLITS": splits}
    return config_of(numbers, num_warps=warps, num_stages=1)


def launches(problem, config, input, grad_output, out):
    tile, splits = config.kwargs, config.kwargs["SPLITS"]
    patch = tile["DOWN"], tile["ACROSS"]
    constants = *tile_of_taps(problem), *problem.stride, *patch, problem.p % tile["DOWN"] == 0
    before = Images.of(input), Images.of(grad_output)
    sizes = Geometry.of(problem), patches_per_split(problem, patch, tile["BLOCK"], splits)
    after = *sizes, Patch(*map(constexpr, (*constants, *pieces(problem, config, input, grad_output))))
    grid = (count_tiles(problem, tile["BLOCK_K"]) * splits,)
    yield from launches_of_splits(_depthwise_kernel, grid, config, before, after, out.permute(2, 3, 0, 1), problem.wide)


def pieces(problem, config, *images):
    """PIECE and FIRST of a Patch."""
    tile = config.kwargs
    quads = tile["ACROSS"] == QUAD and _has_quads(problem, tile["BLOCK_K"]) and all(map(_is_aligned, images))
    return (QUAD, -problem.padding[1] % QUAD) if quads else (1, 0)


def _is_aligned(t):
    strides = [stride for size, stride in zip(t.shape[:3], t.stride()) if size > 1]
    return t.stride(3) == 1 and t.data_ptr() % 16 == 0 and all(stride % QUAD == 0 for stride in strides)


def work(problem, config, target):
    tile, splits, threads = config.kwargs, config.kwargs["SPLITS"], target.warp_size * config.num_warps
    (r, s), (step_h, step_w) = tile_of_taps(problem), problem.stride
    a_lane = max(1, tile["BLOCK"] * tile["BLOCK_K"] // threads)
    registers = min(255, 40 + a_lane * (r * s + (-(-r // step_h) + step_w) * tile["ACROSS"] + s))
    patch = tile["DOWN"], tile["ACROSS"]
    given = tile["BLOCK_K"], patch, tile["BLOCK"], splits, threads, registers
    return work_of(problem, *given), *added(problem, splits)


DESIGN = Design(refuses=refuses, configs=configs, launches=launches, work=work)
