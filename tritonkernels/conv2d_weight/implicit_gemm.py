"""conv2d_weight, implicit_gemm: a program owns a tile of the weight as a matrix and sums over its share of all positions.

The weight of a group is a matrix of K / groups rows and C / groups * R * S columns (c, r, s): the product of grad_output and
the im2col matrix of the input, which is never written: its elements are gathered from where they are. The reduction is long,
N P Q positions, and tiles are few, so the positions are split over programs (language/position_sums.py).

There are two ways to sum a tile. tl.dot multiplies slices of BLOCK_L positions, where each element loaded serves a whole row or
column, on tensor cores for 16-bit types. With few channels that would be mostly padding. In a THIN tile a lane has its own
positions instead, and for them all sums of the tile in registers, M N multiply-adds for M + N loads; the lanes' sums are added
once, at the end. For fp32 and tf32 there are large tiles in Gluon, too: parts/register_products.py.

Mirrors cuda_reference/conv2d_weight/implicit_gemm.cuh.
"""

from ..config import config_of
from ..design import Design
from ..integers import ceil_div
from ..language.convolution import Geometry
from ..language.dot import faithful_dot, widened
from ..language.epilogue import rounded
from ..language.overlap import wait_for_earlier_kernels
from ..language.position_sums import Sums, added, count_positions, launches_of_splits
from ..language.structs import Images
from ..language.tiles import span
from ..language.triton import tl, triton
from ..operations.conv2d.work import unit
from ..operations.conv2d_weight.space import count_tiles, near, power_of_2, splits_for
from ..operations.conv2d_weight.work import of_tiles
from .parts import register_products
from .parts.gather import load_grads, load_inputs, place_of_tap


@triton.jit
def _implicit_gemm_kernel(
    input: Images, grad: Images, sums: Sums, g: Geometry, positions_per_split,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_L: tl.constexpr, THIN: tl.constexpr, CHANNELS_INSIDE: tl.constexpr,
    PRECISION: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """BLOCK_L: positions at a time. CHANNELS_INSIDE: they lie side by side, so columns are (r, s, c). WIDE: 64-bit offsets."""
    wait_for_earlier_kernels()
    # program -> (split, group, tile of rows, tile of columns), the last fastest
    tiles_n = tl.cdiv(g.c_per_group * g.R * g.S, BLOCK_N)
    tiles_m = tl.cdiv(g.k_per_group, BLOCK_M)
    program = tl.program_id(0)
    tile_n = program % tiles_n
    tile_m = program // tiles_n % tiles_m
    group = program // (tiles_n * tiles_m) % g.groups
    split = program // (tiles_n * tiles_m * g.groups)
    if WIDE:
        group = group.to(tl.int64)
        split = split.to(tl.int64)
    k = span(tile_m * BLOCK_M, BLOCK_M, WIDE)
    column = span(tile_n * BLOCK_N, BLOCK_N, WIDE)
    inside_k = k < g.k_per_group
    inside_n = column < g.c_per_group * g.R * g.S
    k += group * g.k_per_group
    if CHANNELS_INSIDE:
        c = column % g.c_per_group
        s = column // g.c_per_group % g.S
        r = column // g.c_per_group // g.S
    else:
        s = column % g.S
        r = column // g.S % g.R
        c = column // g.S // g.R
    channel, tap_h, tap_w = place_of_tap(input, g, group, c, r, s)
    SUMS: tl.constexpr = tl.float64 if sums.ptr.dtype.element_ty == tl.float64 else tl.float32
    acc = tl.zeros((BLOCK_M, BLOCK_N, BLOCK_L) if THIN else (BLOCK_M, BLOCK_N), SUMS)
    first = split * positions_per_split
    end = min(first + positions_per_split, count_positions(g.N, g.P, g.Q, WIDE))
    for l in range(first, end, BLOCK_L):
        at = span(l, BLOCK_L, WIDE)
        inside_l = at < end
        if CHANNELS_INSIDE and not THIN:  # lanes along channels
            gradient = load_grads(grad, g, at[:, None], k[None, :], inside_l[:, None] & inside_k[None, :])
            inside = inside_l[:, None] & inside_n[None, :]
            x = load_inputs(input, g, at[:, None], channel[None, :], tap_h[None, :], tap_w[None, :], inside)
            acc = faithful_dot(tl.trans(gradient), x, acc, PRECISION)
        else:  # lanes along positions
            gradient = load_grads(grad, g, at[None, :], k[:, None], inside_l[None, :] & inside_k[:, None])
            inside = inside_l[None, :] & inside_n[:, None]
            x = load_inputs(input, g, at[None, :], channel[:, None], tap_h[:, None], tap_w[:, None], inside)
            if THIN:
                acc += widened(gradient, SUMS)[:, None, :] * widened(x, SUMS)[None, :, :]
            else:
                acc = faithful_dot(gradient, tl.trans(x), acc, PRECISION)
    total = tl.sum(acc, axis=2) if THIN else acc
    sums_ptrs = sums.ptr + split * sums.split + k[:, None] * sums.k
    sums_ptrs += (c * sums.c + r * sums.r + s * sums.s)[None, :]
    tl.store(sums_ptrs, rounded(total, sums.ptr.dtype.element_ty), mask=inside_k[:, None] & inside_n[None, :])


def thin_tile(problem):
    """(BLOCK_M, BLOCK_N, BLOCK_L, num_warps): a position a lane, which has room for 64 sums and 16 columns; fewer in fp64."""
    block_m = power_of_2(problem.rows, 1, 4)
    return block_m, power_of_2(problem.columns, 1, 8 if problem.precision == "fp64" else 16), 128, 4


def tiles_of_dot(problem):
    """The same for tl.dot: the tile that covers the weight with least padding, and a large one."""
    block_m, block_n = power_of_2(problem.rows, 16, 64), power_of_2(problem.columns, 16, 64)
    block_l = 16 if problem.wide or block_m * block_n <= 512 else 32  # else ptxas spills a few words of small tiles
    if problem.precision == "fp64":
        return [(32, 32, 16, 4)]
    return list(dict.fromkeys(((block_m, block_n, block_l, 4), *([] if problem.wide else [(64, 64, 16, 4)]))))


def configs(problem, target):
    """Each tile with as many splits as fill the GPU, half and twice as many. The interpreter pays by the operation, so there
    slices are long."""
    if not target.is_gpu:
        length = power_of_2(problem.terms // 2, 16, 1024)
        yield _config((64, 64, length, 4), thin=False, splits=2)
        yield _config((2, 16, length, 4), thin=True, splits=3)
        yield _config((16, 16, 16, 4), thin=False, splits=1)
        return
    thin = [(thin_tile(problem), True, 4)]
    dots = [(tile, False, 2) for tile in tiles_of_dot(problem)]
    for tile, is_thin, per_sm in dots + thin:
        block_m, block_n, block_l, _ = tile
        tiles = count_tiles(problem, block_m, block_n)
        for splits in near(splits_for(problem, target, tiles, block_l, per_sm)):
            yield _config(tile, is_thin, splits)
    yield from register_products.configs(problem, target)


def _is_in_gluon(config):
    return "PROGRAMS" in config.kwargs


def _config(tile, thin, splits):
    numbers = dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_L"), tile)) | {"THIN": thin, "SPLITS": splits}
    return config_of(numbers, num_warps=tile[3], num_stages=1 if thin else 3)


def launches(problem, config, input, grad_output, out):
    if _is_in_gluon(config):
        yield from register_products.launches(problem, config, input, grad_output, out)
        return
    tile, splits = config.kwargs, config.kwargs["SPLITS"]
    grid = (count_tiles(problem, tile["BLOCK_M"], tile["BLOCK_N"]) * splits,)
    per_split = ceil_div(ceil_div(problem.terms, splits), tile["BLOCK_L"]) * tile["BLOCK_L"]
    before, after = (Images.of(input), Images.of(grad_output)), (Geometry.of(problem), per_split)
    constants = {"CHANNELS_INSIDE": input.stride(1) == 1 and grad_output.stride(1) == 1, "PRECISION": problem.precision}
    yield from launches_of_splits(_implicit_gemm_kernel, grid, config, before, after, out, problem.wide, **constants)


def work(problem, config, target):
    if _is_in_gluon(config):
        return register_products.work(problem, config, target)
    tile, threads = config.kwargs, target.warp_size * config.num_warps
    shape, splits, thin = (tile["BLOCK_M"], tile["BLOCK_N"], tile["BLOCK_L"]), tile["SPLITS"], tile["THIN"]
    of_unit, shared = (unit(problem), 0) if thin else (problem.precision, None)
    main = of_tiles(problem, shape, splits, threads, of_unit, config.num_stages, thin, shared)
    return main, *added(problem, splits)


DESIGN = Design(configs=configs, launches=launches, work=work)
