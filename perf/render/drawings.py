"""The drawings of docs/gemm.md, as SVG made from the formulas that they show."""

from itertools import islice

from tritonkernels.analysis.order import grouped

CELL = 18
COLOURS = ("#cfe3f7", "#f9d9c0", "#d6efcf", "#f4cfe0", "#e3daf5", "#fbf0bf", "#cdeeee", "#e6e2d8")


class Drawing:
    """Rectangles and text on a canvas that grows with them."""

    def __init__(self):
        self._parts, self._width, self._height = [], 0, 0

    def box(self, x, y, width, height, fill, text="", size=9):
        self._grow(x + width, y + height)
        self._parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}" stroke="#777" stroke-width="0.5"/>'
        )
        if text != "":
            self.text(x + width / 2, y + height / 2 + size / 3, text, size, "middle")

    def text(self, x, y, text, size=11, anchor="start"):
        self._grow(x + (len(str(text)) * size * 0.6 if anchor == "start" else 0), y + 4)
        self._parts.append(
            f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}" font-family="sans-serif">{text}</text>'
        )

    def _grow(self, right, bottom):
        self._width, self._height = max(self._width, right), max(self._height, bottom)

    def svg(self):
        size = f'width="{self._width + 10:.0f}" height="{self._height + 10:.0f}"'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
                '<rect width="100%" height="100%" fill="white"/>',
                *self._parts,
                "</svg>\n",
            ]
        )


def _lane_map(drawing, x, y, title, place, rows, cols):
    """Lane numbers on a grid of thread tiles; place: lane -> (row, col)."""
    drawing.text(x, y, title)
    for lane in range(32):
        row, col = place(lane)
        drawing.box(x + col * CELL, y + 8 + row * CELL, CELL, CELL, COLOURS[lane // 8], lane)
    return x + cols * CELL + 40, y + rows * CELL


def warp_tiled():
    """The thread tiles of a warp: two rows of 16 in `tiled`, 4 x 8 in `warp_tiled`."""
    drawing = Drawing()
    x, _ = _lane_map(drawing, 10, 16, "tiled: 16 + 128 floats per k", lambda lane: (lane // 16, lane % 16), 2, 16)
    _lane_map(drawing, x, 16, "warp_tiled: 32 + 64 floats per k", lambda lane: (lane // 8, lane % 8), 4, 8)
    return drawing.svg()


def z_order():
    """Which lane owns which 4 x 4 quad of a quadrant of the warp tile: `conflict_free`'s order and the Z."""
    drawing = Drawing()
    x, _ = _lane_map(drawing, 10, 16, "conflict_free", lambda lane: (lane // 2 % 4, lane // 8 * 2 + lane % 2), 4, 8)

    def z(lane):
        return (lane >> 1 & 1) | (lane >> 2 & 2), (lane & 1) | (lane >> 1 & 2) | (lane >> 2 & 4)

    _lane_map(drawing, x, 16, "z_order", z, 4, 8)
    return drawing.svg()


def store_banks(pitch):
    """Lanes per bank when a warp stores one element each of 16 rows x 2 quads of k into A's transposed tile."""
    lanes = [0] * 32
    for lane in range(32):
        row, k = lane // 2, lane % 2 * 4
        lanes[(k * pitch + row) % 32] += 1
    return lanes


def conflict_free():
    """Lanes per bank of one store of A: rows of 128 floats, and of 132."""
    drawing = Drawing()
    for i, (title, pitch) in enumerate((("vectorized: pitch 128", 128), ("conflict_free: pitch 132", 132))):
        y = 20 + i * 70
        drawing.text(10, y, f"{title}, {max(store_banks(pitch))} lanes in the busiest bank")
        for bank, lanes in enumerate(store_banks(pitch)):
            drawing.box(
                10 + bank * CELL, y + 6, CELL, CELL, "#eee" if not lanes else COLOURS[2 if lanes == 1 else 1], lanes or ""
            )
    return drawing.svg()


def double_buffered():
    """Loads and products of four slices in time, one after the other and overlapped."""
    drawing = Drawing()
    drawing.text(10, 16, "z_order: load, wait, multiply")
    for i in range(4):
        drawing.box(10 + i * 120, 24, 60, CELL, COLOURS[1], f"load {i}")
        drawing.box(70 + i * 120, 24, 60, CELL, COLOURS[2], f"multiply {i}")
    drawing.text(10, 76, "double_buffered: the next slice is loaded meanwhile")
    for i in range(4):
        drawing.box(10 + i * 60, 84, 60, CELL, COLOURS[1], f"load {i}")
        drawing.box(70 + i * 60, 84 + CELL, 60, CELL, COLOURS[2], f"multiply {i}")
    return drawing.svg()


def rasterized(tiles=16, wave=32):
    """The first wave of 32 blocks on 16 x 16 tiles, in rows and in bands of 4 rows of tiles."""
    drawing, x = Drawing(), 10
    for group in (1, 4):
        first = list(islice(grouped(tiles, tiles, group), wave))
        rows, cols = len({m for m, _ in first}), len({n for _, n in first})
        drawing.text(x, 16, f"GROUP {group}: {rows} tile rows of A, {cols} tile columns of B")
        for m in range(tiles):
            for n in range(tiles):
                taken = (m, n) in first
                drawing.box(
                    x + n * 14, 24 + m * 14, 14, 14, COLOURS[0] if taken else "white", first.index((m, n)) if taken else "", 7
                )
        x += tiles * 14 + 60
    return drawing.svg()


def stream_k(sms=4, tiles=6, slices=6):
    """6 tiles of 6 slices on 4 SMs: a tail, and the same work cut into equal pieces."""
    drawing = Drawing()
    drawing.text(10, 16, "a block per tile: the second wave keeps 2 of 4 SMs busy")
    for tile in range(tiles):
        drawing.box(
            10 + tile // sms * slices * CELL, 24 + tile % sms * CELL, slices * CELL, CELL, COLOURS[tile], f"tile {tile}"
        )
    drawing.text(10, 124, "stream_k: every SM gets 9 slices; tiles 1 and 4 are added up from two parts")
    share = tiles * slices // sms
    for piece in range(tiles * slices):
        sm, at = divmod(piece, share)
        drawing.box(10 + at * CELL, 132 + sm * CELL, CELL, CELL, COLOURS[piece // slices], piece // slices)
    return drawing.svg()


DRAWINGS = {f.__name__: f for f in (warp_tiled, conflict_free, z_order, double_buffered, rasterized, stream_k)}
