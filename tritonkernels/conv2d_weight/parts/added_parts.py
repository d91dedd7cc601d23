"""The sums of tiles that several programs share: their parts in a workspace, and a kernel that adds them up, in the order of
positions."""

from ...choice.work import Work
from ...integers import ceil_div
from ...language.convolution import Geometry
from ...language.last_to_arrive import sum_of_splits
from ...language.overlap import wait_for_earlier_kernels
from ...language.shared_walk import Shares, count_parts
from ...language.structs import Filters
from ...language.triton import tl, triton
from ...launch import TritonLaunch
from ...operations.conv2d_weight.bands import Bands
from ...workspace import partial_sums
from .bands import is_stored, place_of, within_group

ADD = triton.Config({"BLOCK": 512, "BLOCK_S": 8}, num_warps=4, num_stages=1)


@triton.jit
def _add_parts_kernel(
    parts, out: Filters, g: Geometry, bands: Bands, cut: Shares, most, M: tl.constexpr, N: tl.constexpr, BOX: tl.constexpr,
    GROUPED: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr, BLOCK_S: tl.constexpr,
):  # fmt: skip
    """Adds up the parts of the tiles left, BLOCK elements of a tile a program. BOX columns are channels of one tap."""
    wait_for_earlier_kernels()
    tile = tl.program_id(0) // (M * N // BLOCK)
    element = tl.program_id(0) % (M * N // BLOCK) * BLOCK + tl.arange(0, BLOCK)
    place = place_of(tile + cut.whole, g, bands, M, N // BOX, GROUPED)
    k = place.row + element // N
    column = element % N
    unit = place.unit + column // BOX
    tap = unit // bands.chunks
    c = place.channel + unit % bands.chunks * BOX + column % BOX
    inside = is_stored(place, k, c, tap, g, GROUPED)
    first = parts + tl.cast(tile, tl.int64) * most * (M * N) + element
    total = sum_of_splits(first, inside, count_parts(tile, cut), M * N, BLOCK_S)
    if WIDE:
        k = k.to(tl.int64)
    places = out.ptr + k * out.k + within_group(c, g, GROUPED) * out.c + tap // g.S * out.r + tap % g.S * out.s
    tl.store(places, total.to(out.ptr.dtype.element_ty), mask=inside)


def _has_parts(share):
    return share.left > 0 and share.parts > 1


def workspace(share, sums, out):
    """(tiles left times most parts of a tile, so many sums each), or None if all tiles are whole."""
    return partial_sums(share.left * share.parts, sums, out) if _has_parts(share) else None


def addition(problem, bands, share, tile, parts, out):
    """The launch that adds up the parts of tiles (rows, columns, columns of one tap), if there are any."""
    if parts is None:
        return
    rows, columns, box = tile
    constants = {"M": rows, "N": columns, "BOX": box, "GROUPED": problem.groups > 1, "WIDE": problem.wide}
    grid = (share.left * (rows * columns // ADD.kwargs["BLOCK"]),)
    arguments = parts, Filters.of(out), Geometry.of(problem), bands, Shares.of(share), share.parts
    yield TritonLaunch(_add_parts_kernel, grid, ADD, *arguments, **constants)


def added(problem, share, sums):
    """The Work of adding up parts of so many sums each."""
    if not _has_parts(share):
        return
    block, at_once = ADD.kwargs["BLOCK"], ADD.kwargs["BLOCK_S"]
    fetched = block * (4 * share.parts + problem.dtype.itemsize)
    written = share.left * sums * problem.dtype.itemsize
    steps = 1 + ceil_div(share.parts, at_once)
    yield Work(share.left * sums // block, 128, float(block * share.parts), "ieee", fetched, written, steps)
