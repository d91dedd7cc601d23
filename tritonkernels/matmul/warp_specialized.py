"""Matrix product, warp-specialised (Gluon): one warp copies slices by TMA, one to three warpgroups multiply them by wgmma.

`persistent` leaves its pipeline to Triton, whose programs issue copies and products from the same warps: both wait for the one
loop. Here a program divides its warps, and each part has a loop of its own. The producer is one warp that asks TMA for the
slices of tile after tile, as far ahead as the ring of STAGES slices allows. The consumers are warpgroups, each with its own
rows of the tile: they wait for a slice (`full`), multiply it, and give its place back (`empty`) as soon as the product before
the newest has ended. So no thread that multiplies computes an address, and while a consumer adds up fp8 sums or writes its
result, the others multiply and the ring fills up.

Registers follow the work: setmaxnreg leaves the producer 24 of them and gives a consumer up to 240. That makes room for 192
sums a thread, a tile of 256 x 192 on two consumers. It takes 448 lines of L2 a slice for 1536 clocks of products, 128 x 256
takes 384 for 1024, and at 3 clocks a line L2 is the limit of the latter only. Tiles need not be powers of two: a consumer's
columns are a power of two (b) and the rest (b_rest), 128 and 64 of 192, and there may be three consumers. 576 columns are three
tiles of 192, and would be two and a quarter of 256.

fp8 adds up each slice by itself (see numerics.FP8_SLICE): a consumer adds while another one multiplies.

Mirrors cuda_reference/matmul/persistent.cuh, which has clusters, too; in Gluon of Triton 3.6 a slice cannot be sent to several.
"""

from typing import Any, NamedTuple

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from ..config import config_of
from ..design import Design
from ..gemm.parts.gluon_tile import needs_a_gpu, span
from ..gemm.parts.splits import splits_that_fill
from ..language.descriptor import describe_for_gluon
from ..language.epilogue import rounded
from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Matrices, Vector
from ..language.triton import tl
from ..launch import TritonLaunch
from .parts.arguments import WORKSPACES, Arithmetic, Epilogue, Sizes, matmul_arguments
from .parts.epilogue import finished, store_tile
from .parts.operands import lacks_products
from .parts.space import block_tile, count_tiles, sums_slices
from .parts.splits import Splits
from .parts.tile import count_tiles_of, tile_corner
from .parts.work import of_splits
from .persistent import Layout, as_tma_writes, operand, packs
from .split_k import ADD_ROWS, addition_of_splits

# Renamed after Triton 3.7: the new name first.
_load = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
_store = getattr(tma, "async_store", None) or tma.async_copy_shared_to_global


class Tile(NamedTuple):
    """Constants. M x N of the result, slices of K, walked in groups of GROUP_M rows of tiles. Each of the CONSUMERS multiplies
    ROWS of a by LEFT + RIGHT columns of b; if SWAPPED, ROWS are columns of the result. It has STAGED boxes for results."""

    M: Any
    N: Any
    K: Any
    GROUP_M: Any
    ROWS: Any
    LEFT: Any
    RIGHT: Any
    CONSUMERS: Any
    STAGES: Any
    STAGED: Any
    SWAPPED: Any


class Boxes(NamedTuple):
    """What TMA copies: a's rows of one consumer, b's first LEFT and last RIGHT columns, or None. Descriptors, or memory."""

    a: Any
    b: Any
    b_rest: Any


class Ring(NamedTuple):
    """Slices in shared memory, and for each place the barriers that say that it is full, and that it is empty."""

    slices: Any
    full: Any
    empty: Any


class Result(NamedTuple):
    """Where sums go: through `staged` in shared memory to `boxes`, a descriptor; by pointers to `out` if that is None."""

    boxes: Any
    staged: Any
    scale_a: Any
    scale_b: Any
    c: Any
    bias: Any
    out: Any


@gluon.jit
def _pieces(sizes, splits, tile):
    """How many pieces of work there are: tiles, or splits of them."""
    tiles = count_tiles_of(sizes, tile.M, tile.N)
    return tiles if splits is None else tiles * splits.SPLIT_K


@gluon.jit
def _piece(index, sizes, splits, tile):
    """(batch, first row, first column, first k, place of its sums among all splits') of a piece. Neighbours are at one k."""
    tiles = count_tiles_of(sizes, tile.M, tile.N)
    batch, row, col = tile_corner(index % tiles, sizes, tile.M, tile.N, tile.GROUP_M, WIDE=False)
    if splits is None:
        return batch, row, col, 0, 0
    else:
        return batch, row, col, index // tiles * splits.k_per_split, index % tiles * splits.SPLIT_K + index // tiles


@gluon.jit
def _request(operand, place, batch, row, k, full, ALONG_K: gl.constexpr):
    """Ask TMA for a box of an operand that lies as (BATCH, rows, K) or else as (BATCH, K, rows)."""
    if ALONG_K:
        _load(operand, [batch, row, k], full, place)
    else:
        _load(operand, [batch, k, row], full, place)


@gluon.jit
def _produce(operands: Boxes, ring: Ring, sizes, length, layout, splits, tile):
    """Fill the ring with the slices of all pieces of the program."""
    nbytes: gl.constexpr = tile.CONSUMERS * operands.a.block_type.nbytes + operands.b.block_type.nbytes
    rest_nbytes: gl.constexpr = 0 if operands.b_rest is None else operands.b_rest.block_type.nbytes
    step = 0
    for index in range(gl.program_id(0), _pieces(sizes, splits, tile), gl.num_programs(0)):
        batch, row, col, first_k, _ = _piece(index, sizes, splits, tile)
        a_batch = 0 if layout.A_SHARED else batch
        b_batch = 0 if layout.B_SHARED else batch
        a_row = col if tile.SWAPPED else row
        b_row = row if tile.SWAPPED else col
        for k in range(first_k, first_k + length, tile.K):
            at = step % tile.STAGES
            mbarrier.wait(ring.empty.index(at), (step // tile.STAGES + 1) & 1)
            full = ring.full.index(at)
            mbarrier.expect(full, nbytes + rest_nbytes)
            for i in gl.static_range(tile.CONSUMERS):
                own = ring.slices.a.index(at * tile.CONSUMERS + i)
                _request(operands.a, own, a_batch, a_row + i * tile.ROWS, k, full, layout.A_ALONG_K)
            _request(operands.b, ring.slices.b.index(at), b_batch, b_row, k, full, layout.B_ALONG_K)
            if operands.b_rest is not None:
                rest = ring.slices.b_rest.index(at)
                _request(operands.b_rest, rest, b_batch, b_row + tile.LEFT, k, full, layout.B_ALONG_K)
            step += 1


@gluon.jit
def _slice(boxes, at, ALONG_K: gl.constexpr):
    """(rows, K) of the box at a place in the ring."""
    box = boxes.index(at)
    flat = box.reshape((box.shape[1], box.shape[2]))
    return flat if ALONG_K else flat.permute((1, 0))


@gluon.jit
def _zeros(ROWS: gl.constexpr, COLS: gl.constexpr, BITS: gl.constexpr):
    """Sums of a consumer, in the layout of wgmma's, with operands of so many bits."""
    return gl.zeros([ROWS, COLS], gl.float32, gl.NVMMADistributedLayout([3, 0], [4, 1], [16, COLS, 256 // BITS]))


@gluon.jit
def _consume(WHO: gl.constexpr, result: Result, ring: Ring, sizes, length, epilogue, how, layout, splits, tile):
    """Multiply the rows of consumer WHO of all pieces, and write them."""
    ROWS: gl.constexpr = tile.ROWS
    BITS: gl.constexpr = ring.slices.a.dtype.primitive_bitwidth
    SUMS_SLICES: gl.constexpr = how.PRECISION == "fp8" and how.ACCUMULATE != "fast"
    step = 0
    for index in range(gl.program_id(0), _pieces(sizes, splits, tile), gl.num_programs(0)):
        batch, row, col, _, place = _piece(index, sizes, splits, tile)
        acc = _zeros(ROWS, tile.LEFT, BITS)
        if tile.RIGHT > 0:
            rest = _zeros(ROWS, tile.RIGHT, BITS)
        for i in range(gl.cdiv(length, tile.K)):
            at = step % tile.STAGES
            mbarrier.wait(ring.full.index(at), step // tile.STAGES & 1)
            a = _slice(ring.slices.a, at * tile.CONSUMERS + WHO, layout.A_ALONG_K)
            b = _slice(ring.slices.b, at, layout.B_ALONG_K).permute((1, 0))
            if SUMS_SLICES:
                part = warpgroup_mma(a, b, _zeros(ROWS, tile.LEFT, BITS), use_acc=False, is_async=True)
                acc += warpgroup_mma_wait(0, deps=(part,))
            else:
                acc = warpgroup_mma(a, b, acc, is_async=True)
            if tile.RIGHT > 0:
                b_rest = _slice(ring.slices.b_rest, at, layout.B_ALONG_K).permute((1, 0))
                if SUMS_SLICES:
                    part = warpgroup_mma(a, b_rest, _zeros(ROWS, tile.RIGHT, BITS), use_acc=False, is_async=True)
                    rest += warpgroup_mma_wait(0, deps=(part,))
                else:
                    rest = warpgroup_mma(a, b_rest, rest, is_async=True)
                    acc, rest = warpgroup_mma_wait(2, deps=(acc, rest))
            elif not SUMS_SLICES:
                acc = warpgroup_mma_wait(1, deps=(acc,))
            if SUMS_SLICES:
                mbarrier.arrive(ring.empty.index(at))
            else:  # the newest product is under way, so the slice before is free
                mbarrier.arrive(ring.empty.index((step + tile.STAGES - 1) % tile.STAGES), pred=i > 0)
            step += 1
        if not SUMS_SLICES:
            if tile.RIGHT > 0:
                acc, rest = warpgroup_mma_wait(0, deps=(acc, rest))
            else:
                acc = warpgroup_mma_wait(0, deps=(acc,))
            mbarrier.arrive(ring.empty.index((step + tile.STAGES - 1) % tile.STAGES))
        if splits is not None:  # the workspace has a tile of its own for each split
            batch, row, col = place, 0, 0
        if tile.SWAPPED:
            col += WHO * ROWS
        else:
            row += WHO * ROWS
        _write(acc, 0, WHO, result, batch, row, col, sizes, epilogue, how, splits, tile)
        if tile.RIGHT > 0:
            _write(rest, tile.LEFT, WHO, result, batch, row, col, sizes, epilogue, how, splits, tile)
    tma.store_wait(pendings=0)


@gluon.jit
def _write(
    acc, FIRST: gl.constexpr, WHO: gl.constexpr, result: Result, batch, row, col, sizes, epilogue, how, splits, tile
):  # fmt: skip
    """Write a consumer's sums, (ROWS, those of LEFT + RIGHT from FIRST on), of what begins at (row, col), a box at a time."""
    ONCE: gl.constexpr = 32 if result.boxes is None else result.staged.shape[2 if tile.SWAPPED else 3]
    if acc.shape[1] > ONCE:
        HALF: gl.constexpr = acc.shape[1] // 2
        left, right = acc.reshape((acc.shape[0], 2, HALF)).permute((0, 2, 1)).split()
        _write(left, FIRST, WHO, result, batch, row, col, sizes, epilogue, how, splits, tile)
        _write(right, FIRST + HALF, WHO, result, batch, row, col, sizes, epilogue, how, splits, tile)
    else:
        if tile.SWAPPED:
            acc = acc.permute((1, 0))
            row += FIRST
        else:
            col += FIRST
        LAYOUT: gl.constexpr = acc.type.layout
        rows = span(row, acc.shape[0], gl.SliceLayout(1, LAYOUT), how.WIDE)
        cols = span(col, acc.shape[1], gl.SliceLayout(0, LAYOUT), how.WIDE)
        far = batch.to(gl.int64) if how.WIDE else batch
        if result.boxes is None:
            store_tile(acc, result.scale_a, result.scale_b, result.c, result.bias, result.out, far, rows, cols, sizes, epilogue)
        else:
            if splits is None:
                acc = finished(acc, result.scale_a, result.scale_b, result.c, result.bias, far, rows, cols, sizes, epilogue)
                acc = rounded(acc, result.out.ptr.dtype.element_ty)
            AT: gl.constexpr = FIRST // ONCE
            box = result.staged.index(WHO * tile.STAGED + AT % tile.STAGED)
            tma.store_wait(pendings=tile.STAGED - 1 if AT > 0 else 0)  # what was in it has been read
            box.reshape((box.shape[1], box.shape[2])).store(acc)
            fence_async_shared()
            _store(result.boxes, [batch, row, col], box)


@gluon.jit
def _allocated(NUMBER: gl.constexpr, boxes):
    """Shared memory for so many boxes of a descriptor."""
    return gl.allocate_shared_memory(boxes.dtype, [NUMBER] + boxes.block_type.shape, boxes.layout)  # noqa: RUF005


@gluon.jit
def _warp_specialized_kernel(
    a, b, b_rest, out_boxes, scale_a: Matrices, scale_b: Matrices, c: Matrices, bias: Vector, out: Matrices,
    sizes: Sizes, epilogue: Epilogue, how: Arithmetic, layout: Layout, splits: Splits, tile: Tile,
):  # fmt: skip
    """a, b, b_rest and out_boxes: TMA descriptors, the last of the workspace if K is split, or None where TMA cannot write the
    result; b_rest is None if RIGHT is 0. Scales, c and bias may be None; splits is None if K is not split."""
    wait_for_earlier_kernels()
    STAGES: gl.constexpr = tile.STAGES
    CONSUMERS: gl.constexpr = tile.CONSUMERS
    a_slices = _allocated(STAGES * CONSUMERS, a)
    b_slices = _allocated(STAGES, b)
    rest_slices = _allocated(STAGES, b_rest) if b_rest is not None else None
    staged = _allocated(CONSUMERS * tile.STAGED, out_boxes) if out_boxes is not None else None
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=CONSUMERS)
    ring = Ring(Boxes(a_slices, b_slices, rest_slices), full, empty)
    operands = Boxes(a, b, b_rest)
    result = Result(out_boxes, staged, scale_a, scale_b, c, bias, out)
    length = sizes.K if splits is None else splits.k_per_split
    if CONSUMERS == 1:
        gl.warp_specialize(
            [
                (_consume, (0, result, ring, sizes, length, epilogue, how, layout, splits, tile)),
                (_produce, (operands, ring, sizes, length, layout, splits, tile)),
            ],
            [1],
            [24],
        )
    elif CONSUMERS == 2:
        gl.warp_specialize(
            [
                (_consume, (0, result, ring, sizes, length, epilogue, how, layout, splits, tile)),
                (_consume, (1, result, ring, sizes, length, epilogue, how, layout, splits, tile)),
                (_produce, (operands, ring, sizes, length, layout, splits, tile)),
            ],
            [4, 1],
            [240, 24],
        )
    else:
        gl.warp_specialize(
            [
                (_consume, (0, result, ring, sizes, length, epilogue, how, layout, splits, tile)),
                (_consume, (1, result, ring, sizes, length, epilogue, how, layout, splits, tile)),
                (_consume, (2, result, ring, sizes, length, epilogue, how, layout, splits, tile)),
                (_produce, (operands, ring, sizes, length, layout, splits, tile)),
            ],
            [4, 4, 1],
            [160, 160, 32],
        )


# (rows of all consumers, columns, CONSUMERS), biggest tile first
TILES = (
    (256, 192, 2),
    (128, 320, 2),
    (192, 192, 3),
    (128, 288, 2),
    (128, 256, 2),
    (256, 128, 2),
    (192, 128, 3),
    (128, 192, 2),
    (128, 160, 2),
    (64, 256, 1),
    (128, 128, 2),
    (192, 64, 3),
    (128, 96, 2),
    (128, 64, 2),
    (64, 128, 1),
    (64, 64, 1),
)
SHAPES = {(rows, columns) for rows, columns, _ in TILES}
BOX = 128  # bytes of K in a slice, and at most of a row of a staged box
MOST_STAGES = 8
BARRIERS = 1024  # bytes, at least what the barriers and the alignment of the ring take


def refuses(problem, target):
    if problem.precision not in ("fp16", "bf16", "tf32", "fp8") or problem.accumulate not in ("fp32", "fast"):
        kinds = f"{problem.precision} with sums in {problem.accumulate}"
        return f"its warpgroups multiply fp16, bf16, tf32 and fp8 with sums in fp32, not {kinds}"
    if problem.k == 0:
        return "TMA describes no empty operand, and K is 0"
    if target.is_gpu and target.arch != 90:
        return f"wgmma is an instruction of sm_90, {target.name} is {target.isa}"
    return needs_a_gpu(target) or lacks_products(problem.precision, target)


def parts_of_columns(problem, columns):
    """(LEFT, RIGHT): a power of two, as Triton's blocks are, and the rest. Sums of slices take registers, too."""
    left = min(128 if sums_slices(problem) else 256, 1 << columns.bit_length() - 1)
    return left, columns - left


def _tiles(problem, target):
    """(rows, columns, CONSUMERS, STAGED, STAGES) of the tiles that fit: a second box hides the way of the first, a fourth stage
    that of slices, which counts more."""
    most = 192  # sums of a thread
    if problem.activation or problem.beta:
        most = 128
    elif problem.wide:
        most = 96
    for rows, columns, consumers in TILES:
        sums = rows // consumers * columns // 128
        if sums_slices(problem):  # a thread has those of a slice, or of a part of its columns, too
            most = 128 if rows == 128 else 64
        room, stage = target.shared_per_block - BARRIERS, (rows + columns) * BOX
        staged = 2 if room - 2 * rows * BOX >= 4 * stage else 1
        stages = (room - staged * rows * BOX) // stage
        if sums <= most and stages >= 3:
            yield rows, columns, consumers, staged, min(MOST_STAGES, stages)


def configs(problem, target):
    """Those without splits first. Operands are swapped for shapes of tiles that no other one has."""
    programs, found = target.sms, []
    for rows, columns, consumers, staged, stages in _tiles(problem, target):
        for swapped in (False, True) if (columns, rows) not in SHAPES else (False,):
            block_m, block_n = (columns, rows) if swapped else (rows, columns)
            numbers = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": BOX // problem.dtype.itemsize, "GROUP_M": 8}
            numbers |= {"SWAPPED": swapped, "CONSUMERS": consumers, "STAGES": stages, "STAGED": staged, "PROGRAMS": programs}
            found.append((numbers, count_tiles(problem, numbers, problem.batch)))
    for numbers, _ in found:
        yield config_of(numbers | {"SPLIT_K": 1}, 4, 1)
    for numbers, tiles in found:
        if numbers["BLOCK_N"] & numbers["BLOCK_N"] - 1 == 0:  # the kernel that adds splits up takes rows of a power of two
            for splits in splits_that_fill(tiles, problem.k, programs):
                yield config_of(numbers | {"SPLIT_K": splits}, 4, 1)


def launches(problem, config, a, b, c, bias, out, *scales):
    numbers, tiles = config.kwargs, count_tiles(problem, config.kwargs, out.shape[0])
    pack_a, a, a_along_k = operand(problem, a, False)
    pack_b, b, b_along_k = operand(problem, b.mT, False)
    yield from pack_a + pack_b
    are_tf32, splits, result = problem.precision == "tf32", None, out if as_tma_writes(out) else None
    if numbers["SPLIT_K"] > 1:
        splits = Splits.of(tiles, problem.k, config, WORKSPACES[problem.accumulate], out.device)
        result = splits.ptr.flatten(0, 1)
    arguments = matmul_arguments(problem, a, b, c, bias, out, *scales, batches=out.shape[0], are_tf32=are_tf32)[2:]
    first, second = (a, a_along_k), (b, b_along_k)
    block_m, block_n, block_k, swapped = (numbers[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "SWAPPED"))
    if swapped:
        first, second = second, first
    rows, columns = (block_n, block_m) if swapped else (block_m, block_n)
    rows //= numbers["CONSUMERS"]
    left, right = parts_of_columns(problem, columns)

    def boxes(t, along_k, length):
        return describe_for_gluon(t, [1, length, block_k] if along_k else [1, block_k, length], are_tf32)

    if result is not None:
        once = min(BOX // result.element_size(), right or left)
        result = describe_for_gluon(result, [1, once, rows] if swapped else [1, rows, once])
    others = (numbers[name] for name in ("CONSUMERS", "STAGES", "STAGED"))
    tile = block_m, block_n, block_k, numbers["GROUP_M"], rows, left, right, *others, swapped
    yield TritonLaunch(
        _warp_specialized_kernel,
        (min(numbers["PROGRAMS"], tiles * numbers["SPLIT_K"]),),
        config,
        boxes(*first, rows),
        boxes(*second, left),
        boxes(*second, right) if right else None,
        result,
        *arguments,
        Layout(*map(tl.constexpr, (first[1], second[1], first[0].shape[0] == 1, second[0].shape[0] == 1))),
        splits,
        Tile(*map(tl.constexpr, tile)),
    )
    if splits is not None:
        yield addition_of_splits(config, splits, tiles, arguments)


def analysed(config):
    numbers = config.kwargs
    return block_tile(config) | {"threads": 128 * numbers["CONSUMERS"], "stages": numbers["STAGES"]}


def walks(config):
    return analysed(config) | {"programs": config.kwargs["PROGRAMS"], "splits": config.kwargs["SPLIT_K"]}


WORK = of_splits(walks, packs, 0, ADD_ROWS)
DESIGN = Design(refuses=refuses, configs=configs, launches=launches, work=WORK, tile=analysed)
