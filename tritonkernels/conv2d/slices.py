"""The config space of implicit_gemm: tiles of pixels times output channels, slices of taps and channels, splits.

In what follows M is N P Q, the output pixels, N the output channels of a group and K their R S C terms.
"""

import triton

from ..matmul import ENOUGH_REUSE
from ..matmul.space import OF_TENSOR_CORES, OPERAND_FMAS, SPECIAL, two_warpgroups_wait

# (BLOCK_M, BLOCK_N, bytes of K per row, num_warps, num_stages)
TILES = (
    (128, 256, 128, 8, 3),
    (128, 128, 128, 8, 3),
    (128, 64, 128, 4, 4),
    (64, 128, 128, 4, 4),
    (64, 64, 128, 4, 4),
    (64, 32, 128, 4, 4),
    (128, 64, 64, 8, 3),
    (64, 64, 64, 4, 4),
    (32, 64, 64, 4, 3),
)
CLOCK_FMAS = {"ieee": 128, "fp64": 128, "tf32": 1024}  # multiply-adds of an SM in a clock, of a data-centre Hopper
OF_16_BITS = 2048
BEGINNING = 1500  # clocks from a program's start to its first product, and from its last to its end
MEETING = 1500  # clocks until the last of several splits knows that it is
L2_BYTES = 16  # of partial sums that an SM writes and reads in a clock, all told
MOST_SPLITS = 16
MOST_SHARED = 2**18  # bytes of partial sums of a tile, which one SM adds up


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
    """Whether slices that end with a tap would be a tenth more, or longer than a tap has channels."""
    tapped, flat = (count_slices(problem, {"BLOCK_K": block_k, "FLAT": flat}) for flat in (False, True))
    return 10 * tapped > 11 * flat


def fits(tile, problem, target):
    """Whether slices fit in shared memory, and in registers the sums (more of them where wgmma and tcgen05 read operands from
    shared memory) and what is fetched element by element: inputs whose channels lie apart or are no whole vectors.
    """
    block_m, block_n, k_bytes, num_warps, num_stages = tile
    threads, block_k = 32 * num_warps, k_bytes // problem.dtype.itemsize
    roomy = target.arch in (90, 100) and problem.precision not in ("ieee", "fp64")
    by_element = not problem.channels_last or sizes(problem)[2] * problem.dtype.itemsize % 16
    fetched = (block_m + (block_n if is_flat(problem, block_k) else 0)) * block_k if by_element else 0
    sums, addresses = block_m * block_n, fetched * (3 if problem.wide else 1)
    within = (block_m + block_n) * k_bytes * num_stages <= target.shared_per_block
    return within and sums <= (128 if roomy else 64) * threads and (not fetched or sums + addresses <= 100 * threads)


def clocks(tile, problem, target, split_k):
    """Predicted, of one SM: its programs, their products and the operands they fetch, their beginnings and ends.

    It picks what was soonest, or next to it, on an H200, of the layers of a ResNet-50 in fp16 and of 1 and 32 images.
    """
    block_m, block_n, block_k = (tile[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    rounds = max(1, count_tiles(problem, tile) * split_k / max(1, target.sms))  # SMs hold several programs, and share
    rate, fetch = CLOCK_FMAS.get(problem.precision, OF_16_BITS), OPERAND_FMAS.get(problem.precision, OF_TENSOR_CORES)
    by_64_rows = target.arch in (90, 100) and problem.precision not in ("ieee", "fp64")
    slower = 4 if by_64_rows and block_m < 64 else 1
    terms = triton.cdiv(count_slices(problem, tile), split_k) * block_k
    added = MEETING + split_k * block_m * block_n * 4 / L2_BYTES if split_k > 1 else 0
    return rounds * (terms * (slower * block_m * block_n + fetch * (block_m + block_n)) / rate + BEGINNING + added)


def splits(tile, problem, target):
    """The number of splits, a power of two, that is done soonest."""
    most = min(MOST_SPLITS, count_slices(problem, tile), MOST_SHARED // (4 * tile["BLOCK_M"] * tile["BLOCK_N"]))
    powers = [1 << i for i in range(max(1, most).bit_length())]
    return min(powers, key=lambda split_k: clocks(tile, problem, target, split_k))


def packs(problem, target):
    """Whether both operands are copied: tf32 ones on Hopper, where each input is read often."""
    _, n, _ = sizes(problem)
    return problem.precision == "tf32" and target.arch == 90 and problem.r * problem.s * n >= ENOUGH_REUSE


def configs(problem, target):
    """First the tile, with its splits, that is predicted to be done soonest; that one in 4 splits too.

    The interpreter pays by the operation: there comes first what covers most.
    """
    constants = {"GROUP_M": 8, "PACK": packs(problem, target)}
    if not target.is_gpu:
        m, n, _ = sizes(problem)
        block_m, block_n = (min(256, triton.next_power_of_2(max(16, size))) for size in (m, n))
        tile = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": 64, "FLAT": is_flat(problem, 64), "SPLIT_K": 1}
        yield triton.Config(tile | constants)
    found = []
    for shape in SPECIAL.get(problem.precision, TILES):
        block_m, block_n, k_bytes, num_warps, num_stages = shape
        slow = shape == TILES[0] and two_warpgroups_wait(problem, target)
        if target.is_gpu and (slow or not fits(shape, problem, target)):
            continue
        block_k = k_bytes // problem.dtype.itemsize
        tile = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k, "FLAT": is_flat(problem, block_k)}
        split_k = splits(tile, problem, target)
        soon = clocks(tile, problem, target, split_k)
        found.append((soon, tile, split_k, {"num_warps": num_warps, "num_stages": num_stages}))
    found.sort(key=lambda x: x[0])
    _, first, split_k, how = found[0]
    if split_k != 4:
        found.insert(1, (0, first, 4, how))
    for _, tile, split_k, how in found:
        yield triton.Config(tile | {"SPLIT_K": split_k} | constants, **how)
