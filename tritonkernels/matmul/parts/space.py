"""The config space of the designs: tiles that fit. Pure functions of problem and target."""

import functools

from ...choice.work import BY_DOT, EXPONENTIAL, KNOWN, KNOWN_PROBLEMS
from ...config import config_of
from ...integers import ceil_div, next_power_of_2
from ...language.on_target import two_warpgroups_wait
from ...numerics import FP8_SLICE
from .operands import ALONG_K

# (BLOCK_M, BLOCK_N, bytes of K per row, num_warps, num_stages), biggest tile first
TILES = (
    (128, 256, 128, 8, 3),
    (256, 128, 128, 8, 3),
    (128, 128, 128, 8, 3),
    (64, 128, 128, 4, 4),
    (64, 64, 256, 4, 4),
    (64, 64, 128, 4, 4),
    (32, 64, 128, 4, 4),
    (16, 64, 256, 4, 4),
    (16, 32, 512, 4, 4),  # of weights with some thousand columns: an SM each, without splits
)
# Of tf32 that is not packed: rows go from shared memory to registers, columns there and back, so few of these cost least
TALL = ((256, 64, 128, 8, 3), (128, 64, 128, 4, 3))
# For few rows or columns of little K, where memory is all that counts: what a tile has beyond the edge is for nothing
FOR_LITTLE_K = ((128, 32, 64, 4, 3), (128, 16, 64, 4, 3), (32, 128, 64, 4, 3), (16, 128, 64, 4, 3))
LITTLE = 256  # bytes of a row's K
MOST = 128  # sums of a thread
NARROW = ((128, 32, 128, 4, 4), (128, 16, 128, 4, 4))  # for few columns
ON_CUDA_CORES = ((128, 128, 64, 8, 2), (64, 64, 64, 4, 3), (32, 32, 128, 4, 2))
OF_DOUBLES = (
    (128, 64, 128, 4, 3),
    (128, 64, 128, 8, 3),
    (64, 128, 128, 4, 3),
    (64, 64, 128, 4, 3),
    (64, 64, 128, 2, 3),  # a warp's 64 x 32 sums take 12 elements of fragments for 32 products, 32 x 32 take 16
    (64, 32, 128, 4, 3),
    (32, 64, 128, 4, 3),
    (64, 32, 128, 2, 4),
    (32, 64, 128, 2, 4),
    (32, 32, 128, 4, 3),
)
OF_BITS = ((64, 64, 32, 4, 3), (32, 32, 32, 4, 4))
UNPACKED = ((128, 64, 64, 8, 3), (64, 64, 64, 4, 3), (32, 32, 64, 4, 4))  # bytes that become operands in registers
SPECIAL = {
    "ieee": ON_CUDA_CORES,
    "fp64": OF_DOUBLES,
    "uint8": UNPACKED,
    "int4": UNPACKED,
    "uint4": UNPACKED,
    "b1_xor": OF_BITS,
    "b1_and": OF_BITS,
}


def count_tiles(problem, tile, batch):
    """How many tiles of BLOCK_M x BLOCK_N cover the result; a part of a problem may have fewer matrices than the whole."""
    return batch * ceil_div(problem.m, tile["BLOCK_M"]) * ceil_div(problem.n, tile["BLOCK_N"])


def shared_bytes(tile):
    """Shared memory of the staged slices of A and B: BLOCK_K is given in bytes, so the dtype does not matter."""
    block_m, block_n, k_bytes, _, num_stages = tile
    return (block_m + block_n) * k_bytes * num_stages


def sums_slices(problem):
    """Whether each slice has a sum of its own on Hopper, which is then added to a total."""
    return problem.precision == "fp8" and problem.accumulate != "fast"


def legal(tile, problem, target):
    """Whether a tile's staged slices fit in shared memory and its sums in registers, and its products are not serialised."""
    block_m, block_n, _, num_warps, _ = tile
    per_thread = block_m * block_n / (target.warp_size * num_warps) if target.is_gpu else 0
    fits = shared_bytes(tile) <= target.shared_per_block or not target.is_gpu
    return fits and per_thread <= _most_sums(problem, target) and not _serialised(tile, problem, target)


def _most_sums(problem, target):
    """MOST only where the instruction reads its operands from shared memory, wgmma (sm_90) and tcgen05 (sm_100, which has no
    int8); mma wants them in registers. fp8 on Hopper has a second set, the sums of a slice, unless they are "fast"; an erf or
    exp per element needs registers, too.
    """
    hopper = target.arch == 90 and not sums_slices(problem)
    operands_in_shared = hopper or (target.arch == 100 and problem.precision != "int8")
    return MOST if operands_in_shared and problem.activation not in EXPONENTIAL else MOST // 2


def _serialised(tile, problem, target):
    """Whether ptxas makes every WGMMA wait for the one before: of fp8, whose sums are a second set, on one warpgroup with 128
    rows, or where a slice is longer than these sums may run.
    """
    block_m, _, k_bytes, num_warps, _ = tile
    waits = (block_m == 128 and num_warps == 4) or (block_m >= 64 and k_bytes > FP8_SLICE)
    return target.arch == 90 and sums_slices(problem) and waits


def candidates(problem):
    """The tiles of the precision, and those for few rows or columns."""
    yield from SPECIAL.get(problem.precision, TILES)
    if problem.precision == "tf32":
        yield from TALL
    if problem.precision in ("fp16", "bf16", "tf32"):
        if problem.k * problem.dtype.itemsize <= LITTLE:
            yield from (tile for tile in FOR_LITTLE_K if tile[0] >= min(64, problem.m) and tile[1] >= min(64, problem.n))
        yield from (tile for tile in NARROW if problem.n <= tile[1] < problem.m)


@functools.lru_cache(KNOWN_PROBLEMS)
def good_tiles(problem, target):
    return tuple(tile for tile in candidates(problem) if legal(tile, problem, target))


def tiles_with_room(problem, target):
    """Tiles that leave registers for the addresses of a workspace: at most 64 accumulators, on 4 warps fewer."""
    tiles = good_tiles(problem, target)
    return [t for t in tiles if t[0] * t[1] <= (64 * 64 if t[3] == 4 else 128 * 128)]


def packings(problem, target):
    """The ways to pack operands with K contiguous: those for which the instruction requires it, or none.

    tf32 ones both: WGMMA does not round what it reads from shared memory, and stalls on operands in registers.
    CUDA cores take slices along M and N: "ieee" operands that lie along K may be transposed once instead of slice by slice.
    """
    neither = {"PACK_A": False, "PACK_B": False}
    if problem.precision == "ieee":
        across = {"PACK_A": problem.a_layout != "col", "PACK_B": problem.b_layout != "row"}
        return [neither] if across == neither else [neither, across]
    if target.arch != 90 or problem.precision not in ALONG_K:
        return [neither]
    rounds = problem.precision == "tf32"
    needed = {"PACK_A": rounds or problem.a_layout != "row", "PACK_B": rounds or problem.b_layout != "col"}
    return [neither] if needed == neither else [needed, neither]


def tile_configs(problem, target, tiles, maxnreg=None, **constants):
    """One config per tile, in the order given.

    The interpreter's cost is per tile operation, and grows with the tile only beyond 64 KB or so: there big tiles come first.
    """
    if not target.is_gpu:
        block_m, block_n = (min(256, next_power_of_2(max(16, size))) for size in (problem.m, problem.n))
        yield config_of({"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": 64, **constants})
    yield from _of_tiles(tuple(tiles), problem.dtype.itemsize, maxnreg, *constants.items())


@functools.lru_cache(KNOWN)
def _of_tiles(tiles, itemsize, maxnreg, *constants):
    found = []
    for block_m, block_n, k_bytes, num_warps, num_stages in tiles:
        tile = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": k_bytes // itemsize, **dict(constants)}
        found.append(config_of(tile, num_warps, num_stages, maxnreg))
    return found


def tiled_configs(problem, target, tiles):
    """The configs of a program per tile."""
    for pack in packings(problem, target):
        waits = (problem.b_layout == "col" or pack["PACK_B"]) and two_warpgroups_wait(problem, target)
        chosen = [tile for tile in tiles if not (waits and tile[3] != 4)]
        yield from tile_configs(problem, target, chosen, GROUP_M=8, **pack)


def packs_of(problem, config):
    """Which operands a design packs, where its configs say so."""
    return config.kwargs["PACK_A"], config.kwargs["PACK_B"]


def block_tile(config):
    """The block tile of a config in the analysis' terms."""
    tile = {name: config.kwargs[f"BLOCK_{name[1]}"] for name in ("BM", "BN", "BK")}
    tile |= {"GROUP_M": config.kwargs["GROUP_M"], "threads": 32 * config.num_warps, "stages": config.num_stages}
    return tile | BY_DOT
