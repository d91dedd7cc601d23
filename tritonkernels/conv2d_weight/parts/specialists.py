"""The partitions of warp_specialized: what the producer's warps do, and what each consumer's warpgroup does."""

from typing import Any, NamedTuple

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from ...gemm.parts.gluon_tile import span
from ...language.renamed import barrier, copy_async
from .walk import count_pieces, piece_of


class Tile(NamedTuple):
    """Constants. M x N of the weight; consumers DOWN of each other and ACROSS; STAGES of slices; BOX positions and channels."""

    M: Any
    N: Any
    DOWN: Any
    ACROSS: Any
    STAGES: Any
    BOX: Any
    WIDE: Any


class Ring(NamedTuple):
    """Boxes of grad_output and of inputs, slice after slice; the same memory as the operands of consumers; a barrier that says
    that a slice is full, and one that it is empty."""

    grads: Any
    inputs: Any
    left: Any
    right: Any
    full: Any
    empty: Any


class Unit(NamedTuple):
    """BOX columns of the weight: a tap's place, the first channel, whether there is such a unit."""

    down: Any
    right: Any
    channel: Any
    exists: Any


class Place(NamedTuple):
    """Where a tile begins: its first row, its first unit; units of a tap, and of the weight."""

    row: Any
    unit: Any
    chunks: Any
    units: Any


@gluon.jit
def place_of(index, g, tile):
    tiles_m = gl.cdiv(g.K, tile.M)
    chunks = gl.cdiv(g.C, tile.BOX)
    return Place(index % tiles_m * tile.M, index // tiles_m * (tile.N // tile.BOX), chunks, g.R * g.S * chunks)


@gluon.jit
def _unit(place, number, g, tile):
    unit = place.unit + number
    tap = unit // place.chunks
    return Unit(tap // g.S * g.dilation_h, tap % g.S * g.dilation_w, unit % place.chunks * tile.BOX, unit < place.units)


@gluon.jit
def _next(at, phase, STAGES: gl.constexpr):
    """The slice's place in the ring after this one, and the phase of its barriers."""
    last = at == STAGES - 1
    return gl.where(last, 0, at + 1), gl.where(last, phase ^ 1, phase)


@gluon.jit
def _whole_chunks(index, length):
    """Indices in chunks of 8; those of chunks behind the length are in the last one: nobody stores their sums."""
    last = (length - 1) // 8 * 8
    return gl.max_contiguous(gl.multiple_of(gl.minimum(index, last + index % 8), 8), 8)


@gluon.jit
def _copy_box(box, ptr, rows, columns, inside):
    """A row for each position, with zeros where it is not `inside`."""
    copy_async(box, ptr + (gl.multiple_of(rows, 8)[:, None] + columns[None, :]), mask=inside[:, None])


@gluon.jit
def _copy_unit(box, unit, input, image, h, w, inside, columns, g, WIDE: gl.constexpr):
    """The inputs of a unit's tap."""
    h += unit.down
    w += unit.right
    inside = inside & unit.exists & (h >= 0) & (h < g.H) & (w >= 0) & (w < g.W)
    if WIDE:
        h = h.to(gl.int64)
        w = w.to(gl.int64)
    _copy_box(box, input.ptr, image + h * input.h + w * input.w, _whole_chunks(unit.channel + columns, g.C), inside)


@gluon.jit
def _publish(ring, at, exists):
    """The slice at that place has landed, for all warps to see, and for wgmma."""
    fence_async_shared()
    barrier()
    mbarrier.arrive(ring.full.index(at), pred=exists)


@gluon.jit
def produce(input, grad, ring: Ring, g, cut, tile):
    """Fill the ring with the slices of all pieces. A slice is published when the next one is on its way."""
    BOX: gl.constexpr = tile.BOX
    ROWS: gl.constexpr = tile.M // BOX
    UNITS: gl.constexpr = tile.N // BOX
    WIDE: gl.constexpr = tile.WIDE
    LANES: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    columns = gl.arange(0, BOX, gl.SliceLayout(0, LANES))
    program = gl.program_id(0)
    whole, pieces = count_pieces(program, gl.num_programs(0), cut)
    at = 0
    phase = 0
    before = 0
    slices = 0
    for index in range(pieces):
        number, first, count, _ = piece_of(index, whole, program, gl.num_programs(0), cut)
        place = place_of(number, g, tile)
        one = _unit(place, 0, g, tile)
        two = _unit(place, 1, g, tile)
        three = _unit(place, 2, g, tile)
        four = _unit(place, 3, g, tile)
        position = first * BOX + gl.arange(0, BOX, gl.SliceLayout(1, LANES))
        q = position % g.Q
        p = position // g.Q % g.P
        n = position // g.Q // g.P
        for _ in range(count):
            mbarrier.wait(ring.empty.index(at), phase ^ 1)
            inside = n < g.N
            image = n.to(gl.int64) if WIDE else n
            of_grad = image * grad.n + (p.to(gl.int64) if WIDE else p) * grad.h + (q.to(gl.int64) if WIDE else q) * grad.w
            for i in gl.static_range(ROWS):
                _copy_box(
                    ring.grads.index(at * ROWS + i), grad.ptr, of_grad, _whole_chunks(place.row + i * BOX + columns, g.K), inside
                )
            of_image = image * input.n
            h = p * g.step_h - g.padding_h
            w = q * g.step_w - g.padding_w
            _copy_unit(ring.inputs.index(at * UNITS), one, input, of_image, h, w, inside, columns, g, WIDE)
            _copy_unit(ring.inputs.index(at * UNITS + 1), two, input, of_image, h, w, inside, columns, g, WIDE)
            if UNITS > 2:
                _copy_unit(ring.inputs.index(at * UNITS + 2), three, input, of_image, h, w, inside, columns, g, WIDE)
                _copy_unit(ring.inputs.index(at * UNITS + 3), four, input, of_image, h, w, inside, columns, g, WIDE)
            async_copy.commit_group()
            async_copy.wait_group(1)
            _publish(ring, before, slices > 0)
            slices += 1
            before = at
            at, phase = _next(at, phase, tile.STAGES)
            q += BOX % g.Q  # 64 positions on
            carry = q >= g.Q
            q = gl.where(carry, q - g.Q, q)
            p += BOX // g.Q % g.P + carry.to(gl.int32)
            carry = p >= g.P
            p = gl.where(carry, p - g.P, p)
            n += BOX // g.Q // g.P + carry.to(gl.int32)
    async_copy.wait_group(0)
    _publish(ring, before, slices > 0)


@gluon.jit
def consume(WHO: gl.constexpr, out, parts, ring: Ring, g, cut, most, tile):
    """Multiply consumer WHO's part of all pieces; store whole tiles, and sums of others in the workspace."""
    DOWN: gl.constexpr = WHO // tile.ACROSS
    ACROSS: gl.constexpr = WHO % tile.ACROSS
    ROWS: gl.constexpr = tile.M // tile.DOWN
    COLS: gl.constexpr = tile.N // tile.ACROSS
    program = gl.program_id(0)
    whole, pieces = count_pieces(program, gl.num_programs(0), cut)
    at = 0
    phase = 0
    before = 0
    for index in range(pieces):
        number, _, count, part = piece_of(index, whole, program, gl.num_programs(0), cut)
        acc = gl.zeros([ROWS, COLS], gl.float32, gl.NVMMADistributedLayout([3, 0], [4, 1], [16, COLS, 16]))
        for i in range(count):
            mbarrier.wait(ring.full.index(at), phase)
            left = ring.left.index(at * tile.DOWN + DOWN).permute((1, 0))
            acc = warpgroup_mma(left, ring.right.index(at * tile.ACROSS + ACROSS), acc, is_async=True)
            acc = warpgroup_mma_wait(1, deps=(acc,))
            mbarrier.arrive(ring.empty.index(before), pred=i > 0)  # the newest product is under way, so the slice before is free
            before = at
            at, phase = _next(at, phase, tile.STAGES)
        acc = warpgroup_mma_wait(0, deps=(acc,))
        mbarrier.arrive(ring.empty.index(before))
        place = place_of(number, g, tile)
        if parts is None:
            _store(acc, 0, out, place, DOWN * ROWS, ACROSS * COLS, g, tile)
        else:
            if count < cut.slices:
                slot = (number - cut.whole) * most + part
                _store_part(acc, 0, parts + slot.to(gl.int64) * (tile.M * tile.N), DOWN * ROWS, ACROSS * COLS, tile)
            else:
                _store(acc, 0, out, place, DOWN * ROWS, ACROSS * COLS, g, tile)


LINES = gl.constexpr(32)  # columns that a warp stores together


@gluon.jit
def _store_part(acc, FIRST: gl.constexpr, tile_ptr, row, col, tile):
    """The sums of a consumer, which begin at (row, col) of the tile; FIRST of their columns are stored."""
    if acc.shape[1] > LINES:
        HALF: gl.constexpr = acc.shape[1] // 2
        left, right = acc.reshape((acc.shape[0], 2, HALF)).permute((0, 2, 1)).split()
        _store_part(left, FIRST, tile_ptr, row, col, tile)
        _store_part(right, FIRST + HALF, tile_ptr, row, col, tile)
    else:
        LAYOUT: gl.constexpr = acc.type.layout
        rows = row + gl.arange(0, acc.shape[0], gl.SliceLayout(1, LAYOUT))
        cols = col + FIRST + gl.arange(0, acc.shape[1], gl.SliceLayout(0, LAYOUT))
        gl.store(tile_ptr + (rows[:, None] * tile.N + cols[None, :]), acc)


@gluon.jit
def _store(acc, FIRST: gl.constexpr, out, place, row, col, g, tile):
    """The same to the weight, where it has these rows and columns."""
    if acc.shape[1] > LINES:
        HALF: gl.constexpr = acc.shape[1] // 2
        left, right = acc.reshape((acc.shape[0], 2, HALF)).permute((0, 2, 1)).split()
        _store(left, FIRST, out, place, row, col, g, tile)
        _store(right, FIRST + HALF, out, place, row, col, g, tile)
    else:
        LAYOUT: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
        values = gl.convert_layout(acc, LAYOUT).to(out.ptr.dtype.element_ty)
        k = span(place.row + row, acc.shape[0], gl.SliceLayout(1, LAYOUT), tile.WIDE)
        columns = gl.arange(0, acc.shape[1], gl.SliceLayout(0, LAYOUT))
        unit = place.unit + (col + FIRST) // tile.BOX  # LINES columns are of one unit
        tap = unit // place.chunks
        c = unit % place.chunks * tile.BOX + (col + FIRST) % tile.BOX + columns
        filters = tap // g.S * out.r + tap % g.S * out.s + c * out.c
        inside = (k < g.K)[:, None] & ((c < g.C) & (unit < place.units))[None, :]
        gl.store(out.ptr + (k[:, None] * out.k + filters[None, :]), values, mask=inside)
