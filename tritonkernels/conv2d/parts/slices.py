"""The config space of implicit_gemm: tiles of pixels times output channels, slices of taps and channels, splits.

Pure functions. In what follows M is N P Q, the output pixels, N the output channels of a group and K their R S C terms.
"""

import functools

from ... import miscompiled
from ...choice.work import KNOWN
from ...config import config_of
from ...integers import ceil_div, next_power_of_2
from ...language.on_target import two_warpgroups_wait

# (BLOCK_M, BLOCK_N, bytes of K per row, num_warps, num_stages)
BIGGEST = (128, 256, 128, 8, 3)
TILES = (
    BIGGEST,
    (128, 128, 128, 8, 3),
    (128, 64, 128, 4, 3),
    (64, 128, 128, 4, 4),
    (64, 64, 128, 4, 4),
    (64, 32, 128, 4, 4),
    (32, 64, 64, 4, 3),
)
BY_ELEMENT = ((128, 64, 32, 4, 3), (128, 64, 64, 8, 3), (64, 64, 64, 4, 4))  # longer slices' addresses take registers
ALONE = ((128, 128, 128, 8, 4), (64, 128, 256, 4, 3), (64, 64, 128, 4, 5), (64, 32, 128, 4, 5))  # one program per SM: deeper
ON_CUDA_CORES = ((64, 64, 64, 4, 3), (32, 32, 128, 4, 2))
GENERAL = TILES + BY_ELEMENT + ALONE
OF_DOUBLES = ((128, 64, 128, 8, 3), (64, 64, 128, 4, 3), (32, 32, 128, 4, 3))  # on four warps the first one's sums are spilled
SPECIAL = {"ieee": ON_CUDA_CORES, "fp64": OF_DOUBLES}

FEWER_BLOCKS = 200  # registers: left alone, ptxas spills a few words to fit one more block on an SM
MOST_WIDE = 32 * 32  # sums of a tile whose offsets, of 64 bits, are those of each element
LEAST_K = 16  # of tl.dot
MISCOMPILED = 64, 32  # by Triton 3.6, in flat slices of tf32, if the image is not aligned to 16 bytes

MOST_SPLITS, SPLIT_TILE = 16, 64 * 128  # of larger tiles, ptxas spills sums while those of the splits are added
MOST_SUMS = 2**16  # of all the splits of a tile
WAVES = 4  # programs per SM, up to which tiles are split


def sizes(problem):
    """(M, N, channels) of a group's product."""
    return problem.n * problem.p * problem.q, problem.k // problem.groups, problem.c // problem.groups


def count_tiles(problem, tile):
    m, n, _ = sizes(problem)
    return problem.groups * ceil_div(m, tile["BLOCK_M"]) * ceil_div(n, tile["BLOCK_N"])


def channels_of_a_tap(problem, tile):
    """What slices count to before the next tap begins."""
    _, _, c = sizes(problem)
    return max(1, c) if tile["FLAT"] else ceil_div(max(1, c), tile["BLOCK_K"]) * tile["BLOCK_K"]


def count_slices(problem, tile):
    c, taps, block_k = problem.c // problem.groups, problem.r * problem.s, tile["BLOCK_K"]
    return ceil_div(taps * c, block_k) if tile["FLAT"] else taps * ceil_div(c, block_k)


def is_flat(problem, block_k):
    """Whether slices that end with a tap would be more than a tenth more."""
    tapped, flat = (count_slices(problem, {"BLOCK_K": block_k, "FLAT": flat}) for flat in (False, True))
    return 10 * tapped > 11 * flat


def rows_by_element(problem, tile):
    """Rows of a slice that are fetched element by element: of pixels whose channels are not contiguous or not whole vectors,
    and in flat slices also of filters."""
    if problem.channels_last and sizes(problem)[2] * problem.dtype.itemsize % 16 == 0:
        return 0
    return tile["BLOCK_M"] + (tile["BLOCK_N"] if tile["FLAT"] else 0)


def fits(tile, how, problem, target):
    """Whether tl.dot takes such slices, and they fit in shared memory; and whether the sums (more of them where wgmma and
    tcgen05 read operands from shared memory) and the addresses of what is fetched element by element fit in registers.
    """
    block_m, block_n, block_k, threads = tile["BLOCK_M"], tile["BLOCK_N"], tile["BLOCK_K"], target.warp_size * how["num_warps"]
    sums, fetched = block_m * block_n, rows_by_element(problem, tile) * block_k * (5 if problem.wide else 1)
    staged = (block_m + block_n) * block_k * problem.dtype.itemsize * how["num_stages"]
    on_tensor_cores = problem.precision not in SPECIAL
    roomy = on_tensor_cores and target.arch in (90, 100)
    within = sums <= (128 if roomy else 64) * threads and (not fetched or sums + fetched <= 100 * threads)
    spills = on_tensor_cores and target.arch != 90 and fetched >= 48 * threads  # as compiled for sm_80, sm_100 and sm_120
    return block_k >= LEAST_K and within and not spills and staged <= target.shared_per_block


def splits(tiles, sums, slices, most_programs, target):
    """1, and the powers of two with which at least half of the SMs have work, or else the most that are legal, of `tiles` tiles
    of `sums` sums and `slices` slices."""
    most = min(MOST_SPLITS, slices, MOST_SUMS // sums, most_programs // max(1, tiles))
    if most < 2:
        return [1]
    powers = [1 << i for i in range(1, most.bit_length())]
    return [1, *(split_k for split_k in powers if 2 * tiles * split_k >= target.sms or split_k == powers[-1])]


def candidates(problem, target):
    """Every legal tile in every legal number of splits, packed or not; the interpreter takes all tiles."""
    shapes, itemsize, flat = SPECIAL.get(problem.precision, GENERAL), problem.dtype.itemsize, {}
    for shape in shapes:
        block_m, block_n, k_bytes, num_warps, num_stages = shape
        block_k = k_bytes // itemsize
        if block_k not in flat:
            flat[block_k] = is_flat(problem, block_k)
        tile = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k, "FLAT": flat[block_k]}
        how = {"num_warps": num_warps, "num_stages": num_stages}
        fewer = problem.precision == "ieee" and target.vendor == "nvidia" and target.arch < 90 and not tile["FLAT"]
        alone, by_element = shape in ALONE, shape in BY_ELEMENT
        most_programs = max(1, target.sms) * (1 if alone else WAVES)
        if target.is_gpu:
            crowded = alone and count_tiles(problem, tile) > most_programs
            short = by_element and not rows_by_element(problem, tile)
            slow = shape == BIGGEST and two_warpgroups_wait(problem, target)
            spills = problem.wide and tile["FLAT"] and problem.precision == "ieee" and block_m * block_n > MOST_WIDE
            faulty = (block_m, block_n) == MISCOMPILED and tile["FLAT"] and problem.precision == "tf32"
            faulty = faulty and miscompiled.is_known_of()
            if crowded or short or slow or spills or faulty or not fits(tile, how, problem, target):
                continue
        may_pack = problem.precision == "tf32" and target.arch == 90 and not by_element
        sums, tiles, slices = block_m * block_n, count_tiles(problem, tile), count_slices(problem, tile)
        counts = [1] if sums > SPLIT_TILE else splits(tiles, sums, slices, most_programs, target)
        for pack in (False, True)[: 1 + may_pack]:
            for split_k in counts:
                yield _config(shape, block_k, tile["FLAT"], split_k, pack, FEWER_BLOCKS if fewer else None)


@functools.lru_cache(KNOWN)
def _config(shape, block_k, flat, split_k, pack, maxnreg):
    block_m, block_n, _, num_warps, num_stages = shape
    tile = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k, "FLAT": flat}
    return config_of(tile | {"SPLIT_K": split_k, "GROUP_M": 8, "PACK": pack}, num_warps, num_stages, maxnreg)


def configs(problem, target):
    """Every candidate. The interpreter pays by the operation, so there the largest tile is first."""
    if not target.is_gpu:
        m, n, _ = sizes(problem)
        block_m, block_n = (min(256, next_power_of_2(max(16, size))) for size in (m, n))
        tile = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": 64, "FLAT": is_flat(problem, 64), "SPLIT_K": 1}
        yield config_of(tile | {"GROUP_M": 8, "PACK": False})
    yield from candidates(problem, target)
