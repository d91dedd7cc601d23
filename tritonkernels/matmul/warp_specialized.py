"""Matrix product, warp-specialised (Gluon): one warp copies slices by TMA, one to three warpgroups multiply them by wgmma.

`persistent` leaves its pipeline to Triton, whose programs issue copies and products from the same warps: both wait for the one
loop. Here a program divides its warps, and each part has a loop of its own. The producer is one warp that asks TMA for the
slices of tile after tile, as far ahead as the ring of STAGES slices allows. The consumers are warpgroups, each with its own
rows of the tile: they wait for a slice (`full`), multiply it, and give its place back (`empty`) as soon as the product before
the newest has ended. So no thread that multiplies computes an address, and while a consumer adds up fp8 sums or writes its
result, the others multiply and the ring fills up.

Registers follow the work: setmaxnreg leaves the producer 24 of them and gives a consumer up to 240. That makes room for 192
sums a thread, a tile of 256 x 192 on two consumers. It takes 448 lines of L2 a slice for 1536 clocks of products, 128 x 256
takes 384 for 1024, and at 3 clocks a line L2 is the limit of the latter only. Tiles need not be powers of two: a consumer's
columns are a power of two (b) and the rest (b_rest), 128 and 64 of 192, and there may be three consumers. 576 columns are three
tiles of 192, and would be two and a quarter of 256.

fp8 adds up each slice by itself (see numerics.FP8_SLICE): a consumer adds while another one multiplies.

wgmma reads tf32 from shared memory along K only, but its first operand also from registers, in any order. So one that lies
across K goes first, and consumers load its slices (IN_REGISTERS) instead of a copy of the whole operand before. They wait for a
product before they load the next slice, which goes into the same registers, while another consumer multiplies.

A bias is loaded before a tile's products and waits in shared memory: read with the result, each box would wait for memory.

Mirrors cuda_reference/matmul/persistent.cuh, which has clusters, too; in Gluon of Triton 3.6 a slice cannot be sent to several.
"""

import functools
import itertools

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier

from ..choice.work import KNOWN_PROBLEMS, kept
from ..config import config_of, config_with
from ..design import Design
from ..language.descriptor import as_tma_reads, describe_for_gluon
from ..language.gluon_tile import needs_a_gpu
from ..language.on_target import lacks_products
from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Matrices, Vector
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from ..operations.gemm.split_counts import splits_that_fill
from ..operations.matmul.work import of_splits
from .parts.arguments import Arithmetic, Epilogue, Sizes, matmul_arguments
from .parts.operands import ALONG_K
from .parts.partitions import Boxes, Result, Ring, Tile, consume, produce
from .parts.ranges_of_k import Splits
from .parts.space import block_tile, count_tiles, sums_slices
from .persistent import Layout, goes_in_lines, operand, packed, packed_for_lines, splits_and_result
from .split_k import ADD_ROWS, addition_of_splits


@gluon.jit
def _allocated(NUMBER: gl.constexpr, boxes):
    """Shared memory for so many boxes of a descriptor."""
    return gl.allocate_shared_memory(boxes.dtype, [NUMBER] + boxes.block_type.shape, boxes.layout)  # noqa: RUF005


@gluon.jit
def _warp_specialized_kernel(
    a, b, b_rest, out_boxes, addend, scale_a: Matrices, scale_b: Matrices, c: Matrices, bias: Vector, out: Matrices,
    sizes: Sizes, epilogue: Epilogue, how: Arithmetic, layout: Layout, splits: Splits, tile: Tile,
):  # fmt: skip
    """a, b, b_rest, out_boxes and addend: TMA descriptors, out_boxes of the workspace if K is split, or None where TMA cannot
    write the result; b_rest is None if RIGHT is 0; addend that of C, if its boxes take the places of slices of a, and c is
    None. Scales, c and bias may be None; splits is None if K is not split."""
    wait_for_earlier_kernels()
    STAGES: gl.constexpr = tile.STAGES
    CONSUMERS: gl.constexpr = tile.CONSUMERS
    a_slices = _allocated(STAGES * CONSUMERS, a)
    b_slices = _allocated(STAGES, b)
    rest_slices = _allocated(STAGES, b_rest) if b_rest is not None else None
    staged = _allocated(CONSUMERS * tile.STAGED, out_boxes) if out_boxes is not None else None
    biases = None
    if bias is not None and out_boxes is not None and splits is None:
        COLUMNS: gl.constexpr = tile.ROWS if tile.SWAPPED else tile.LEFT * (2 if tile.RIGHT > 0 else 1)
        LAYOUT: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
        biases = gl.allocate_shared_memory(bias.ptr.dtype.element_ty, [CONSUMERS, COLUMNS], LAYOUT)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=CONSUMERS)
    ring = Ring(Boxes(a_slices, b_slices, rest_slices), full, empty)
    operands = Boxes(a, b, b_rest)
    result = Result(out_boxes, addend, staged, biases, scale_a, scale_b, c, bias, out)
    length = sizes.K if splits is None else splits.k_per_split
    # ptxas: with operands in registers wgmma runs asynchronously only if what it takes fits in the fewest registers of any warp
    EQUAL: gl.constexpr = tile.IN_REGISTERS
    PRODUCER: gl.constexpr = (168 if CONSUMERS == 2 else 128) if EQUAL else (32 if CONSUMERS == 3 else 24)
    CONSUMER: gl.constexpr = PRODUCER if EQUAL else (240 if CONSUMERS == 2 else 160)
    if CONSUMERS == 1:
        gl.warp_specialize(
            [
                (consume, (0, result, ring, sizes, length, epilogue, how, layout, splits, tile)),
                (produce, (operands, addend, ring, sizes, length, layout, splits, tile)),
            ],
            [1],
            [24],
        )
    elif CONSUMERS == 2:
        gl.warp_specialize(
            [
                (consume, (0, result, ring, sizes, length, epilogue, how, layout, splits, tile)),
                (consume, (1, result, ring, sizes, length, epilogue, how, layout, splits, tile)),
                (produce, (operands, addend, ring, sizes, length, layout, splits, tile)),
            ],
            [4, 1],
            [CONSUMER, PRODUCER],
        )
    else:
        gl.warp_specialize(
            [
                (consume, (0, result, ring, sizes, length, epilogue, how, layout, splits, tile)),
                (consume, (1, result, ring, sizes, length, epilogue, how, layout, splits, tile)),
                (consume, (2, result, ring, sizes, length, epilogue, how, layout, splits, tile)),
                (produce, (operands, addend, ring, sizes, length, layout, splits, tile)),
            ],
            [4, 4, 1],
            [CONSUMER, CONSUMER, PRODUCER],
        )


ROWS = (2, 128), (2, 64), (3, 64), (1, 64)  # consumers, and rows of each
COLUMNS = [left + right for left in (256, 128, 64) for right in (0, 64, 32) if right < left]  # of one wgmma, or of two
LEAST_COLUMNS = {64: 64, 128: 96}  # of a consumer with so many rows: fewer fetch more than they multiply
MOST_SUMS = {1: 128, 2: 192, 3: 96}  # of a thread of so many consumers: of three it has 160 registers, of two 240
# (rows of all consumers, columns, CONSUMERS), biggest tile first
TILES = sorted(
    (
        (consumers * rows, columns, consumers)
        for (consumers, rows), columns in itertools.product(ROWS, COLUMNS)
        if LEAST_COLUMNS[rows] <= columns <= MOST_SUMS[consumers] * 128 // rows
    ),
    key=lambda tile: -tile[0] * tile[1],
)
SHAPES = {(rows, columns) for rows, columns, _ in TILES}
# Sums of a thread, next to C or an erf, 64-bit offsets, or addresses of rows that TMA does not write
MOST_BESIDE_EPILOGUE, MOST_BESIDE_WIDE, MOST_BESIDE_ADDRESSES = 128, 96, 160
BOX = 128  # bytes of K in a slice, and at most of a row of a staged box
MOST_STAGES = 8
MOST_BESIDE_SLICES = {1: 128, 2: 96, 3: 64}  # sums of a thread of so many consumers, where slices take registers, too
BARRIERS = 1024  # bytes, at least what the barriers and the alignment of the ring take


def refuses(problem, target):
    if problem.precision not in ("fp16", "bf16", "tf32", "fp8") or problem.accumulate not in ("fp32", "fast"):
        kinds = f"{problem.precision} with sums in {problem.accumulate}"
        return f"its warpgroups multiply fp16, bf16, tf32 and fp8 with sums in fp32, not {kinds}"
    if problem.k == 0:
        return "TMA describes no empty operand, and K is 0"
    if target.is_gpu and target.arch != 90:
        return f"wgmma is an instruction of sm_90, {target.name} is {target.isa}"
    return needs_a_gpu(target) or lacks_products(problem.precision, target)


def parts_of_columns(problem, columns):
    """(LEFT, RIGHT): a power of two, as Triton's blocks are, and the rest. Sums of slices take registers, too."""
    left = min(128 if sums_slices(problem) else 256, 1 << columns.bit_length() - 1)
    return left, columns - left


def sides(numbers):
    """(rows of all consumers, columns of each) of a tile: those of the result, or if it is SWAPPED its columns and rows."""
    block_m, block_n = numbers["BLOCK_M"], numbers["BLOCK_N"]
    return (block_n, block_m) if numbers["SWAPPED"] else (block_m, block_n)


def sums(numbers):
    """The sums of a consumer's thread."""
    rows, columns = sides(numbers)
    return rows // numbers["CONSUMERS"] * columns // 128


@kept
def _taken(config):
    """(sums of a thread, rows of all consumers, stages)"""
    return sums(config.kwargs), sides(config.kwargs)[0], config.kwargs["STAGES"]


def _most_sums(problem, rows):
    """The most sums of a thread that leave registers for what else the problem needs."""
    if sums_slices(problem):  # those of a slice, or of a part of its columns
        return 128 if rows == 128 else 64
    in_boxes = problem.row_bytes["out"] % 16 == 0
    is_quick = problem.out_dtype.itemsize == 2 and in_boxes and not problem.scales  # activation.py
    if problem.beta or (problem.activation and not is_quick):
        return MOST_BESIDE_EPILOGUE
    if problem.wide:
        return MOST_BESIDE_WIDE
    if not in_boxes:
        return MOST_BESIDE_ADDRESSES
    return max(MOST_SUMS.values())


def _loads_first(problem, numbers):
    """Whether consumers load slices of the first operand, one of tf32 that lies across K, if so much fits into registers."""
    across = problem.b_layout != "col" if numbers["SWAPPED"] else problem.a_layout != "row"
    return problem.precision == "tf32" and across and sums(numbers) <= MOST_BESIDE_SLICES[numbers["CONSUMERS"]]


def candidates(problem, target):
    """All tiles without splits. SWAPPED tiles are listed where they have another shape, or where swapping saves a copy."""
    for config, is_twice in _tiles(problem.dtype.itemsize, problem.bias * problem.out_dtype.itemsize, target):
        if not is_twice or _loads_first(problem, config.kwargs):
            yield config


@functools.lru_cache(KNOWN_PROBLEMS)
def _tiles(itemsize, bias, target):
    """[(a config of each tile, whether it is SWAPPED and there is such a shape that is not)], with as many stages as fit next
    to a bias of so many bytes a column. With two boxes the copy of one overlaps the store of the other, but a fourth stage
    gains more."""
    found = []
    for (rows, columns, consumers), swapped in itertools.product(TILES, (False, True)):
        biases = bias * max(rows, consumers * triton.next_power_of_2(columns))
        room, stage = target.shared_per_block - BARRIERS - biases, (rows + columns) * BOX
        staged = 2 if room - 2 * rows * BOX >= 4 * stage else 1
        stages = min(MOST_STAGES, (room - staged * rows * BOX) // stage)
        block_m, block_n = (columns, rows) if swapped else (rows, columns)
        numbers = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": BOX // itemsize, "GROUP_M": 8}
        numbers |= {"SWAPPED": swapped, "CONSUMERS": consumers, "STAGES": stages, "STAGED": staged, "PROGRAMS": target.sms}
        config = config_of(numbers | {"SPLIT_K": 1}, num_warps=4, num_stages=1)
        found.append((config, swapped and (block_m, block_n) in SHAPES))
    return found


def legal(config, problem):
    """Whether a thread's sums leave registers for what else it needs, and three slices fit. Pairs of a gated linear unit are in
    one thread unless the tile is SWAPPED."""
    held, rows, stages = _taken(config)
    return held <= _most_sums(problem, rows) and stages >= 3 and not (problem.is_gated and config.kwargs["SWAPPED"])


def _along_k(problem, config):
    """Whether A and B must lie along K: in tf32 the first one need not if consumers load it."""
    if problem.precision != "tf32":
        return (problem.precision in ALONG_K,) * 2
    first = not _loads_first(problem, config.kwargs)
    return (True, first) if config.kwargs["SWAPPED"] else (first, True)


def configs(problem, target):
    """Configs without splits first."""
    found = [config for config in candidates(problem, target) if legal(config, problem)]
    yield from found
    yield from (config_with(config, IN_LINES=True) for config in found if any(goes_in_lines(problem, config)))
    for config in () if problem.is_gated else found:
        columns = config.kwargs["BLOCK_N"]
        if columns & columns - 1 == 0:  # the kernel that adds splits up takes rows of a power of two
            for splits in splits_that_fill(count_tiles(problem, config.kwargs, problem.batch), problem.k, target.sms):
                yield config_with(config, SPLIT_K=splits)


def _comes_in_slices(problem, config, c, a_along_k):
    """Whether boxes of C are as slices of A, of a consumer's rows and 64 columns, and TMA can read them."""
    numbers = config.kwargs
    alike = c is not None and c.dtype == problem.dtype and a_along_k and numbers["BLOCK_N"] % numbers["BLOCK_K"] == 0
    return alike and not numbers["SWAPPED"] and as_tma_reads(c) and (c.shape[0] == 1 or c.stride(0) > 0)


def launches(problem, config, a, b, c, bias, out, *scales):
    numbers, tiles = config.kwargs, count_tiles(problem, config.kwargs, out.shape[0])
    to_lie_along_k, in_lines = _along_k(problem, config), packed_for_lines(problem, config)
    (pack_a, a, a_along_k), (pack_b, b, b_along_k) = map(operand, (problem,) * 2, (a, b.mT), to_lie_along_k, in_lines)
    yield from pack_a + pack_b
    are_tf32 = problem.precision == "tf32"
    splits, result = splits_and_result(problem, config, tiles, out)
    in_ring = splits is None and result is not None and _comes_in_slices(problem, config, c, a_along_k)
    in_order = a, b, None if in_ring else c, bias, out
    arguments = matmul_arguments(problem, *in_order, *scales, batches=out.shape[0], are_tf32=are_tf32)[2:]
    first, second = (a, a_along_k), (b, b_along_k)
    block_m, block_n, block_k, swapped = (numbers[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "SWAPPED"))
    if swapped:
        first, second = second, first
    rows, columns = sides(numbers)
    rows //= numbers["CONSUMERS"]
    left, right = parts_of_columns(problem, columns)

    def boxes(t, along_k, length):
        return describe_for_gluon(t, [1, length, block_k] if along_k else [1, block_k, length], are_tf32)

    if result is not None:
        once = min(BOX // result.element_size(), (right or left) // (2 if problem.is_gated else 1))
        result = describe_for_gluon(result, [1, once, rows] if swapped else [1, rows, once])
    others = (numbers[name] for name in ("CONSUMERS", "STAGES", "STAGED"))
    in_registers = are_tf32 and not first[1]
    tile = block_m, block_n, block_k, numbers["GROUP_M"], rows, left, right, *others, swapped, in_registers
    yield TritonLaunch(
        _warp_specialized_kernel,
        (min(numbers["PROGRAMS"], tiles * numbers["SPLIT_K"]),),
        config,
        boxes(*first, rows),
        boxes(*second, left),
        boxes(*second, right) if right else None,
        result,
        describe_for_gluon(c, [1, rows, block_k]) if in_ring else None,
        *arguments,
        Layout(*map(tl.constexpr, (first[1], second[1], first[0].shape[0] == 1, second[0].shape[0] == 1))),
        splits,
        Tile(*map(tl.constexpr, tile)),
    )
    if splits is not None:
        yield addition_of_splits(config, splits, tiles, arguments)


def analysed(config):
    numbers = config.kwargs
    return block_tile(config) | {"threads": 128 * numbers["CONSUMERS"], "stages": numbers["STAGES"]}


def walks(config):
    return analysed(config) | {"programs": config.kwargs["PROGRAMS"], "splits": config.kwargs["SPLIT_K"]}


def packs(problem, config):
    return packed(problem, _along_k(problem, config), packed_for_lines(problem, config))


WORK = of_splits(walks, packs, 0, ADD_ROWS)
DESIGN = Design(refuses=refuses, configs=configs, launches=launches, work=WORK, tile=analysed, gates=True)
