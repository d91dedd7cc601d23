"""The partitions of warp_specialized: what the producer's warps do, and what each consumer's warpgroup does."""

from typing import Any, NamedTuple

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, warpgroup_mma, warpgroup_mma_wait

from ...language.gluon_tile import is_below, span, wide
from ...language.part_of_sums import LINES, store_part
from ...language.renamed import copy_async
from ...language.ring import announce, announce_last, next_place
from ...language.shared_walk import count_pieces, piece_of
from .bands import is_stored, place_of, within_group
from .positions import Positions, advance, channels_from, moved, positions

AHEAD = gl.constexpr(1)  # slices on their way while one more is requested: with half of the ring it takes 6 to 20 % longer


class Tile(NamedTuple):
    """Constants. M x N of the weight; consumers DOWN of each other and ACROSS; STAGES of slices; BOX positions and channels;
    GROUPED: of several groups."""

    M: Any
    N: Any
    DOWN: Any
    ACROSS: Any
    STAGES: Any
    BOX: Any
    GROUPED: Any
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
    """BOX columns of the weight: the place of their tap, whether there is such a unit, and their inputs' offsets from those of
    the first tap and channel."""

    down: Any
    right: Any
    exists: Any
    offsets: Any


@gluon.jit
def _unit(place, number, columns, input, g, bands, tile):
    unit = place.unit + number
    tap = unit // bands.chunks
    down = tap // g.S * g.dilation_h
    right = tap % g.S * g.dilation_w
    of_tap = wide(down, tile.WIDE) * input.h + wide(right, tile.WIDE) * input.w
    channels = channels_from(place.channel + unit % bands.chunks * tile.BOX, columns, g.C, 8)
    return Unit(down, right, tap < g.R * g.S, of_tap + channels)


@gluon.jit
def _copy_box(box, ptr, rows, columns, inside):
    """A row for each position, with zeros where it is not `inside`. Triton does not see that chunks of 8 are whole."""
    rows = gl.multiple_of(rows[:, None], [8, 8])
    columns = gl.max_contiguous(gl.multiple_of(columns[None, :], [8, 8]), [1, 8])
    copy_async(box, ptr + (rows + columns), mask=inside[:, None])


@gluon.jit
def _copy_unit(box, unit, ptr, at, exists, g):
    """The inputs of a unit's tap."""
    inside = exists & unit.exists & is_below(at.h + unit.down, g.H) & is_below(at.w + unit.right, g.W)
    _copy_box(box, ptr, at.input, unit.offsets, inside)


@gluon.jit
def produce(input, grad, ring: Ring, g, bands, cut, tile):
    """Fill the ring with the slices of all pieces. A slice is announced when AHEAD others are on their way."""
    BOX: gl.constexpr = tile.BOX
    STAGES: gl.constexpr = tile.STAGES
    ROWS: gl.constexpr = tile.M // BOX
    UNITS: gl.constexpr = tile.N // BOX
    WIDE: gl.constexpr = tile.WIDE
    LANES: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    columns = gl.arange(0, BOX, gl.SliceLayout(0, LANES))
    program = gl.program_id(0)
    whole, pieces = count_pieces(program, gl.num_programs(0), cut)
    step, of_row, of_image = advance(input, grad, g, BOX, WIDE)
    end_h = g.P * g.step_h - g.padding_h
    end_w = g.Q * g.step_w - g.padding_w
    at = 0
    phase = 0
    slices = 0
    for index in range(pieces):
        number, first, count, _ = piece_of(index, whole, program, gl.num_programs(0), cut)
        place = place_of(number, g, bands, tile.M, UNITS, tile.GROUPED)
        one = _unit(place, 0, columns, input, g, bands, tile)
        two = _unit(place, 1, columns, input, g, bands, tile)
        three = _unit(place, 2, columns, input, g, bands, tile)
        four = _unit(place, 3, columns, input, g, bands, tile)
        now = positions(first, input, grad, g, BOX, gl.SliceLayout(1, LANES), WIDE)
        image, h, w, of_input, of_grad = now.image, now.h, now.w, now.input, now.grad
        for _ in range(count):
            mbarrier.wait(ring.empty.index(at), phase ^ 1)
            exists = image < g.N
            for i in gl.static_range(ROWS):
                rows = channels_from(place.row + i * BOX, columns, g.K, 8)
                _copy_box(ring.grads.index(at * ROWS + i), grad.ptr, of_grad, rows, exists)
            now = Positions(image, h, w, of_input, of_grad)
            _copy_unit(ring.inputs.index(at * UNITS), one, input.ptr, now, exists, g)
            _copy_unit(ring.inputs.index(at * UNITS + 1), two, input.ptr, now, exists, g)
            if UNITS > 2:
                _copy_unit(ring.inputs.index(at * UNITS + 2), three, input.ptr, now, exists, g)
                _copy_unit(ring.inputs.index(at * UNITS + 3), four, input.ptr, now, exists, g)
            async_copy.commit_group()
            announce(ring.full, at, AHEAD, AHEAD, slices, STAGES)
            slices += 1
            at, phase = next_place(at, phase, STAGES)
            now = moved(now, step, True)
            now = moved(now, of_row, now.w >= end_w)
            now = moved(now, of_image, now.h >= end_h)
            image, h, w, of_input, of_grad = now.image, now.h, now.w, now.input, now.grad
    announce_last(ring.full, at, AHEAD, slices, STAGES)


@gluon.jit
def consume(WHO: gl.constexpr, out, parts, ring: Ring, g, bands, cut, most, tile):
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
            mbarrier.arrive(ring.empty.index(before), pred=i > 0)  # the product before has ended
            before = at
            at, phase = next_place(at, phase, tile.STAGES)
        acc = warpgroup_mma_wait(0, deps=(acc,))
        mbarrier.arrive(ring.empty.index(before))
        place = place_of(number, g, bands, tile.M, tile.N // tile.BOX, tile.GROUPED)
        if parts is None:
            _store(acc, 0, out, place, DOWN * ROWS, ACROSS * COLS, g, bands, tile)
        else:
            if count < cut.slices:
                slot = (number - cut.whole) * most + part
                store_part(acc, 0, parts + slot.to(gl.int64) * (tile.M * tile.N), DOWN * ROWS, ACROSS * COLS, tile)
            else:
                _store(acc, 0, out, place, DOWN * ROWS, ACROSS * COLS, g, bands, tile)


@gluon.jit
def _store(acc, FIRST: gl.constexpr, out, place, row, col, g, bands, tile):
    """The same to the weight, where it has these rows and columns."""
    if acc.shape[1] > LINES:
        HALF: gl.constexpr = acc.shape[1] // 2
        left, right = acc.reshape((acc.shape[0], 2, HALF)).permute((0, 2, 1)).split()
        _store(left, FIRST, out, place, row, col, g, bands, tile)
        _store(right, FIRST + HALF, out, place, row, col, g, bands, tile)
    else:
        LAYOUT: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
        values = gl.convert_layout(acc, LAYOUT).to(out.ptr.dtype.element_ty)
        k = span(place.row + row, acc.shape[0], gl.SliceLayout(1, LAYOUT), tile.WIDE)
        columns = gl.arange(0, acc.shape[1], gl.SliceLayout(0, LAYOUT))
        unit = place.unit + (col + FIRST) // tile.BOX  # LINES columns are of one unit
        tap = unit // bands.chunks
        c = place.channel + unit % bands.chunks * tile.BOX + (col + FIRST) % tile.BOX + columns
        filters = tap // g.S * out.r + tap % g.S * out.s + within_group(c, g, tile.GROUPED) * out.c
        inside = is_stored(place, k[:, None], c[None, :], tap, g, tile.GROUPED)
        gl.store(out.ptr + (k[:, None] * out.k + filters[None, :]), values, mask=inside)
