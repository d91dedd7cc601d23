"""The drawings of docs/gemm.md, made from the formulas that they show: panels of boxes on a grid."""

from itertools import islice

from tritonkernels.analysis.order import grouped

from ..show.palette import FILLS
from ..show.picture import Picture

EMPTY = "none"


def panel(title, boxes, xlabel="", rows=()):
    """A title over boxes (x, y, width, height, colour, label) in units of a cell; y counts downwards, `rows` are its labels."""
    return {"title": title, "boxes": boxes, "xlabel": xlabel, "rows": rows}


def draw(figure, panels, across):
    """The panels in a row, or else in a column."""
    from matplotlib.collections import PolyCollection

    inches, gap, above, below = 0.26, 0.5, 0.3, 0.25
    margin = 0.7 if any(p["rows"] for p in panels) else 0.1
    widths = [inches * max(x + width for x, _, width, *_ in p["boxes"]) for p in panels]
    heights = [inches * max(y + height for _, y, _, height, *_ in p["boxes"]) for p in panels]
    spaces = [max(width, 0.07 * len(p["title"])) for width, p in zip(widths, panels)]
    total_width = margin + (sum(spaces) + gap * (len(panels) - 1) if across else max(spaces)) + 0.1
    total_height = max(heights) + above + below if across else sum(heights) + (above + below) * len(panels)
    figure.set_size_inches(total_width, total_height)
    x, y = margin, above
    for p, width, height, space in zip(panels, widths, heights, spaces):
        place = (x / total_width, 1 - (y + height) / total_height, width / total_width, height / total_height)
        axes = figure.add_axes(place, xlim=(0, width / inches), ylim=(height / inches, 0), xticks=(), xlabel=p["xlabel"])
        axes.set_title(p["title"], loc="left")
        axes.set_yticks([row + 0.5 for row in range(len(p["rows"]))], p["rows"])
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        corners = [((x, y), (x + w, y), (x + w, y + h), (x, y + h)) for x, y, w, h, _, _ in p["boxes"]]
        colours = [colour for *_, colour, _ in p["boxes"]]
        axes.add_collection(PolyCollection(corners, facecolors=colours, edgecolors="#777777", linewidths=0.6, clip_on=False))
        for left, top, w, h, _, label in p["boxes"]:
            axes.text(left + w / 2, top + h / 2, label, color="#222222", size=7.5, ha="center", va="center_baseline")
        x, y = (x + space + gap, y) if across else (x, y + height + above + below)


def _lanes(title, place, **more):
    """The 32 lanes of a warp on a grid of thread tiles; place: lane -> (row, column)."""
    placed = [(*place(lane), lane) for lane in range(32)]
    return panel(title, [(col, row, 1, 1, FILLS[lane // 8], lane) for row, col, lane in placed], **more)


def warp_tiled():
    """The thread tiles of a warp: two rows of 16 in `tiled`, 4 x 8 in `warp_tiled`."""
    tiled = _lanes("tiled: 16 + 128 floats per k", lambda lane: (lane // 16, lane % 16))
    return [tiled, _lanes("warp_tiled: 32 + 64 floats per k", lambda lane: (lane // 8, lane % 8))]


def z_order():
    """Which lane owns which 4 x 4 quad of a quadrant of the warp tile: `conflict_free`'s order and the Z."""

    def z(lane):
        return (lane >> 1 & 1) | (lane >> 2 & 2), (lane & 1) | (lane >> 1 & 2) | (lane >> 2 & 4)

    return [_lanes("conflict_free", lambda lane: (lane // 2 % 4, lane // 8 * 2 + lane % 2)), _lanes("z_order", z)]


def store_banks(pitch):
    """Lanes per bank when a warp stores one element each of 16 rows x 2 quads of k into A's transposed tile."""
    lanes = [0] * 32
    for lane in range(32):
        row, k = lane // 2, lane % 2 * 4
        lanes[(k * pitch + row) % 32] += 1
    return lanes


def conflict_free():
    """Lanes per bank of one store of A: rows of 128 floats, and of 132."""
    panels = []
    for design, pitch in (("vectorized", 128), ("conflict_free", 132)):
        banks = store_banks(pitch)
        colours = [(EMPTY, FILLS[2], FILLS[1])[min(lanes, 2)] for lanes in banks]
        boxes = [(bank, 0, 1, 1, colours[bank], lanes or "") for bank, lanes in enumerate(banks)]
        panels.append(panel(f"{design}: pitch {pitch}; lanes in the busiest of the 32 banks: {max(banks)}", boxes))
    return panels


def double_buffered():
    """Loads and products of four slices in time, one after the other and overlapped."""

    def phases(name, starts, row, colour):
        return [(start, row, 3, 1, colour, f"{name} {i}") for i, start in enumerate(starts)]

    serial = phases("load", range(0, 24, 6), 0, FILLS[1]) + phases("multiply", range(3, 24, 6), 1, FILLS[2])
    overlapped = phases("load", range(0, 12, 3), 0, FILLS[1]) + phases("multiply", range(3, 15, 3), 1, FILLS[2])
    rows = ("memory", "math")
    return [
        panel("z_order: load, wait, multiply", serial, rows=rows),
        panel("double_buffered: the next slice is loaded meanwhile", overlapped, xlabel="time", rows=rows),
    ]


def rasterized(tiles=16, wave=32):
    """The first wave of 32 blocks on 16 x 16 tiles, in rows and in bands of 4 rows of tiles."""
    panels = []
    for group in (1, 4):
        order = {tile: block for block, tile in enumerate(islice(grouped(tiles, tiles, group), wave))}
        rows, cols = ({tile[axis] for tile in order} for axis in (0, 1))
        boxes = [
            (n, m, 1, 1, FILLS[0] if (m, n) in order else EMPTY, order.get((m, n), ""))
            for m in range(tiles)
            for n in range(tiles)
        ]
        panels.append(panel(f"GROUP {group}: {len(rows)} tile rows of A, {len(cols)} tile columns of B", boxes))
    return panels


def stream_k(sms=4, tiles=6, slices=6):
    """6 tiles of 6 slices on 4 SMs: a tail, and the same work cut into equal pieces."""
    whole = [(tile // sms * slices, tile % sms, slices, 1, FILLS[tile], f"tile {tile}") for tile in range(tiles)]
    share = tiles * slices // sms
    cut = [(i % share, i // share, 1, 1, FILLS[i // slices], i // slices) for i in range(tiles * slices)]
    rows = [f"SM {sm}" for sm in range(sms)]
    return [
        panel("a block per tile: the second wave keeps 2 of 4 SMs busy", whole, rows=rows),
        panel(
            f"stream_k: every SM gets {share} slices; tiles 1 and 4 are summed from two parts", cut, xlabel="time", rows=rows
        ),
    ]


ACROSS = (warp_tiled, z_order, rasterized)
DOWN = (conflict_free, double_buffered, stream_k)
DRAWINGS = {made.__name__: Picture(draw, {"panels": made(), "across": made in ACROSS}) for made in (*ACROSS, *DOWN)}
