"""Work: what a kernel does for a problem, in counts. The model (model.py) turns counts into seconds."""

from typing import NamedTuple


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


COPY_THREADS = 256
COPIED = 4096  # bytes of a block


def copy(size, unit="ieee"):
    """A kernel that reads and writes `size` bytes, as one that packs an operand."""
    blocks = max(1, -(-size // COPIED))
    return Work(blocks, COPY_THREADS, 0.0, unit, 2 * min(size, COPIED), 2 * size, 2)


def product(problem, m, n, k, batch, tile, itemsize, out_itemsize, unit, shared=None):
    """The kernels of a blocked product (batch, m, n, k) with operands of `itemsize` bytes.

    tile     BM, BN, BK and threads of a block; where they apply: stages of shared memory (1), splits of K (1) whose sums a second
             kernel or the last block adds, and programs that walk all tiles (a program a tile), evenly to the slice if `streams`
    shared   bytes a block, if not those of the stages
    """
    bm, bn, bk, threads = tile["BM"], tile["BN"], tile["BK"], tile["threads"]
    stages, splits, programs = tile.get("stages", 1), tile.get("splits", 1), tile.get("programs")
    tiles = batch * -(-m // bm) * -(-n // bn)
    slices = -(-(-(-k // bk)) // splits)
    blocks, of_block = tiles * splits, slices  # slices that a block multiplies
    if programs:
        blocks = min(programs, tiles * slices if tile.get("streams") else tiles)
        of_block = -(-tiles * slices // blocks) if tile.get("streams") else -(-tiles // blocks) * slices
    results = tiles * bm * bn * (8 * splits if splits > 1 else 0) + (16 * blocks * bm * bn if tile.get("streams") else 0)
    operands = batch * (m + n) * k * itemsize
    a_slice = (bm + bn) * bk
    return Work(
        blocks,
        threads,
        2.0 * bm * bn * bk * of_block,
        unit,
        a_slice * itemsize * of_block + (batch * m * n * out_itemsize + results) / max(1, blocks),
        operands + batch * m * n * out_itemsize,
        2 + of_block / stages + (2 if splits > 1 or tile.get("streams") else 0),
        min(255, bm * bn // threads + 40),
        a_slice * itemsize * stages if shared is None else shared,
    )
