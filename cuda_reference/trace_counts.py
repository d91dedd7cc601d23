"""Recorded accesses as counts, as tritonkernels.analysis defines them for a warp's access, and as races."""

from dataclasses import dataclass

import numpy as np

from tritonkernels.analysis.banks import BANKS, WORD
from tritonkernels.analysis.sectors import SECTOR
from tritonkernels.analysis.warp import WARP

RECORD = np.dtype(  # as in simt/trace_recorder.cpp
    [
        ("address", "u8"),
        ("site", "u4"),  # of the instruction
        ("block", "u4"),
        ("interval", "u4"),  # barriers of the block that the thread has passed
        ("warp_interval", "u4"),  # barriers of the warp that it has passed
        ("thread", "u2"),
        ("width", "u1"),
        ("kind", "u1"),
        ("unused", "u4"),
    ]
)
KINDS = ("read", "write", "atomic")
READ, _, ATOMIC = range(3)


@dataclass(frozen=True)
class Access:
    """All executions of one access in the source, in all warps of all blocks.

    lines         "gemm/tiled.cuh:57" of the access, then of each call that was inlined around it
    space, array  "shared" and the variable, or "global" and "argument n"
    instructions  executions by a warp; each is 1, 2 or 4 requests, for up to 4, 8 or 16 bytes a lane
    units         sectors if global, wavefronts if shared: the requests' total, the fewest possible for the same bytes, and the
    most of one request
    """

    lines: tuple[str, ...]
    space: str
    array: str
    kind: str
    width: int
    instructions: int
    requests: int
    units: int
    ideal_units: int
    worst_units: int

    def __str__(self):
        access = f"{self.space} {self.kind} of {8 * self.width} bits, {self.array}"
        unit = "sectors" if self.space == "global" else "wavefronts"
        count = f"{self.requests} requests, {self.units} {unit} (ideal {self.ideal_units})"
        return f"{' < '.join(self.lines):60} {access:40} {count}"


@dataclass(frozen=True)
class Race:
    """Two accesses of a block to the same bytes, at least one a write, without a barrier between them.

    block, threads  an example
    places          how often: elements, as wide as the narrowest access in that space, times intervals between barriers; each
                    names one pair of accesses, the first it finds
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    kinds: tuple[str, str]
    space: str
    array: str
    block: int
    threads: tuple[int, int]
    places: int

    def __str__(self):
        pair = " and ".join(f"{kind} at {lines[0]}" for kind, lines in zip(self.kinds, (self.first, self.second)))
        return (
            f"{self.array}: {pair} without a barrier, {self.places} times, as by threads {self.threads} of block {self.block}"
        )


@dataclass(frozen=True)
class Part:
    """The records of one space, with the source line and the array of each."""

    space: str
    records: np.ndarray
    site: np.ndarray  # per record, an index into
    lines: list[tuple[str, ...]]
    array: np.ndarray  # per record, an index into
    names: list[str]


def accesses(part):
    """Yields an Access for each line, array, kind and width."""
    records = part.records
    thread, width, address = records["thread"].astype(np.int64), records["width"].astype(np.int64), records["address"]
    nth = _occurrence(records["block"], thread, records["interval"], part.site, part.array)
    execution = (records["block"], records["interval"], part.site, thread // WARP, nth, part.array, width)
    _, instruction = _number(*execution)
    first, request = _number(instruction, thread % WARP // np.minimum(WARP, 128 // width))
    opens = np.diff(instruction[first], prepend=-1) != 0  # each instruction is counted at its first request

    def distinct(of):
        """The requests of all distinct pairs of a request and a value."""
        return request[_number(request, of)[0]]

    if part.space == "global":
        units = np.bincount(distinct(address // SECTOR))
        ideal = -(-width[first] * np.bincount(distinct(address)) // SECTOR)
    else:
        pair, _ = _number(request, address // WORD)
        bank = (address[pair] // WORD % BANKS).astype(np.int64)
        words = np.bincount(request[pair] * BANKS + bank, minlength=BANKS * len(first))
        units, ideal = words.reshape(-1, BANKS).max(1), np.ones(len(first), np.int64)

    row_of = {}  # sites may share a line: copies of an unrolled loop
    keys = zip(*(column[first].tolist() for column in (part.site, part.array, records["kind"], width)))
    row = [row_of.setdefault((part.lines[s], a, k, w), len(row_of)) for s, a, k, w in keys]
    sums = [np.bincount(row, x).astype(np.int64).tolist() for x in (opens, np.ones(len(first)), units, ideal)]
    worst = np.zeros(len(row_of), np.int64)
    np.maximum.at(worst, row, units)
    for (lines, array, kind, bytes_), *counts in zip(row_of, *sums, worst.tolist()):
        yield Access(lines, part.space, part.names[array], KINDS[kind], bytes_, *counts)


def races(part):
    """Yields a Race for each pair of lines: of two warps in an interval, or of two threads of a warp between two __syncwarp."""
    grain = int(part.records["width"].min())
    pieces = part.records["width"].astype(np.int64) // grain
    index = np.repeat(np.arange(len(pieces)), pieces)
    piece = np.arange(len(index)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    records = part.records[index]
    thread, kind = records["thread"].astype(np.int64), records["kind"]
    cell = (records["block"], records["interval"], records["address"] // grain + piece.astype(np.uint64))
    pairs = _racing(cell, thread // WARP, kind) + _racing((*cell, thread // WARP, records["warp_interval"]), thread, kind)
    by_lines = {}
    for pair in pairs:
        lines = tuple(part.lines[part.site[index[i]]] for i in pair)
        key = *lines, tuple(KINDS[kind[i]] for i in pair), part.names[part.array[index[pair[0]]]]
        by_lines.setdefault(key, []).append(pair)
    for (first, second, kinds, name), pairs in by_lines.items():
        threads = tuple(int(thread[i]) for i in pairs[0])
        yield Race(first, second, kinds, part.space, name, int(records["block"][pairs[0][0]]), threads, len(pairs))


def _racing(keys, actor, kind):
    """A pair of records for every cell (by its keys) that is written and that two actors access, not both atomically."""
    _, cell = _number(*keys)
    order = np.lexsort((np.array([1, 0, 2])[kind], cell))  # a cell's plain writes first, its atomics last
    begins = np.flatnonzero(np.diff(cell[order], prepend=-1))
    ends = np.append(begins[1:], len(order))

    def per_cell(combine, values):
        return combine.reduceat(values[order], begins)

    race = per_cell(np.maximum, actor) != per_cell(np.minimum, actor)
    race &= per_cell(np.logical_or, kind != READ) & per_cell(np.logical_or, kind != ATOMIC)
    pairs = []
    for begin, end in zip(begins[race], ends[race]):
        first, *others = order[begin:end]
        others = [i for i in others if actor[i] != actor[first]]
        clashing = [i for i in others if kind[first] != READ or kind[i] != READ]
        pairs.append((first, (clashing or others)[0]))
    return pairs


def _number(*keys):
    """(index of the first of each distinct tuple of keys, in their order; the number of each record's tuple)."""
    code, size = np.zeros(len(keys[0]), np.int64), 1
    for key in keys:
        key = (key - key.min()).astype(np.int64)
        if size * (int(key.max()) + 1) >= 1 << 62:  # too sparse for a product, as 64-bit addresses are
            _, code = np.unique(code, return_inverse=True)
            _, key = np.unique(key, return_inverse=True)
            size = int(code.max()) + 1
        code, size = code * (int(key.max()) + 1) + key, size * (int(key.max()) + 1)
    _, first, number = np.unique(code, return_index=True, return_inverse=True)
    return first, number


def _occurrence(*keys):
    """How many earlier records have the same keys."""
    _, number = _number(*keys)
    order = np.argsort(number, kind="stable")
    ordered = number[order]
    begins = np.flatnonzero(np.diff(ordered, prepend=-1))
    result = np.empty(len(order), np.int64)
    result[order] = np.arange(len(order)) - begins[ordered]
    return result
