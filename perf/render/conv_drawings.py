"""The drawings of docs/conv2d.md, by the rules that they show: which inputs are read, from where, and who multiplies what.
Filters are 3 x 3 with padding 1, or without where a title has no zeros."""

import itertools

import torch

from tritonkernels.conv2d_input import prepare as prepare_input
from tritonkernels.operations.conv2d_input.phases import phases as phases_of
from tritonkernels.operations.conv2d_weight.pieces import cut

from ..show.palette import FILLS
from ..show.picture import Picture
from .drawings import EMPTY, draw, panel

TAPS = 3  # of a filter's column or row
ZERO = FILLS[4]  # outside of an image, or of what is at work
INPUT, LOADED, PIXELS = FILLS[1], FILLS[0], (FILLS[0], FILLS[5], FILLS[2], FILLS[3])


def reads(outputs, taps=TAPS, step=1):
    """How many of so many outputs in a row read each input that any reads."""
    places = [output * step + tap for output in range(outputs) for tap in range(taps)]
    return [places.count(place) for place in range(max(places) + 1)]


def halo(rows=4, cols=8):
    """The inputs of a block's tile of outputs, and how many of these read each."""
    down, across = reads(rows), reads(cols)
    boxes = [
        (x, y, 1, 1, INPUT if 1 <= y <= rows and 1 <= x <= cols else ZERO, down[y] * across[x])
        for y in range(len(down))
        for x in range(len(across))
    ]
    times = sum(down) * sum(across)
    title = f"{rows} x {cols} outputs (pink, and a halo in grey) read {len(boxes)} inputs {times} times"
    return [panel(title, boxes)]


def runs(outputs=7):
    """A thread's run of outputs down a column: each input is a register that the taps of a column share."""

    def products(count):
        last = [r + count - 1 for r in range(TAPS)]  # the only new input of a tap but the first
        return [(h, r, 1, 1, INPUT if r and h < last[r] else LOADED, h) for r in range(TAPS) for h in range(r, last[r] + 1)]

    rows = [f"tap {r}" for r in range(TAPS)]
    return [
        panel(f"an output: {TAPS} loads, {TAPS} products", products(1), rows=rows),
        panel(
            f"a run of {outputs}: {len(reads(outputs))} loads (violet), {outputs * TAPS} products",
            products(outputs),
            "the row of inputs that a tap multiplies, for each output",
            rows,
        ),
    ]


def implicit_gemm(size=4, positions=8):
    """An image with its pixels' numbers, and the first rows of the matrix that is made of it, a tile at a time."""
    image = [(w, h, 1, 1, PIXELS[h], h * size + w) for h in range(size) for w in range(size)]
    matrix = []
    for position, (r, s) in itertools.product(range(positions), itertools.product(range(TAPS), repeat=2)):
        h, w = position // size + r - 1, position % size + s - 1
        inside = 0 <= h < size and 0 <= w < size
        colour, label = (PIXELS[h], h * size + w) if inside else (ZERO, "")
        matrix.append((r * TAPS + s, position, 1, 1, colour, label))
    return [
        panel("an image", image, "pixels"),
        panel(
            "its matrix: a row a position; grey: zeros",
            matrix,
            f"{TAPS} x {TAPS} taps, each with all channels",
            [*range(positions)],
        ),
    ]


def boxes(size=5, images=2, first=17, count=16):
    """The positions of one box, in their order, across the end of an image, and the pixels of the first tap; grey are zeros."""
    places = [divmod(position, size * size) for position in range(first, first + count)]
    of_box = {(image, *divmod(place, size)): number for number, (image, place) in enumerate(places)}
    pixels = {(image, p - 1, q - 1): number for (image, p, q), number in of_box.items()}

    def grids(numbers):
        inside = [*itertools.product(range(images), range(size), range(size))]
        for image, h, w in [*inside, *(numbers.keys() - {*inside})]:
            colour = ZERO if min(h, w) < 0 else INPUT if (image, h, w) in numbers else EMPTY
            yield image * (size + 2) + w + 1, h + 1, 1, 1, colour, numbers.get((image, h, w), "")

    zeros = sum(min(h, w) < 0 for _, h, w in pixels)
    return [
        panel(f"a box of {count} positions, in {images} images", sorted(grids(of_box), key=str)),
        panel(f"their inputs for tap (0, 0): {zeros} are zeros (grey)", sorted(grids(pixels), key=str)),
    ]


def phases(size=6, stride=2):
    """Which of the stride's phases an input of the gradient is in, and how many taps that phase has."""
    output = torch.empty(1, 1, size // stride, size // stride, device="meta")
    problem = prepare_input((1, 1, size, size), torch.empty(1, 1, TAPS, TAPS, device="meta"), output, stride, 1).problem
    found = []
    for number, phase in enumerate(phases_of(problem)):
        rows, cols = (range(size)[part] for part in phase.results)
        taps = phase.problem.r * phase.problem.s
        found += [(w, h, 1, 1, PIXELS[number], taps) for h in rows for w in cols]
    return [panel(f"stride {stride}: inputs by phase (colour), with how many taps it has", found)]


def weight(tiles=4, slices=10, blocks=5):
    """Tiles of a weight on more SMs than tiles: a tile each, and in equal parts."""
    whole = [(0, tile, slices, 1, FILLS[tile], f"tile {tile}") for tile in range(tiles)]
    whole.append((0, tiles, slices, 1, ZERO, "idle"))
    own = cut(tiles, slices, blocks, least=1)
    heads = [(0, tile, own.head, 1, FILLS[tile], f"tile {tile}, slices 0-{own.head - 1}") for tile in range(tiles)]
    tails = [(tile * own.tail, tiles, own.tail, 1, FILLS[tile], tile) for tile in range(tiles)]
    rows = [f"SM {sm}" for sm in range(blocks)]
    return [
        panel(f"a tile for each SM: {slices} slices", whole, rows=rows),
        panel(f"equal parts: {own.longest} slices, the last SM has the tails", heads + tails, "time", rows),
    ]


ACROSS = (implicit_gemm, boxes, weight)
DOWN = (halo, runs, phases)
DRAWINGS = {made.__name__: Picture(draw, {"panels": made(), "across": made in ACROSS}) for made in (*ACROSS, *DOWN)}
