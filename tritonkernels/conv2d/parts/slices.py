"""The config space of implicit_gemm: tiles of pixels times output channels, slices of taps and channels, splits.

Pure functions. In what follows M is N P Q, the output pixels, N the output channels of a group and K their R S C terms.
"""

import triton

from ...matmul.parts.space import OF_DOUBLES, two_warpgroups_wait

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
SPECIAL = {"ieee": ON_CUDA_CORES, "fp64": OF_DOUBLES}

# Per clock of an H200's SM, measured on the layers of a ResNet-50
FMAS = {"ieee": 128, "fp64": 128, "tf32": 1024, "fp16": 2048, "bf16": 2048}
L2_BYTES, L2_BYTES_ALONE = 24, 40  # fetched while all SMs fetch, and by one SM alone
SPLIT_BYTES = 16  # of partial sums, written, read and added
ELEMENTS = 13  # fetched one by one
# In clocks
BEGINNING = 1500  # of a program before its first product and after its last
SLICE = 400  # at least, of one slice
ARRIVAL = 1000  # until the last split of a tile has arrived

FEWER_BLOCKS = 200  # registers: left alone, ptxas spills a few words to fit one more block on an SM
MOST_WIDE = 32 * 32  # sums of a tile whose offsets, of 64 bits, are those of each element
MOST_SPLITS, SPLIT_TILE = 16, 64 * 128  # adding the sums of larger tiles takes longer than splits save
MOST_SUMS = 2**16  # of all the splits of a tile

ENOUGH_REUSE = 256  # reads of an input from which on packing pays


def sizes(problem):
    """(M, N, channels) of a group's product."""
    return problem.n * problem.p * problem.q, problem.k // problem.groups, problem.c // problem.groups


def count_tiles(problem, tile):
    m, n, _ = sizes(problem)
    return problem.groups * triton.cdiv(m, tile["BLOCK_M"]) * triton.cdiv(n, tile["BLOCK_N"])


def channels_of_a_tap(problem, tile):
    """What slices count to before the next tap begins."""
    _, _, c = sizes(problem)
    return max(1, c) if tile["FLAT"] else triton.cdiv(max(1, c), tile["BLOCK_K"]) * tile["BLOCK_K"]


def count_slices(problem, tile):
    _, _, c = sizes(problem)
    return triton.cdiv(problem.r * problem.s * channels_of_a_tap(problem, tile), tile["BLOCK_K"]) if c else 0


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
    """Whether slices fit in shared memory; and whether the sums (more of them where wgmma and tcgen05 read operands from shared
    memory) and the addresses of what is fetched element by element fit in registers.
    """
    block_m, block_n, block_k, threads = tile["BLOCK_M"], tile["BLOCK_N"], tile["BLOCK_K"], target.warp_size * how["num_warps"]
    roomy = target.arch in (90, 100) and problem.precision not in SPECIAL
    sums, fetched = block_m * block_n, rows_by_element(problem, tile) * block_k * (5 if problem.wide else 1)
    staged = (block_m + block_n) * block_k * problem.dtype.itemsize * how["num_stages"]
    within = sums <= (128 if roomy else 64) * threads and (not fetched or sums + fetched <= 100 * threads)
    return within and staged <= target.shared_per_block


def clocks(tile, problem, target, split_k):
    """Predicted clocks: the largest of an SM's products, fetches and latencies of slices, plus the prologue and epilogue."""
    block_m, block_n, block_k = (tile[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    share = count_tiles(problem, tile) * split_k / max(1, target.sms)  # SMs hold several programs at a time
    busiest, slices = max(1, share), triton.cdiv(count_slices(problem, tile), split_k)
    by_64_rows = target.arch in (90, 100) and problem.precision not in SPECIAL
    slower = 4 if by_64_rows and block_m < 64 else 1
    multiply = slower * block_m * block_n / FMAS[problem.precision] + rows_by_element(problem, tile) / ELEMENTS
    fetch = (block_m + block_n) * problem.dtype.itemsize * max(share / L2_BYTES, busiest / L2_BYTES_ALONE)
    walk = max(slices * block_k * max(busiest * multiply, fetch), slices * SLICE)
    added = ARRIVAL + split_k * block_m * block_n * 4 / SPLIT_BYTES if split_k > 1 else 0
    return walk + busiest * (BEGINNING + added)


def splits(tile, problem, target):
    """The fastest number of splits, a power of two, by prediction."""
    block = tile["BLOCK_M"] * tile["BLOCK_N"]
    most = min(MOST_SPLITS, count_slices(problem, tile), MOST_SUMS // block) if block <= SPLIT_TILE else 1
    powers = [1 << i for i in range(max(1, most).bit_length())]
    return min(powers, key=lambda split_k: clocks(tile, problem, target, split_k))


def packs(problem, target):
    """Whether both operands are copied: tf32 ones on Hopper, where each input is read often."""
    _, n, _ = sizes(problem)
    return problem.precision == "tf32" and target.arch == 90 and problem.r * problem.s * n >= ENOUGH_REUSE


def candidates(problem, target):
    """(clocks, tile, how) of every tile that is legal, with its best number of splits."""
    for shape in SPECIAL.get(problem.precision, ALONE + BY_ELEMENT + TILES):
        block_m, block_n, k_bytes, num_warps, num_stages = shape
        block_k = k_bytes // problem.dtype.itemsize
        tile = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k, "FLAT": is_flat(problem, block_k)}
        how = {"num_warps": num_warps, "num_stages": num_stages}
        if problem.precision == "ieee" and target.vendor == "nvidia" and target.arch < 90 and not tile["FLAT"]:
            how["maxnreg"] = FEWER_BLOCKS
        split_k = splits(tile, problem, target)
        crowded = shape in ALONE and count_tiles(problem, tile) * split_k > target.sms
        short = shape in BY_ELEMENT and not rows_by_element(problem, tile)
        slow = shape == BIGGEST and two_warpgroups_wait(problem, target)
        spills = problem.wide and tile["FLAT"] and problem.precision == "ieee" and block_m * block_n > MOST_WIDE
        if not target.is_gpu or (fits(tile, how, problem, target) and not (crowded or short or slow or spills)):
            yield clocks(tile, problem, target, split_k), tile | {"SPLIT_K": split_k}, how


def configs(problem, target):
    """First the config that is predicted to be fastest; if its tile is small, then the same in 4 splits.

    The interpreter pays by the operation, so there the largest tile is first.
    """
    constants = {"GROUP_M": 8, "PACK": packs(problem, target)}
    if not target.is_gpu:
        m, n, _ = sizes(problem)
        block_m, block_n = (min(256, triton.next_power_of_2(max(16, size))) for size in (m, n))
        tile = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": 64, "FLAT": is_flat(problem, 64), "SPLIT_K": 1}
        yield triton.Config(tile | constants)
    found = sorted(candidates(problem, target), key=lambda candidate: candidate[0])
    if not found:
        return
    soonest, tile, how = found[0]
    if tile["SPLIT_K"] != 4 and tile["BLOCK_M"] * tile["BLOCK_N"] <= SPLIT_TILE:
        found.insert(1, (soonest, tile | {"SPLIT_K": 4}, how))
    for _, tile, how in found:
        yield triton.Config(tile | constants, **how)
