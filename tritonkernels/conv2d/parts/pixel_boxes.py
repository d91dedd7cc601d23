"""The partitions of warp_specialized: what the producer's warps do, and what each consumer's warpgroup does."""

from typing import Any, NamedTuple

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, warpgroup_mma, warpgroup_mma_wait

from ...language.activation import activated
from ...language.dot import round_to_tf32
from ...language.gluon_tile import is_below, wide
from ...language.part_of_sums import LINES, store_part
from ...language.renamed import copy_async, load_box
from ...language.ring import announce, announce_last, next_place
from ...language.shared_walk import count_pieces, piece_of

AHEAD = gl.constexpr(2)  # slices that are on their way while one more is requested


class Tile(NamedTuple):
    """Constants. M positions x N filters, the first LEFT of which are a product, and the last RIGHT, if any, another one;
    consumers DOWN of each other and ACROSS; STAGES of slices of DEPTH channels of a tap, of which CHUNK are 16 bytes.
    PIXELS_INSIDE: results' pixels are closer together than their channels; else WORDS: by 16 bytes, and ADDED_WORDS: the
    residual's, too. FILTERS_INSIDE: boxes of filters have a row for each channel. TF32: consumers round pixels to it. The
    ACTIVATION is QUICK of 16 bits (language/activation.py)."""

    M: Any
    N: Any
    LEFT: Any
    RIGHT: Any
    DOWN: Any
    ACROSS: Any
    STAGES: Any
    DEPTH: Any
    CHUNK: Any
    PIXELS_INSIDE: Any
    WORDS: Any
    ADDED_WORDS: Any
    FILTERS_INSIDE: Any
    TF32: Any
    ACTIVATION: Any
    QUICK: Any
    WIDE: Any


class Ring(NamedTuple):
    """Boxes of pixels, of the first filters and of the last, slice after slice; the same memory as the operands of consumers; a
    barrier that says that a slice is full, and one that it is empty. rest is None if RIGHT is 0."""

    pixels: Any
    filters: Any
    rest: Any
    left: Any
    right: Any
    full: Any
    empty: Any


@gluon.jit
def _corner(number, g, tile):
    """(first position, first filter) of a tile."""
    across = gl.cdiv(g.K, tile.N)
    return number // across * tile.M, number % across * tile.N


@gluon.jit
def _request(filters, place, tap, filter, c, full, tile):
    """Ask TMA for a box of filters of a tap."""
    if tile.FILTERS_INSIDE:
        load_box(filters, [tap, c, filter], full, place)
    else:
        load_box(filters, [tap, filter, c], full, place)


@gluon.jit
def produce(input, filters, filters_rest, ring: Ring, g, taps, cut, tile):
    """Fill the ring with the slices of all pieces: tap by tap, the channels of each. TMA copies filters; threads copy pixels by
    16 bytes, and announce a slice when AHEAD others are on their way."""
    DEPTH: gl.constexpr = tile.DEPTH
    STAGES: gl.constexpr = tile.STAGES
    CHUNK: gl.constexpr = tile.CHUNK
    WIDE: gl.constexpr = tile.WIDE
    nbytes: gl.constexpr = filters.block_type.nbytes
    rest_nbytes: gl.constexpr = 0 if filters_rest is None else filters_rest.block_type.nbytes
    LANES: gl.constexpr = gl.BlockedLayout([1, CHUNK], [4, 8], [4, 1], [1, 0])
    columns = gl.arange(0, DEPTH, gl.SliceLayout(0, LANES))
    chunks = gl.cdiv(g.C, DEPTH)
    whole, pieces = count_pieces(gl.program_id(0), gl.num_programs(0), cut)
    at = 0
    phase = 0
    slices = 0
    for index in range(pieces):
        number, first, count, _ = piece_of(index, whole, gl.program_id(0), gl.num_programs(0), cut)
        position, filter = _corner(number, g, tile)
        pixel = position + gl.arange(0, tile.M, gl.SliceLayout(1, LANES))
        n = pixel // g.Q // g.P
        h = pixel // g.Q % g.P * g.step_h - g.padding_h
        w = pixel % g.Q * g.step_w - g.padding_w
        rows = wide(n, WIDE) * input.n + wide(h, WIDE) * input.h + wide(w, WIDE) * input.w
        c = first % chunks * DEPTH
        r = first // chunks // g.S
        s = first // chunks % g.S
        for _ in range(count):
            mbarrier.wait(ring.empty.index(at), phase ^ 1)
            full = ring.full.index(at)
            mbarrier.expect(full, nbytes + rest_nbytes)
            tap = taps.first + r * taps.down + s * taps.right
            _request(filters, ring.filters.index(at), tap, filter, c, full, tile)
            if filters_rest is not None:
                _request(filters_rest, ring.rest.index(at), tap, filter + tile.LEFT, c, full, tile)
            down = r * g.dilation_h
            right = s * g.dilation_w
            of_tap = wide(down, WIDE) * input.h + wide(right, WIDE) * input.w + c
            inside = (n < g.N) & is_below(h + down, g.H) & is_below(w + right, g.W)
            exists = c + columns // CHUNK * CHUNK < g.C  # whole chunks: those of the last channels are filled up with zeros
            from_rows = gl.multiple_of((rows + of_tap)[:, None], [CHUNK, CHUNK])
            chunk = gl.max_contiguous(gl.multiple_of(columns[None, :], [CHUNK, CHUNK]), [1, CHUNK])
            copy_async(ring.pixels.index(at), input.ptr + (from_rows + chunk), mask=inside[:, None] & exists[None, :])
            async_copy.commit_group()
            announce(ring.full, at, AHEAD, AHEAD, slices, STAGES)
            slices += 1
            at, phase = next_place(at, phase, STAGES)
            c += DEPTH
            ends = c >= g.C
            c = gl.where(ends, 0, c)
            s = gl.where(ends, s + 1, s)
            r = gl.where(s == g.S, r + 1, r)
            s = gl.where(s == g.S, 0, s)
    announce_last(ring.full, at, AHEAD, slices, STAGES)


@gluon.jit
def _add_rounded(pixels, filters, filters_rest, acc, rest):
    """acc + pixels filters, or if there is a rest (that, rest + pixels filters_rest), of pixels that are rounded to tf32 in
    registers: in parts of 16 of them, one after the other, while the other consumer multiplies."""
    PARTS: gl.constexpr = pixels.shape[0] // 64
    WIDTH: gl.constexpr = pixels.shape[1] // PARTS
    for i in gl.static_range(PARTS):
        left = round_to_tf32(pixels.slice(i * WIDTH, WIDTH, 1).load(gl.DotOperandLayout(0, acc.type.layout, 1)))
        acc = warpgroup_mma(left, filters.slice(i * WIDTH, WIDTH, 0), acc, is_async=True)
        if rest is None:
            acc = warpgroup_mma_wait(0, deps=(acc,))
        else:
            left = gl.convert_layout(left, gl.DotOperandLayout(0, rest.type.layout, 1))  # the same registers
            rest = warpgroup_mma(left, filters_rest.slice(i * WIDTH, WIDTH, 0), rest, is_async=True)
            acc, rest = warpgroup_mma_wait(0, deps=(acc, rest))
    if rest is None:
        return acc
    else:
        return acc, rest


@gluon.jit
def _zeros(ROWS: gl.constexpr, COLS: gl.constexpr, tile):
    """Sums of a consumer, in the layout of wgmma's."""
    return gl.zeros([ROWS, COLS], gl.float32, gl.NVMMADistributedLayout([3, 0], [4, 1], [16, COLS, 2 * tile.CHUNK]))


@gluon.jit
def consume(WHO: gl.constexpr, bias, residual, out, parts, ring: Ring, g, cut, most, tile):
    """Multiply consumer WHO's part of all pieces; store whole tiles, and sums of others in the workspace."""
    DOWN: gl.constexpr = WHO // tile.ACROSS
    ACROSS: gl.constexpr = WHO % tile.ACROSS
    ROWS: gl.constexpr = tile.M // tile.DOWN
    COLS: gl.constexpr = tile.LEFT // tile.ACROSS
    whole, pieces = count_pieces(gl.program_id(0), gl.num_programs(0), cut)
    at = 0
    phase = 0
    before = 0
    for index in range(pieces):
        number, _, count, part = piece_of(index, whole, gl.program_id(0), gl.num_programs(0), cut)
        acc = _zeros(ROWS, COLS, tile)
        rest = _zeros(ROWS, tile.RIGHT, tile) if tile.RIGHT > 0 else None
        for i in range(count):
            mbarrier.wait(ring.full.index(at), phase)
            right = ring.right.index(at * tile.ACROSS + ACROSS)
            right = right if tile.FILTERS_INSIDE else right.permute((1, 0))
            left = ring.left.index(at * tile.DOWN + DOWN)
            if rest is not None:
                box = ring.rest.index(at)
                filters_rest = box.reshape((box.shape[1], box.shape[2]))
                filters_rest = filters_rest if tile.FILTERS_INSIDE else filters_rest.permute((1, 0))
            if tile.TF32:
                if rest is not None:
                    acc, rest = _add_rounded(left, right, filters_rest, acc, rest)
                else:
                    acc = _add_rounded(left, right, None, acc, None)
                mbarrier.arrive(ring.empty.index(at))
            else:
                acc = warpgroup_mma(left, right, acc, is_async=True)
                if rest is not None:
                    rest = warpgroup_mma(left, filters_rest, rest, is_async=True)
                    acc, rest = warpgroup_mma_wait(2, deps=(acc, rest))
                else:
                    acc = warpgroup_mma_wait(1, deps=(acc,))
                mbarrier.arrive(ring.empty.index(before), pred=i > 0)  # the products before have ended
            before = at
            at, phase = next_place(at, phase, tile.STAGES)
        if not tile.TF32:
            if rest is not None:
                acc, rest = warpgroup_mma_wait(0, deps=(acc, rest))
            else:
                acc = warpgroup_mma_wait(0, deps=(acc,))
            mbarrier.arrive(ring.empty.index(before))
        position, filter = _corner(number, g, tile)
        if parts is None:
            _store_both(acc, rest, bias, residual, out, position + DOWN * ROWS, filter + ACROSS * COLS, g, tile)
        else:
            if count < cut.slices:
                slot = (number - cut.whole) * most + part
                tile_ptr = parts + slot.to(gl.int64) * (tile.M * tile.N)
                store_part(acc, 0, tile_ptr, DOWN * ROWS, ACROSS * COLS, tile)
                if rest is not None:
                    store_part(rest, tile.LEFT, tile_ptr, DOWN * ROWS, 0, tile)
            else:
                _store_both(acc, rest, bias, residual, out, position + DOWN * ROWS, filter + ACROSS * COLS, g, tile)


@gluon.jit
def _store_both(acc, rest, bias, residual, out, position, filter, g, tile):
    """Results of a consumer, of filters from the given one on; rest: those of the last RIGHT, or None."""
    _store(acc, bias, residual, out, position, filter, g, tile)
    if rest is not None:
        _store(rest, bias, residual, out, position, filter + tile.LEFT, g, tile)


@gluon.jit
def _store(acc, bias, residual, out, position, filter, g, tile):
    """Results of positions and filters from the given ones on."""
    if acc.shape[1] > (LINES * 64 // acc.shape[0] if tile.TF32 else LINES):  # at most 16 registers at once
        HALF: gl.constexpr = acc.shape[1] // 2
        left, right = acc.reshape((acc.shape[0], 2, HALF)).permute((0, 2, 1)).split()
        _store(left, bias, residual, out, position, filter, g, tile)
        _store(right, bias, residual, out, position, filter + HALF, g, tile)
    else:
        if bias is not None:
            k = filter + gl.arange(0, acc.shape[1], gl.SliceLayout(0, acc.type.layout))
            acc += gl.load(bias.ptr + k * bias.step, mask=k < g.K, other=0).to(gl.float32)[None, :]
        CHUNK: gl.constexpr = tile.CHUNK
        DOWN: gl.constexpr = acc.shape[0] // 32  # warps
        ACROSS: gl.constexpr = acc.shape[1] // CHUNK  # lanes
        LAYOUT: gl.constexpr = (
            gl.BlockedLayout([1, 1], [32, 1], [DOWN, 4 // DOWN], [0, 1])
            if tile.PIXELS_INSIDE
            else gl.BlockedLayout([1, CHUNK], [32 // ACROSS, ACROSS], [4, 1], [1, 0])
        )
        if residual is not None:
            offsets, inside = _places(residual, position, filter, acc.shape, LAYOUT, tile.ADDED_WORDS, g, tile)
            added = gl.load(residual.ptr + offsets, mask=inside, other=0)
            acc += gl.convert_layout(added, acc.type.layout).to(gl.float32)
        acc = activated(acc, tile.ACTIVATION, tile.QUICK)
        values = gl.convert_layout(acc.to(out.ptr.dtype.element_ty), LAYOUT)
        offsets, inside = _places(out, position, filter, acc.shape, LAYOUT, tile.WORDS, g, tile)
        gl.store(out.ptr + offsets, values, mask=inside)


@gluon.jit
def _places(images, position, filter, SHAPE: gl.constexpr, LAYOUT: gl.constexpr, WORDS: gl.constexpr, g, tile):
    """(offsets, which of them exist) of positions and filters from the given ones on, in results or the residual."""
    CHUNK: gl.constexpr = tile.CHUNK
    pixel = position + gl.arange(0, SHAPE[0], gl.SliceLayout(1, LAYOUT))
    k = filter + gl.arange(0, SHAPE[1], gl.SliceLayout(0, LAYOUT))
    n = pixel // g.Q // g.P
    p = pixel // g.Q % g.P
    q = pixel % g.Q
    rows = wide(n, tile.WIDE) * images.n + wide(p, tile.WIDE) * images.h + wide(q, tile.WIDE) * images.w
    if WORDS:
        words = gl.max_contiguous(gl.multiple_of(k[None, :], [CHUNK, CHUNK]), [1, CHUNK])
        offsets = gl.multiple_of(rows[:, None], [CHUNK, CHUNK]) + words
        inside = (n < g.N)[:, None] & (k // CHUNK * CHUNK < g.K)[None, :]
    else:
        offsets = rows[:, None] + (wide(k, tile.WIDE) * images.c)[None, :]
        inside = (n < g.N)[:, None] & (k < g.K)[None, :]
    return offsets, inside
