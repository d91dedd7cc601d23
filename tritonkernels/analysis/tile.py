"""All analyses of one blocked matrix product: what a tile means on a target. How long it takes, the model of time says."""

from itertools import islice

from .intensity import intensity, required_bandwidth
from .l2 import covered, effective_bandwidth, wave_hit_rate
from .occupancy import SCHEDULERS, occupancy
from .order import grouped
from .waves import waves


def tile_facts(problem, tile, target, registers=None, shared_bytes=None):
    """Facts by name, for `explain`; an unknown one is None.

    problem       has m, n, k (and batch): a GemmProblem or MatmulProblem
    tile          BM, BN, BK and threads of a block; where they apply, stages of shared memory (1) and GROUP_M (1: flat waves)
    registers     per thread, from the compiled kernel. Default: the accumulators alone, so that occupancy is an upper bound
    shared_bytes  per block, from the compiled kernel. Default: (BM + BN) * BK * stages elements

    `tile_fill` is the share of the computed elements that lie inside C, `l2_hit` that of the first wave. Facts about the GPU
    are left out where there is none; those of a launch where there is nothing to launch or no block fits an SM.
    """
    bm, bn, bk, threads = (tile[name] for name in ("BM", "BN", "BK", "threads"))
    itemsize = problem.dtype.itemsize
    tiles_m, tiles_n = -(-problem.m // bm), -(-problem.n // bn)
    blocks = tiles_m * tiles_n * getattr(problem, "batch", 1)
    flop_per_byte = intensity(bm, bn, itemsize)
    facts = {"blocks": blocks, "intensity": flop_per_byte}
    if not (target.is_gpu and blocks):
        return facts

    estimated = [name for name, given in (("registers", registers), ("shared_bytes", shared_bytes)) if given is None]
    registers = -(-bm * bn // threads) if registers is None else registers
    shared_bytes = (bm + bn) * bk * tile.get("stages", 1) * itemsize if shared_bytes is None else shared_bytes
    held = occupancy(target, threads, registers, shared_bytes)
    peak = target.peak(problem.precision)
    facts |= {
        "needed_bandwidth": required_bandwidth(peak, flop_per_byte) if peak else None,
        "registers": registers,
        "shared_bytes": shared_bytes,
        "estimated": ", ".join(estimated) or "none",
        "occupancy": {
            "blocks_per_sm": held.blocks,
            "warps_per_scheduler": held.warps / SCHEDULERS,
            "fraction": held.fraction,
            "limited_by": ", ".join(held.limited_by),
        },
    }
    if not held.blocks:
        return facts

    launch = waves(blocks, target.sms, held.blocks)
    fill = problem.m * problem.n / (tiles_m * bm * tiles_n * bn)
    first = list(islice(grouped(tiles_m, tiles_n, tile.get("GROUP_M", 1)), launch.size))  # matrices of a batch share nothing
    hit = wave_hit_rate(bm, bn, *covered(first), len(first))
    rates = hit, target.l2_bandwidth, target.dram_bandwidth
    return facts | {
        "waves": launch._asdict(),
        "tile_fill": fill,
        "l2_hit": hit,
        "effective_bandwidth": effective_bandwidth(*rates) if all(rates[1:]) else None,
    }
