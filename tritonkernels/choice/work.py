"""Work: what a kernel does for a problem, in counts. The model (model.py) turns counts into seconds."""

import functools
import math
from typing import NamedTuple

KNOWN = 4096  # configs that are kept, with what follows from them alone: the spaces have fewer, but for numbers of splits
KNOWN_PROBLEMS = 64  # for each function of what a choice asks for every config


def kept(function):
    """The function of a config, whose results for the last configs are kept: they are the same objects for all problems."""
    return functools.lru_cache(KNOWN)(function)


class Work(NamedTuple):
    """One kernel of a design, with a config, on a problem.

    blocks     thread blocks (Triton programs) that it launches
    threads    of a block
    flops      of a block, with what lies outside of the result
    unit       what they run on: a precision of Target.peaks, "ieee" for the CUDA cores
    fetched    bytes of a block to and from L2, a sector for each line that it touches
    dram       bytes of all blocks to and from DRAM
    steps      trips to memory of a block, one after the other: each waits for the one before
    registers  of a thread, as far as is known before compiling
    shared     bytes of shared memory of a block
    epilogue   FLOPs of a block on the CUDA cores when its sums are done: its results are scaled, converted and stored
    cluster    blocks that run at the same time, on neighbouring SMs
    """

    blocks: int
    threads: int
    flops: float
    unit: str
    fetched: float
    dram: float
    steps: float
    registers: int = 32
    shared: int = 0
    epilogue: float = 0.0
    cluster: int = 1

    def weight(self):
        """The kernel of the largest is a call's main one."""
        return self.blocks * (self.flops + self.fetched)

    def and_also(self, fetched=0.0, steps=0.0, dram=0.0):
        """The same kernel that also moves so many bytes and makes so many trips: _replace takes as long as a product."""
        blocks, threads, flops, unit, own_fetched, own_dram, own_steps, *others = self
        return Work(blocks, threads, flops, unit, own_fetched + fetched, own_dram + dram, own_steps + steps, *others)


STORED, ACTIVATED = 8.0, 20.0  # FLOPs of an epilogue for each element, and for an activation with an exponential
EXPONENTIAL = ("gelu", "silu", "geglu", "swiglu")

BY_THREADS = ("ieee", "fp64")  # precisions whose operands are in registers when they are multiplied
BY_DOT = {"fragments": 1, "freed": True}  # of a `product`'s tile by tl.dot, which reads a slice into registers as a whole

PATCH, COPY_THREADS = 64, 256  # rows and columns that a block of a copying kernel takes, and its threads


def copy(batch, rows, columns, itemsize, planes=1):
    """A kernel that reads a matrix and writes `planes` matrices of its size, as one that packs an operand."""
    blocks = max(1, batch * -(-rows // PATCH) * -(-columns // PATCH))
    size = batch * rows * columns * itemsize * (1 + planes)
    return Work(blocks, COPY_THREADS, 0.0, "ieee", size / blocks, size, 2)


def product(problem, tile, target, itemsize=None, per_byte=1, batch=1, lines=(1.0, 1.0)):
    """The main kernel of a blocked product (m, n, k), with sums of four bytes.

    tile      BM, BN, BK and threads of a block; where they apply: GROUP_M (1) rows of tiles in a group, stages of shared
              memory (1), splits of K (1), whose sums others add, and programs (a program a tile) that walk the tiles; the
              last `waves` of tiles that they, or `sharers` of them, share to the slice, as in `streamed`; and how many blocks
              of a cluster `share` a slice of A, and of B (1, 1): L2 sends it to them once; and whether a block multiplies a
              tile while the result of the one before is written (in_turn). Of BY_THREADS, as compiled for sm_90: how many
              words of operands a thread holds for each word of sums (`fragments`, 0), and whether a slice's place is free
              before it is multiplied (freed); or its registers, where they are known otherwise
    itemsize  bytes of an operand's element, if not those of its dtype
    per_byte  elements of K that an operand's element holds
    lines     of L2 for each 128 bytes of A and of B that a block fetches (1.0, 1.0), as `lines_of` says
    """
    bm, bn, bk, threads, get = tile["BM"], tile["BN"], tile["BK"], tile["threads"], tile.get
    stages, splits, programs, waves = get("stages", 1), get("splits", 1), get("programs"), get("waves")
    m, n, k, itemsize, out_size, at_end = _facts(problem, itemsize, per_byte)
    share_a, share_b = get("share", (1, 1))  # blocks with other rows share a slice of B, those with other columns one of A
    tiles = batch * -(-m // (bm * share_b)) * -(-n // (bn * share_a)) * share_a * share_b
    slices, fetched = -(-k // (bk * splits)), (bm // share_a * lines[0] + bn // share_b * lines[1]) * bk * itemsize
    a_slice, results, is_gpu = (bm + bn) * bk * itemsize, batch * m * n * out_size, target.is_gpu
    by_threads, words = problem.precision in BY_THREADS, bm * bn // threads * (2 if problem.precision == "fp64" else 1)
    blocks, lengths, cut, sums = tiles * splits, slices, 0, 0.0  # slices of a block, cut tiles, bytes that others add
    shared = sharers = 0
    if waves:
        shared, own = streamed(tiles, programs, waves), max(1, slices)
        sharers = get("sharers") or sharers_of(shared, own, programs)
        lengths = (tiles - shared) // programs * own - (-shared * own // sharers)
        even = "sharers" in tile or MANY * shared < programs  # else fewer may have all slices
        blocks = programs if shared < tiles else sharers if even else -(-tiles * own // max(1, lengths))
        cut = min(shared, blocks)  # by the end of each block's part
    elif programs is not None:
        blocks = min(programs, tiles * splits)
        lengths *= -(-tiles * splits // blocks) if blocks else 1
    pieces = -(-tiles * splits // (blocks or 1))  # of a block
    if cut or splits > 1:
        sums = 4.0 * bm * bn * (1 if cut else pieces)
        results *= (tiles - cut) / tiles if cut else 0
    read = batch * (m + n) * k * itemsize
    if is_gpu and 2 * read > target.l2_bytes:  # L2 holds a part of the operands
        if tiles > target.sms:  # each wave reads its rows and columns again
            rows = min(get("GROUP_M", 1), -(-m // bm))
            columns = min(-(-target.sms // rows), -(-n // bn))
            read = max(read, tiles // (rows * columns) * (rows * bm + columns * bn) * k * itemsize)
        if shared and sharers % shared:  # neighbours are at different k at a time
            read = read * (tiles - shared) / tiles + shared * (bm + bn) * k * itemsize
    multiplied = 2.0 * bm * bn * bk * per_byte
    epilogue = bm * bn * at_end
    if pieces > 1:
        hidden = _hidden(problem, multiplied * slices, target) if get("in_turn") else 0
        epilogue += (pieces - 1) * max(0.0, epilogue - hidden)
    return Work(
        blocks,
        threads,
        multiplied * lengths,
        problem.precision,
        fetched * lengths + sums + results / (blocks or 1),
        read + results + (2 * beyond_l2(4 * splits * batch * m * n, target) if splits > 1 else 0),
        2 + lengths / ahead_of(stages if is_gpu else 1),  # emulations have one slice after the other
        get("registers") or min(255, int(words * (1 + by_threads * get("fragments", 0))) + 40),
        a_slice * max(1, stages - by_threads * get("freed", False)),
        epilogue,
    )


@functools.lru_cache(KNOWN_PROBLEMS)
def _facts(problem, itemsize, per_byte):
    """What all tiles have in common: m, n, k in elements of operands, bytes of these and of results, and FLOPs of an epilogue
    for each sum."""
    of_a_result = 2 if problem.is_gated else 1  # sums
    at_end = (STORED + ACTIVATED * (getattr(problem, "activation", None) in EXPONENTIAL)) / of_a_result
    sizes = itemsize or problem.dtype.itemsize, problem.out_dtype.itemsize / of_a_result
    return problem.m, problem.n, -(-problem.k // per_byte), *sizes, at_end


def _hidden(problem, products, target):
    """FLOPs on the CUDA cores that so many FLOPs of the next tile hide."""
    return products * (target.peak("ieee") or 0) / (target.peak(problem.precision) or math.inf)


LINE, SECTOR = 128, 32  # bytes that L2 sends at a time, and what they consist of


def lines_of(pitch):
    """For how many lines L2 takes as long as for 128 bytes of a row, on average, if rows are so many bytes apart. Where rows
    begin within sectors, it sends two lines for each piece that lies in two, which is all but one in eight."""
    return 1.0 if pitch % SECTOR == 0 or pitch < LINE else 2 - 16 / LINE


def beyond_l2(size, target):
    """How many bytes go to DRAM when `size` are written to be read soon: none, if they fit half of L2."""
    return size if 2 * size > target.l2_bytes and target.is_gpu else 0


def ahead_of(stages):
    """Slices that are on their way at once: one stage has the slice that is multiplied."""
    return max(1, stages - 1)


def addition(problem, parts, block, threads, batch=1, blocks=None, at_once=4):
    """The kernel that adds up `parts` sums of each element of the result, `block` elements a block, so many parts together."""
    elements, itemsize = batch * problem.m * problem.n, problem.out_dtype.itemsize
    blocks = max(1, -(-elements // block)) if blocks is None else blocks
    return Work(blocks, threads, 0.0, "ieee", block * (4 * parts + itemsize), elements * itemsize, 1 + parts / at_once)


def streamed(tiles, programs, waves):
    """How many tiles stream-K's `programs` share to the slice: those of the last `waves`, of which only the last is partial;
    none, if it is full."""
    last = tiles % programs
    return min(tiles, last + (waves - 1) * programs) if last else 0


MANY = 8  # parts of a tile: of more each tile has the same number, as a program fewer for each is a small loss


def sharers_of(tiles, slices, programs):
    """How many programs share so many tiles of so many slices: all, but where that is more than MANY parts each. Then each tile
    has as many, so that the programs of neighbours are at the same k at a time, and share what L2 holds."""
    if not 0 < MANY * tiles < programs:
        return programs
    return tiles * -(-slices // -(-slices // (programs // tiles)))


def stream_addition(problem, tiles, programs, block, threads):
    """The same after `programs` that share `tiles`, a block for each of these: a program cuts one at most, the tiles share the
    parts."""
    cut, parts = min(1, programs / max(1, tiles)), 1 + -(-programs // max(1, min(tiles, programs)))
    kernel = addition(problem, parts, block, threads, blocks=tiles)
    written = min(kernel.dram, kernel.blocks * block * problem.out_dtype.itemsize)
    fetched, dram = cut * kernel.fetched, cut * written
    return Work(kernel.blocks, threads, 0.0, kernel.unit, fetched, dram, 1 + parts)
