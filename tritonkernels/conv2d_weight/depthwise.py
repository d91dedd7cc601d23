"""conv2d_weight, depthwise: a lane holds all sums of a filter in registers and walks patches of DOWN x ACROSS positions.

The filter has R S taps a channel, and every input meets up to R S gradients. `implicit_gemm` gathers it once for each: R S
loads for R S multiply-adds. Here a row of a patch's inputs is loaded once, and multiplied with each gradient that it meets.
Lanes lie along patches of a row in NCHW, and along channels in channels_last. They add up their sums at the end; parts of the
positions are added as in language/position_sums.py. A filter of more than 7 x 7 taps is several of R x S, each with programs of
its own.

Mirrors cuda_reference/conv2d_weight/depthwise.cuh.
"""

import itertools

from ..config import config_of
from ..design import Design
from ..integers import next_power_of_2
from ..language.convolution import Geometry
from ..language.dot import widened
from ..language.epilogue import rounded
from ..language.overlap import wait_for_earlier_kernels
from ..language.position_sums import Sums, added, launches_of_splits
from ..language.structs import Images
from ..language.tiles import span
from ..language.triton import tl, triton
from ..operations.conv2d_weight.patches import (
    count_tiles,
    patches_per_split,
    refuses,
    splits_of,
    tile_of_taps,
    work_of,
)

MOST_SUMS = 50  # of a lane
MOST_DOWN = 8
PER_SM = 12  # warps, with the registers that they need
MOST_UNROLLED = 800  # multiply-adds of a patch: Triton compiles twice as many for a minute


@triton.jit
def _load_row(row_ptr, offsets, first, step, inside, size, COUNT: tl.constexpr, SUMS: tl.constexpr):
    """COUNT neighbours from column `first` on, a tuple; zeros where there is none."""
    row = ()
    for i in tl.static_range(COUNT):
        at = first + i
        exists = inside & (at.to(tl.uint32) < tl.cast(size, tl.uint32))  # and not negative, in one comparison
        row += (widened(tl.load(row_ptr + (offsets + at * step), mask=exists, other=0), SUMS),)
    return row


@triton.jit
def _multiplied(sums, x, gradients, S: tl.constexpr, STEP: tl.constexpr, exist):
    """The sums of a row of taps, a tuple, after a row of inputs and one of gradients. If these may not `exist`, it says where
    they do: 0 times an infinity would be a NaN."""
    after = ()
    for s in tl.static_range(S):
        total = sums[s]
        for j in tl.static_range(len(gradients)):
            product = gradients[j] * x[j * STEP + s]
            if exist is not None:
                product = tl.where(exist, product, 0.0)
            total += product
        after += (total,)
    return after


@triton.jit
def _walk(
    sums, input, grad, g, patch, first_r, first_s,
    R: tl.constexpr, S: tl.constexpr, STEP_H: tl.constexpr, STEP_W: tl.constexpr,
    DOWN: tl.constexpr, ACROSS: tl.constexpr, WHOLE: tl.constexpr, SUMS: tl.constexpr,
):  # fmt: skip
    """The sums of all taps, a tuple, after a `patch` (image, k, p, q, exists) of each lane."""
    image, k, p, q, exists = patch
    h = p * STEP_H - g.padding_h + first_r
    w = q * STEP_W - g.padding_w + first_s
    of_grads = image * grad.n + k * grad.c + p * grad.h
    of_inputs = image * input.n + k // g.k_per_group * input.c + h * input.h
    gradients = ()
    for row in tl.static_range((DOWN - 1) * STEP_H + R):
        if row % STEP_H == 0 and row // STEP_H < DOWN:
            inside = exists & (p + row // STEP_H < g.P)
            gradients += (_load_row(grad.ptr, of_grads, q, grad.w, inside, g.Q, ACROSS, SUMS),)
            of_grads += grad.h
        inside = exists & (h + row >= 0) & (h + row < g.H)
        x = _load_row(input.ptr, of_inputs, w, input.w, inside, g.W, (ACROSS - 1) * STEP_W + S, SUMS)
        of_inputs += input.h
        after = ()
        for r in tl.static_range(R):
            if row >= r and (row - r) % STEP_H == 0 and (row - r) // STEP_H < DOWN:
                exist = None if WHOLE else exists & (p + (row - r) // STEP_H < g.P)
                after += _multiplied(sums[r * S : (r + 1) * S], x, gradients[(row - r) // STEP_H], S, STEP_W, exist)
            else:
                after += sums[r * S : (r + 1) * S]
        sums = after
    return sums


@triton.jit
def _depthwise_kernel(
    input: Images, grad: Images, sums: Sums, g: Geometry, patches_per_split,
    R: tl.constexpr, S: tl.constexpr, STEP_H: tl.constexpr, STEP_W: tl.constexpr,
    BLOCK: tl.constexpr, BLOCK_K: tl.constexpr, DOWN: tl.constexpr, ACROSS: tl.constexpr, WHOLE: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """`sums` are (splits, R, S, K), so that neighbouring lanes store side by side: its strides k, c, r are those of rows and
    columns of taps, and of channels. ACROSS divides Q; WHOLE: and DOWN does P. WIDE: 64-bit offsets."""
    wait_for_earlier_kernels()
    # program -> (split, channels, tile of taps), the last fastest
    tiles_s = tl.cdiv(g.S, S)
    tiles_r = tl.cdiv(g.R, R)
    blocks_k = tl.cdiv(g.K, BLOCK_K)
    program = tl.program_id(0)
    first_s = program % tiles_s * S
    first_r = program // tiles_s % tiles_r * R
    split = program // (tiles_s * tiles_r * blocks_k)
    if WIDE:
        split = split.to(tl.int64)
    k = span(program // (tiles_s * tiles_r) % blocks_k * BLOCK_K, BLOCK_K, WIDE)[None, :]
    SUMS: tl.constexpr = tl.float64 if sums.ptr.dtype.element_ty == tl.float64 else tl.float32
    acc = ()
    for _ in tl.static_range(R * S):
        acc += (tl.zeros((BLOCK, BLOCK_K), SUMS),)
    wide = g.Q // ACROSS
    high = tl.cdiv(g.P, DOWN)
    first = split * patches_per_split
    end = min(first + patches_per_split, g.N * high * wide)
    for patch in range(first, end, BLOCK):
        index = span(patch, BLOCK, WIDE)[:, None]
        q = index % wide * ACROSS
        p = index // wide % high * DOWN
        exists = (index < end) & (k < g.K)
        at = index // wide // high, k, p, q, exists
        acc = _walk(acc, input, grad, g, at, first_r, first_s, R, S, STEP_H, STEP_W, DOWN, ACROSS, WHOLE, SUMS)
    k = tl.reshape(k, (BLOCK_K,))
    for tap in tl.static_range(R * S):
        r = first_r + tap // S
        s = first_s + tap % S
        sums_ptrs = sums.ptr + split * sums.split + r * sums.k + s * sums.c + k * sums.r
        inside = (k < g.K) & (r < g.R) & (s < g.S)
        tl.store(sums_ptrs, rounded(tl.sum(acc[tap], axis=0), sums.ptr.dtype.element_ty), mask=inside)


def configs(problem, target):
    """Long patches share most loads, where lanes are a patch apart in NCHW. The interpreter pays by the operation, so it gets
    many patches."""
    r, s = tile_of_taps(problem)
    inside = problem.channels_last and problem.k > 1
    lanes = min(32, next_power_of_2(max(1, problem.k))) if inside else 1
    across = [columns for columns in (7, 4, 2, 1) if problem.q % columns == 0]
    if not target.is_gpu:
        yield _config(64, lanes, rows_of_patch(problem, across[-1]), across[-1], splits=2, warps=4)
        yield _config(16, lanes, rows_of_patch(problem, across[0]), across[0], splits=1, warps=4)
        return
    widths = [width for width in (4, 2, 1) if width == 1 or (inside and r * s * width <= MOST_SUMS)]
    for columns, width, warps in itertools.product(across[:2], widths, (4, 1)):
        down, block = rows_of_patch(problem, columns), max(1, target.warp_size * warps * width // lanes)
        for splits in splits_of(problem, target, lanes, (down, columns), block, PER_SM // warps):
            yield _config(block, lanes, down, columns, splits, warps)


def rows_of_patch(problem, across):
    """The rows, up to MOST_DOWN, that leave the fewest outside; the most of equals. With fewer than 3, inputs are loaded again
    and again."""
    r, s = tile_of_taps(problem)
    few = min(3, max(1, problem.p))
    most = max(few, min(MOST_DOWN, MOST_UNROLLED // (r * s * across)))
    return min(range(few, most + 1), key=lambda rows: (-problem.p % rows, -rows))


def _config(block, block_k, down, across, splits, warps):
    numbers = {"BLOCK": block, "BLOCK_K": block_k, "DOWN": down, "ACROSS": across, "SPLITS": splits}
    return config_of(numbers, num_warps=warps, num_stages=1)


def launches(problem, config, input, grad_output, out):
    tile, splits = config.kwargs, config.kwargs["SPLITS"]
    patch, (r, s) = (tile["DOWN"], tile["ACROSS"]), tile_of_taps(problem)
    before = Images.of(input), Images.of(grad_output)
    after = Geometry.of(problem), patches_per_split(problem, patch, tile["BLOCK"], splits)
    steps = dict(zip(("STEP_H", "STEP_W"), problem.stride))
    constants = {"R": r, "S": s, **steps, "WHOLE": problem.p % tile["DOWN"] == 0}
    grid = (count_tiles(problem, tile["BLOCK_K"]) * splits,)
    of_taps = out.permute(2, 3, 0, 1)
    yield from launches_of_splits(_depthwise_kernel, grid, config, before, after, of_taps, problem.wide, **constants)


def work(problem, config, target):
    tile, splits, threads = config.kwargs, config.kwargs["SPLITS"], target.warp_size * config.num_warps
    (r, s), (step_h, step_w) = tile_of_taps(problem), problem.stride
    a_lane = max(1, tile["BLOCK"] * tile["BLOCK_K"] // threads)
    registers = min(255, 40 + a_lane * (r * s + (-(-r // step_h) + step_w) * tile["ACROSS"] + s))
    patch = tile["DOWN"], tile["ACROSS"]
    given = tile["BLOCK_K"], patch, tile["BLOCK"], splits, threads, registers
    return work_of(problem, *given), *added(problem, splits)


DESIGN = Design(refuses=refuses, configs=configs, launches=launches, work=work)
