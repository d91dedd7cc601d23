"""The drawings of docs/matmul.md, by the rules that they show: where chunks lie, who does what when, which tiles go together.
A consumer's warpgroup is a "group"."""

from itertools import islice

from tritonkernels.analysis.order import grouped

from ..show.palette import FILLS
from ..show.picture import Picture
from .drawings import EMPTY, draw, panel

LOAD, MULTIPLY, WRITE = FILLS[1], FILLS[2], FILLS[3]


def wgmma(rows=8, chunks=8):
    """Where chunks 0 and 1, of 16 bytes, of 8 rows of 128 bytes lie, in order and swizzled."""
    panels = []
    for title, bits in (("in order: chunk 0 in 4 banks", 0), ("swizzled: in all 32 banks", 7)):
        boxes = [(0, 0, chunks, rows, EMPTY, "")]
        boxes += [(c ^ row & bits, row, 1, 1, FILLS[1 + c], "" if c else 0) for row in range(rows) for c in (0, 1)]
        panels.append(panel(title, boxes, "8 rows of 128 bytes, 32 banks"))
    return panels


def tma(slices=5, stages=3, latency=4, products=2):
    """`wgmma` loads, waits and multiplies; a ring asks for a slice once the stage's former one has been multiplied."""
    serial = [(i * (latency + products), 0, latency, 1, LOAD, f"load {i}") for i in range(3)]
    serial += [(i * (latency + products) + latency, 1, products, 1, MULTIPLY, i) for i in range(3)]
    ring, ends = [], []
    for i in range(slices):
        asked = ends[i - stages] if i >= stages else 0
        began = max(asked + latency, ends[-1] if ends else 0)
        ends.append(began + products)
        ring += [(asked, i % stages, latency, 1, LOAD, f"load {i}"), (began, i % stages, products, 1, MULTIPLY, i)]
    return [
        panel("wgmma: one stage", serial, rows=("memory", "products")),
        panel(
            "tma: each stage is loaded (pink), full, multiplied (green)", ring, "time", [f"stage {i}" for i in range(stages)]
        ),
    ]


def specialized(slices=5, stages=3, latency=3, products=3):
    """The producer asks as soon as both consumers, one of which is behind, have read the slice that was in the stage."""
    asks, sums, ends = [], [], []
    for i in range(slices):
        asked = max(ends[i - stages] if i >= stages else 0, i)
        began = max(asked + 1 + latency, ends[-1] - 1 if ends else 0)
        ends.append(began + products + 1)
        asks.append((asked, 0, 1, 1, LOAD, i))
        sums += [(began + own, 1 + own, products, 1, MULTIPLY, f"multiply {i}") for own in (0, 1)]
    return [
        panel("specialized: requests (pink) run ahead of products", asks + sums, "time", ["producer", "group 0", "group 1"])
    ]


def tile_loop(shape=(64, 32), wave=132, height=1 / 8, width=1 / 4):
    """The tiles of 128 x 256 of 8192 x 8192 that 132 blocks multiply at a time, without bands and in bands of 8 rows."""
    panels = []
    for name, group in (("in columns", shape[0]), ("in bands of 8", 8)):
        tiles = list(islice(grouped(*shape, group), wave))
        rows, cols = ({tile[axis] for tile in tiles} for axis in (0, 1))
        boxes = [(0, 0, shape[1] * width, shape[0] * height, EMPTY, "")]
        for col in sorted(cols):
            own = [m for m, n in tiles if n == col]
            boxes.append((col * width, min(own) * height, width, len(own) * height, FILLS[0], ""))
        panels.append(panel(f"{name}: {len(rows)} x {len(cols)} tiles", boxes))
    return panels


def multicast():
    """The rows of a slice in the shared memory of two blocks, by the block that asks L2 for them."""
    names = (("A 0", 2), ("B left", 2), ("B right", 2)), (("A 1", 2), ("B left", 2), ("B right", 2))
    panels = []
    for title, asks in (
        ("tile_loop: L2 sends 2 * (128 + 256) rows", lambda block, part: block),
        ("multicast: 2 * 128 + 256 rows; each half of B goes to both", lambda block, part: max(part - 1, 0) if part else block),
    ):
        boxes = [
            (2 * part, block, width, 1, FILLS[asks(block, part)], name)
            for block, parts in enumerate(names)
            for part, (name, width) in enumerate(parts)
        ]
        panels.append(panel(title, boxes, rows=("block 0", "block 1")))
    return panels


def in_turn(products=6, writing=2):
    """Two consumers of one tile, and two that have a tile each, of half the size."""
    together = products + writing
    both = [
        (tile * together + start, own, length, 1, colour, label)
        for tile in (0, 1)
        for own in (0, 1)
        for start, length, colour, label in ((0, products, MULTIPLY, f"tile {tile}"), (products, writing, WRITE, "write"))
    ]
    half = products // 2
    turns = [
        (tile * half + start, tile % 2, length, 1, colour, label)
        for tile in range(4)
        for start, length, colour, label in ((0, half, MULTIPLY, f"tile {tile}"), (half, writing, WRITE, "write"))
    ]
    rows = ("group 0", "group 1")
    return [
        panel("tile_loop, multicast: nothing is multiplied meanwhile", both, rows=rows),
        panel("in_turn: one multiplies while the other writes", turns, "time", rows),
    ]


ACROSS = (wgmma, tile_loop)
DOWN = (tma, specialized, multicast, in_turn)
DRAWINGS = {made.__name__: Picture(draw, {"panels": made(), "across": made in ACROSS}) for made in (*ACROSS, *DOWN)}
