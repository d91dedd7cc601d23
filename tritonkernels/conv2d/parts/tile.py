"""Shared by the tiled designs: the tile of a program, its inputs and biases, and the store of its results."""

from ...language.activation import activated
from ...language.dot import widened
from ...language.epilogue import rounded
from ...language.triton import tl, triton
from ...operations.conv2d.shapes import tiles_of_outputs
from ...operations.conv2d.work import of_outputs
from .lanes import load_along


@triton.jit
def place_of_program(g, BLOCK_K: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_Q: tl.constexpr, WIDE: tl.constexpr):
    """(image, group, block of output channels, tile row, tile column) of a program, the last fastest."""
    tiles_q = tl.cdiv(g.Q, BLOCK_Q)
    tiles_p = tl.cdiv(g.P, BLOCK_P)
    blocks_k = tl.cdiv(g.k_per_group, BLOCK_K)
    program = tl.program_id(0)
    tile_q = program % tiles_q
    tile_p = program // tiles_q % tiles_p
    block_k = program // (tiles_q * tiles_p) % blocks_k
    group = program // (tiles_q * tiles_p * blocks_k) % g.groups
    image = program // (tiles_q * tiles_p * blocks_k * g.groups)
    if WIDE:
        image = image.to(tl.int64)
        group = group.to(tl.int64)
    return image, group, block_k, tile_p, tile_q


@triton.jit
def channels_of(block_k, group, g, BLOCK_K: tl.constexpr):
    """A block's output channels, and which of these are the group's."""
    k = block_k * BLOCK_K + tl.arange(0, BLOCK_K)
    return k + group * g.k_per_group, k < g.k_per_group


@triton.jit
def bias_or_zero(bias, k, k_inside, SUMS: tl.constexpr):
    """The initial sums of output channels k."""
    first = tl.zeros(k.shape, SUMS)
    if bias is not None:
        first += widened(tl.load(bias.ptr + k * bias.step, mask=k_inside, other=0), SUMS)
    return first


@triton.jit
def finished(
    sums, residual, n, k, p, q, inside, ACTIVATION: tl.constexpr, dtype: tl.constexpr, FIRST: tl.constexpr = None
):  # fmt: skip
    """activation(sums + residual), rounded to dtype. The residual is that of images n, channels k and positions (p, q), which
    broadcast; or None. FIRST: where its lanes lie (lanes.py), None if the compiler knows."""
    if residual is not None:
        offsets = n * residual.n + k * residual.c + p * residual.h + q * residual.w
        if FIRST is None:
            added = tl.load(residual.ptr + offsets, mask=inside, other=0)
        else:
            added = load_along(FIRST, residual.ptr, offsets, inside)
        sums += widened(added, sums.dtype)
    return rounded(activated(sums, ACTIVATION, dtype.primitive_bitwidth == 16), dtype)


def count_tiles(problem, tile):
    """Programs of place_of_program."""
    return tiles_of_outputs(problem, (tile["BLOCK_P"], tile["BLOCK_Q"]), tile["BLOCK_K"])


def work_of_tiles(problem, config, target, steps):
    """The work of a kernel whose programs are tiles of outputs, with so many trips to memory."""
    tile, threads = config.kwargs, target.warp_size * config.num_warps
    rows, cols, channels = tile["BLOCK_P"], tile["BLOCK_Q"], tile["BLOCK_K"]
    registers = min(255, 40 + 3 * rows * cols * channels // threads)  # sums, and as compiled for sm_90 twice as many others
    blocks = count_tiles(problem, tile)
    return (of_outputs(problem, target, blocks, threads, (rows, cols, 1), channels, steps, registers=registers),)
