"""The partitions of warp_specialized: what the producer's warp does, and what each consumer's warpgroup does."""

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

from ...language.epilogue import rounded
from ...language.gluon_tile import span
from ...language.renamed import load_box, store_box
from ...language.ring import next_place
from .epilogue import finished, store_finished
from .tile import count_tiles_of, tile_corner


class Tile(NamedTuple):
    """Constants. M x N of the result, slices of K, walked in groups of GROUP_M rows of tiles. Each of the CONSUMERS multiplies
    ROWS of a by LEFT + RIGHT columns of b; if SWAPPED, ROWS are columns of the result. It has STAGED boxes for results.
    IN_REGISTERS: consumers load a's slices, as wgmma reads tf32 from shared memory along K only."""

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
    IN_REGISTERS: Any


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
    """Where sums go: through `staged` in shared memory to `boxes`, a descriptor; by pointers to `out` if that is None. addend:
    the descriptor of C where it comes as slices of a do, box by box after those of a tile; c is None then. biases: room in
    shared memory for the bias of each consumer's columns, or None where it is read with the result."""

    boxes: Any
    addend: Any
    staged: Any
    biases: Any
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
        load_box(operand, [batch, row, k], full, place)
    else:
        load_box(operand, [batch, k, row], full, place)


@gluon.jit
def produce(operands: Boxes, addend, ring: Ring, sizes, length, layout, splits, tile):
    """Fill the ring with the slices of all pieces of the program, of each also with its boxes of C, if they come there."""
    nbytes: gl.constexpr = tile.CONSUMERS * operands.a.block_type.nbytes + operands.b.block_type.nbytes
    rest_nbytes: gl.constexpr = 0 if operands.b_rest is None else operands.b_rest.block_type.nbytes
    at = 0
    phase = 0
    for index in range(gl.program_id(0), _pieces(sizes, splits, tile), gl.num_programs(0)):
        batch, row, col, first_k, _ = _piece(index, sizes, splits, tile)
        a_batch = 0 if layout.A_SHARED else batch
        b_batch = 0 if layout.B_SHARED else batch
        a_row = col if tile.SWAPPED else row
        b_row = row if tile.SWAPPED else col
        for k in range(first_k, first_k + length, tile.K):
            mbarrier.wait(ring.empty.index(at), phase ^ 1)
            full = ring.full.index(at)
            mbarrier.expect(full, nbytes + rest_nbytes)
            for i in gl.static_range(tile.CONSUMERS):
                own = ring.slices.a.index(at * tile.CONSUMERS + i)
                _request(operands.a, own, a_batch, a_row + i * tile.ROWS, k, full, layout.A_ALONG_K)
            _request(operands.b, ring.slices.b.index(at), b_batch, b_row, k, full, layout.B_ALONG_K)
            if operands.b_rest is not None:
                rest = ring.slices.b_rest.index(at)
                _request(operands.b_rest, rest, b_batch, b_row + tile.LEFT, k, full, layout.B_ALONG_K)
            at, phase = next_place(at, phase, tile.STAGES)
        if addend is not None:
            WIDTH: gl.constexpr = addend.block_type.shape[2]
            for box in gl.static_range((tile.LEFT + tile.RIGHT) // WIDTH):
                mbarrier.wait(ring.empty.index(at), phase ^ 1)
                full = ring.full.index(at)
                mbarrier.expect(full, tile.CONSUMERS * addend.block_type.nbytes)
                for i in gl.static_range(tile.CONSUMERS):
                    place = ring.slices.a.index(at * tile.CONSUMERS + i)
                    load_box(addend, [batch, row + i * tile.ROWS, col + box * WIDTH], full, place)
                at, phase = next_place(at, phase, tile.STAGES)


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
def _multiplied(a, b, acc, SUMS_SLICES: gl.constexpr, BITS: gl.constexpr):
    """acc + a b, which is under way; of a slice that has a sum of its own, complete."""
    if SUMS_SLICES:
        part = warpgroup_mma(a, b, _zeros(acc.shape[0], acc.shape[1], BITS), use_acc=False, is_async=True)
        return acc + warpgroup_mma_wait(0, deps=(part,))
    else:
        return warpgroup_mma(a, b, acc, is_async=True)


@gluon.jit
def consume(WHO: gl.constexpr, result: Result, ring: Ring, sizes, length, epilogue, how, layout, splits, tile):
    """Multiply the rows of consumer WHO of all pieces, and write them."""
    ROWS: gl.constexpr = tile.ROWS
    BITS: gl.constexpr = ring.slices.a.dtype.primitive_bitwidth
    SUMS_SLICES: gl.constexpr = how.PRECISION == "fp8" and how.ACCUMULATE != "fast"
    at = 0
    phase = 0
    before = 0  # the place of the slice before
    for index in range(gl.program_id(0), _pieces(sizes, splits, tile), gl.num_programs(0)):
        batch, row, col, _, place = _piece(index, sizes, splits, tile)
        if result.biases is not None:  # it arrives while slices are multiplied
            bias = _bias(result, col + WHO * ROWS if tile.SWAPPED else col, sizes, how)
        acc = _zeros(ROWS, tile.LEFT, BITS)
        if tile.RIGHT > 0:
            rest = _zeros(ROWS, tile.RIGHT, BITS)
        for i in range(gl.cdiv(length, tile.K)):
            mbarrier.wait(ring.full.index(at), phase)
            a = _slice(ring.slices.a, at * tile.CONSUMERS + WHO, layout.A_ALONG_K)
            b = _slice(ring.slices.b, at, layout.B_ALONG_K).permute((1, 0))
            if tile.IN_REGISTERS:
                a = a.load(gl.DotOperandLayout(0, acc.type.layout, 1))
            acc = _multiplied(a, b, acc, SUMS_SLICES, BITS)
            if tile.RIGHT > 0:
                b_rest = _slice(ring.slices.b_rest, at, layout.B_ALONG_K).permute((1, 0))
                if tile.IN_REGISTERS:
                    a = gl.convert_layout(a, gl.DotOperandLayout(0, rest.type.layout, 1))
                rest = _multiplied(a, b_rest, rest, SUMS_SLICES, BITS)
            if tile.IN_REGISTERS:  # which the next slice is loaded into
                if tile.RIGHT > 0:
                    acc, rest = warpgroup_mma_wait(0, deps=(acc, rest))
                else:
                    acc = warpgroup_mma_wait(0, deps=(acc,))
            if SUMS_SLICES or tile.IN_REGISTERS:
                mbarrier.arrive(ring.empty.index(at))
            else:  # the newest product is under way, so the slice before is free
                if tile.RIGHT > 0:
                    acc, rest = warpgroup_mma_wait(2, deps=(acc, rest))
                else:
                    acc = warpgroup_mma_wait(1, deps=(acc,))
                mbarrier.arrive(ring.empty.index(before), pred=i > 0)
            before = at
            at, phase = next_place(at, phase, tile.STAGES)
        if result.biases is not None:
            result.biases.index(WHO).store(bias)
        if not (SUMS_SLICES or tile.IN_REGISTERS):
            if tile.RIGHT > 0:
                acc, rest = warpgroup_mma_wait(0, deps=(acc, rest))
            else:
                acc = warpgroup_mma_wait(0, deps=(acc,))
            mbarrier.arrive(ring.empty.index(before))
        if splits is not None:  # the workspace has a tile of its own for each split
            batch, row, col = place, 0, 0
        if tile.SWAPPED:
            col += WHO * ROWS
        else:
            row += WHO * ROWS
        at, phase = _write(acc, 0, WHO, result, ring, at, phase, batch, row, col, sizes, epilogue, how, splits, tile)
        if tile.RIGHT > 0:
            at, phase = _write(
                rest, tile.LEFT, WHO, result, ring, at, phase, batch, row, col, sizes, epilogue, how, splits, tile
            )
    tma.store_wait(pendings=0)


@gluon.jit
def _bias(result, col, sizes, how):
    """The bias of a consumer's columns, from `col` on."""
    COUNT: gl.constexpr = result.biases.shape[1]
    cols = span(col, COUNT, gl.BlockedLayout([1], [32], [4], [0]), how.WIDE)
    return gl.load(result.bias.ptr + cols * result.bias.step, mask=cols < sizes.N, other=0)


@gluon.jit
def _write(
    acc, FIRST: gl.constexpr, WHO: gl.constexpr, result: Result, ring: Ring, at, phase, batch, row, col, sizes, epilogue, how,
    splits, tile,
):  # fmt: skip
    """Write a consumer's sums, (ROWS, those of LEFT + RIGHT from FIRST on), of what begins at (row, col), a box at a time.
    Returns where the ring is after boxes of C."""
    BY_POINTERS: gl.constexpr = result.boxes is None
    OF_A_RESULT: gl.constexpr = 2 if epilogue.GATED else 1  # sums
    ONCE: gl.constexpr = (32 if BY_POINTERS else result.staged.shape[2 if tile.SWAPPED else 3]) * OF_A_RESULT
    if acc.shape[1] > ONCE:
        HALF: gl.constexpr = acc.shape[1] // 2
        left, right = acc.reshape((acc.shape[0], 2, HALF)).permute((0, 2, 1)).split()
        at, phase = _write(left, FIRST, WHO, result, ring, at, phase, batch, row, col, sizes, epilogue, how, splits, tile)
        at, phase = _write(
            right, FIRST + HALF, WHO, result, ring, at, phase, batch, row, col, sizes, epilogue, how, splits, tile
        )
    else:
        if tile.SWAPPED:
            acc = acc.permute((1, 0))
            row += FIRST
        else:
            col += FIRST
        if BY_POINTERS:  # a warp writes 32 neighbours of a row; the sums of its own are pairs of 8 rows
            acc = gl.convert_layout(acc, gl.BlockedLayout([1, OF_A_RESULT], [1, 32], [4, 1], [1, 0]))
        LAYOUT: gl.constexpr = acc.type.layout
        rows = span(row, acc.shape[0], gl.SliceLayout(1, LAYOUT), how.WIDE)
        cols = span(col, acc.shape[1], gl.SliceLayout(0, LAYOUT), how.WIDE)
        far = batch.to(gl.int64) if how.WIDE else batch
        if BY_POINTERS:
            acc = finished(acc, result.scale_a, result.scale_b, result.c, result.bias, far, rows, cols, sizes, epilogue)
            if epilogue.GATED:  # a column of each pair is left
                HALVED: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
                acc = gl.convert_layout(acc, HALVED)
                rows = span(row, acc.shape[0], gl.SliceLayout(1, HALVED), how.WIDE)
                cols = span(col // 2, acc.shape[1], gl.SliceLayout(0, HALVED), how.WIDE)
            store_finished(acc, result.out, far, rows, cols, sizes, epilogue)
        else:
            if splits is None:
                c_tile = None
                if result.addend is not None:
                    mbarrier.wait(ring.full.index(at), phase)
                    box = ring.slices.a.index(at * tile.CONSUMERS + WHO)
                    c_tile = box.reshape((box.shape[1], box.shape[2])).load(LAYOUT)
                    fence_async_shared()  # the next copy is of another proxy, and would not wait for loads under way
                    mbarrier.arrive(ring.empty.index(at))
                    at, phase = next_place(at, phase, tile.STAGES)
                bias_row = None
                if result.biases is not None:
                    own = result.biases.index(WHO) if tile.SWAPPED else result.biases.index(WHO).slice(FIRST, ONCE)
                    bias_row = own.load(gl.SliceLayout(0, LAYOUT))
                bias = result.bias if result.biases is None else None
                acc = finished(
                    acc, result.scale_a, result.scale_b, result.c, bias, far, rows, cols, sizes, epilogue, c_tile, bias_row
                )
                acc = rounded(acc, result.out.ptr.dtype.element_ty)
            AT: gl.constexpr = FIRST // ONCE
            box = result.staged.index(WHO * tile.STAGED + AT % tile.STAGED)
            tma.store_wait(pendings=tile.STAGED - 1 if AT > 0 else 0)  # what was in it has been read
            box.reshape((box.shape[1], box.shape[2])).store(acc)
            fence_async_shared()
            store_box(result.boxes, [batch, row, col // OF_A_RESULT], box)
    return at, phase
