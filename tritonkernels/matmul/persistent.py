"""Matrix product, persistent (tl.dot as wgmma, TMA descriptors): one program per SM walks the tiles and stores each in halves.

Over `pipelined` three things change. A program per SM walks tile after tile in one flattened loop, so the loads of the next
tile are under way while the last slices of this one multiply and while its result is written: no prologue per tile. One thread
requests a slice of 16 to 32 KB from TMA, where 256 threads computed an address per 16 bytes. That frees registers and issue
slots, and no dimension needs a mask, as TMA fills with zeros outside. And the result goes through shared memory in two halves
of BLOCK_N / 2 columns, which leaves more space to the stages of K: 32 KB next to 144 KB at 128 x 256 in fp16.

TMA reads from bases and pitches that are multiples of 16 bytes, and WGMMA reads tf32, fp8 and int8 along K only. Any other
operand is packed once (language/packed.py), which costs less than unaligned reads in every tile, so that K = 4097 runs like
4096. WGMMA does not round to tf32 what it reads from shared memory: TMA does on the way there (language/descriptor.py).

L2 sends a line of 128 bytes to an SM every 3 clocks, and two for 128 bytes of a row that begins within a sector of 32, as most
of 5400 columns of bf16 do: a tile of 128 x 256 takes 1.9 * 384 lines a slice, 2100 clocks, for products of 1024. So operands
that many tiles read may be packed, too, in rows that begin at lines (IN_LINES); CUDA's clusters of four take half the lines.

Tiles that are too few for the SMs, or leave the last wave half empty, are split along K (SPLIT_K): a program walks pieces of
tiles, and a second kernel adds up their sums, which TMA writes to a workspace. All pieces are equally long, since TMA reads
zeros beyond K, so the flattened loop stays as regular as without splits. Neighbours are at the same k at a time, so that L2
sends them what they share. 768 x 768 x 8960 is 36 tiles of 128 x 128, of which three pieces each keep 108 SMs busy.

A flattened loop is also what keeps WGMMA asynchronous in Triton 3.6.0 when B is contiguous along K.

Mirrors cuda_reference/matmul/persistent.cuh, which writes its result in boxes of 64 rows of 128 bytes.
"""

from typing import Any, NamedTuple

from ..config import config_with
from ..design import Design
from ..integers import ceil_div
from ..language.descriptor import as_tma_reads, can_round, describe
from ..language.dot import faithful_dot
from ..language.epilogue import rounded
from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Matrices, Vector
from ..language.tiles import span
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from ..operations.gemm.split_counts import splits_that_fill
from ..operations.matmul.work import lines_of_rows, of_splits
from ..problem import rows_are_whole_chunks
from .parts import space
from .parts.arguments import WORKSPACES, Arithmetic, Epilogue, Sizes, matmul_arguments
from .parts.epilogue import finished, store_tile
from .parts.operands import ALONG_K, TENSOR_CORES_READ, packed_along_k, refuses_operands
from .parts.ranges_of_k import Splits
from .parts.space import block_tile, count_tiles, tile_configs
from .parts.tile import count_tiles_of, no_sum, tile_corner
from .split_k import ADD_ROWS, addition_of_splits


class Layout(NamedTuple):
    """Constants: do operands lie along K, as (..., M, K) and (..., N, K), or across it; does the batch share them."""

    A_ALONG_K: Any
    B_ALONG_K: Any
    A_SHARED: Any
    B_SHARED: Any


@triton.jit
def _load_tile(operand, batch, row, k, ALONG_K: tl.constexpr):
    """(rows, BLOCK_K) of an operand that lies in memory as (BATCH, rows, K), or else as (BATCH, K, rows)."""
    if ALONG_K:
        tile = operand.load([batch, row, k])
        return tile.reshape(tile.shape[1], tile.shape[2])
    else:
        tile = operand.load([batch, k, row])
        return tile.reshape(tile.shape[1], tile.shape[2]).T


@triton.jit
def _persistent_kernel(
    a, b, out_boxes, scale_a: Matrices, scale_b: Matrices, c: Matrices, bias: Vector, out: Matrices,
    sizes: Sizes, epilogue: Epilogue, how: Arithmetic, layout: Layout, splits: Splits,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """a, b and out_boxes: TMA descriptors, the last of the workspace if K is split, or None where TMA cannot write the result.
    Scales, c and bias may be None; splits is None if K is not split."""
    wait_for_earlier_kernels()
    HALF: tl.constexpr = BLOCK_N // 2
    written = tl.program_id(0)  # the loop's index again, for the epilogue: the pipeliner runs the index of the loads ahead
    tiles = count_tiles_of(sizes, BLOCK_M, BLOCK_N)
    pieces = tiles if splits is None else tiles * splits.SPLIT_K
    length = sizes.K if splits is None else splits.k_per_split
    for piece in tl.range(tl.program_id(0), pieces, tl.num_programs(0), flatten=True):
        first_k = 0 if splits is None else piece // tiles * length
        tile = piece if splits is None else piece % tiles
        batch, row, col = tile_corner(tile, sizes, BLOCK_M, BLOCK_N, GROUP_M, WIDE=False)  # TMA counts in 32 bits
        a_batch = 0 if layout.A_SHARED else batch
        b_batch = 0 if layout.B_SHARED else batch
        acc = no_sum(BLOCK_M, BLOCK_N, how.ACCUMULATE)
        for k in range(0, length, BLOCK_K):
            a_slice = _load_tile(a, a_batch, row, first_k + k, layout.A_ALONG_K)
            b_slice = _load_tile(b, b_batch, col, first_k + k, layout.B_ALONG_K)
            acc = faithful_dot(a_slice, b_slice.T, acc, how.PRECISION, how.ARE_TF32, how.ACCUMULATE == "fast")
        if how.ACCUMULATE == "fp16":
            acc = acc.to(tl.float32)

        tile = written if splits is None else written % tiles
        batch, row, col = tile_corner(tile, sizes, BLOCK_M, BLOCK_N, GROUP_M, WIDE=False)
        rows = span(row, BLOCK_M, how.WIDE)
        far = batch.to(tl.int64) if how.WIDE else batch
        halves = acc.reshape(BLOCK_M, 2, HALF).permute(0, 2, 1).split()
        for half in tl.static_range(2):
            first = col + half * HALF
            cols = span(first, HALF, how.WIDE)
            if splits is not None:
                place = tile * splits.SPLIT_K + written // tiles
                out_boxes.store([place, 0, half * HALF], halves[half].reshape(1, BLOCK_M, HALF))
            elif out_boxes is None:
                store_tile(halves[half], scale_a, scale_b, c, bias, out, far, rows, cols, sizes, epilogue)
            else:
                result = finished(halves[half], scale_a, scale_b, c, bias, far, rows, cols, sizes, epilogue)
                result = rounded(result, out.ptr.dtype.element_ty)
                out_boxes.store([batch, row, first], result.reshape(1, BLOCK_M, HALF))
        written += tl.num_programs(0)


RING, MOST_STAGES = 192 * 1024, 7  # bytes of slices under way; more gain nothing
# (BLOCK_M, BLOCK_N, bytes of K per row, num_warps, bytes of slices), the last for an SM that has room for a program of the next
# kernel, too, which begins as soon as this one ends
KINDS = (
    *((m, n, 128, 4 if m == 64 else 8, RING) for m in (128, 256, 64) for n in (256, 128) if m * n < 256 * 256),
    *((m, 128, 128, 4, RING // 2) for m in (128, 64)),
    (128, 128, 64, 8, RING // 4),
)
PAD = 16  # bytes of a staged row, where the result goes out without TMA
BARRIERS = 256  # bytes, at least what the stages' barriers take


def refuses(problem, target):
    if problem.precision not in TENSOR_CORES_READ:
        return f"TMA copies operands as tensor cores read them: {', '.join(TENSOR_CORES_READ)}, not {problem.precision}"
    if problem.k == 0:
        return "TMA describes no empty operand, and K is 0"
    return target.lacks("TMA", 90) or refuses_operands(problem, target)


def configs(problem, target):
    """Configs without splits first."""
    programs = target.sms or 3
    tiles, in_sums = ([t for t in candidates(problem, target, sums) if legal(t, problem, target)] for sums in (False, True))
    whole = list(tile_configs(problem, target, tiles, GROUP_M=8, SPLIT_K=1, PROGRAMS=programs))
    yield from whole
    for config in whole:
        if any(goes_in_lines(problem, config)):
            yield config_with(config, IN_LINES=True)
    for config in tile_configs(problem, target, in_sums, GROUP_M=8, PROGRAMS=programs):
        for splits in splits_that_fill(count_tiles(problem, config.kwargs, problem.batch), problem.k, programs):
            yield config_with(config, SPLIT_K=splits)


def _staged_itemsize(problem, block_m, block_n, in_sums):
    """Bytes of an element of the result and of one of C, which small tiles turn in fp32 where it lies across rows."""
    itemsize = problem.out_dtype.itemsize
    if in_sums:
        return max(4, itemsize)
    of_c = itemsize if max(block_m, block_n) == 256 else max(4, itemsize)
    return itemsize + (of_c if problem.beta != 0 else 0)


def candidates(problem, target, in_sums=False):
    """The kinds of tiles as space.py has them, with as many stages as fit next to the staged halves of the result and of C, or
    of a split's sums."""
    for m, n, k_bytes, num_warps, ring in KINDS:
        stage = (m + n) * k_bytes
        stages = min(MOST_STAGES, ring // stage)
        if target.is_gpu:
            staged = m * (n // 2 * _staged_itemsize(problem, m, n, in_sums) + PAD)
            if problem.accumulate == "fp16" and target.arch >= 100:  # whose sums take another way out of tensor memory
                staged += staged // 2
            stages = min(stages, (target.shared_per_block - staged - BARRIERS) // stage)
        yield m, n, k_bytes, num_warps, stages


def legal(tile, problem, target):
    """Whether three slices fit, too, and 64-bit addresses do not spill, as those of 256 rows, and on sm_120 of 4 warps, do."""
    if problem.wide and (tile[0] == 256 or (tile[3] == 4 and target.arch == 120)):
        return False
    return tile[4] >= 3 and space.legal(tile, problem, target)


def as_tma_writes(t):
    """The same for a result, outside of whose elements TMA must not write."""
    return as_tma_reads(t) and rows_are_whole_chunks(t)


READ_OFTEN = 8  # tiles: a copy takes DRAM as long as L2 takes for the lines that it spares so many


def goes_in_lines(problem, config):
    """Whether IN_LINES packs A and B: if its rows begin within sectors of L2, and many tiles read it."""
    lines = lines_of_rows(problem)
    if not problem.aligned or max(lines) == 1:
        return False, False
    tiles = ceil_div(problem.n, config.kwargs["BLOCK_N"]), ceil_div(problem.m, config.kwargs["BLOCK_M"])
    return tuple(own > 1 and read >= READ_OFTEN for own, read in zip(lines, tiles))


def packed_for_lines(problem, config):
    return goes_in_lines(problem, config) if config.kwargs.get("IN_LINES") else (False, False)


def operand(problem, t, along_k, in_lines):
    """(launches, the operand, whether it lies along K) of t (BATCH, rows, K), packed if TMA cannot read it, if it is to lie
    `along_k` and does not, or if `in_lines`."""
    t = t[:1] if t.stride(0) == 0 else t
    if not in_lines and (problem.precision != "tf32" or can_round()):
        if as_tma_reads(t):
            return [], t, True
        if not along_k and as_tma_reads(t.mT):
            return [], t.mT, False
    copies, t = packed_along_k(problem, t)
    return copies, t, True


def splits_and_result(problem, config, tiles, out):
    """(the Splits, or None; what TMA writes: their workspace, or else the result, or None if it cannot)."""
    if config.kwargs["SPLIT_K"] == 1:
        return None, out if as_tma_writes(out) else None
    splits = Splits.of(tiles, problem.k, config, WORKSPACES[problem.accumulate], out.device)
    return splits, splits.ptr.flatten(0, 1)


def launches(problem, config, a, b, c, bias, out, *scales):
    tile, tiles = config.kwargs, count_tiles(problem, config.kwargs, out.shape[0])
    block_m, block_n, block_k = tile["BLOCK_M"], tile["BLOCK_N"], tile["BLOCK_K"]
    along_k, (a_in_lines, b_in_lines) = problem.precision in ALONG_K, packed_for_lines(problem, config)
    pack_a, a, a_along_k = operand(problem, a, along_k, a_in_lines)
    pack_b, b, b_along_k = operand(problem, b.mT, along_k, b_in_lines)
    yield from pack_a + pack_b
    are_tf32 = problem.precision == "tf32"
    splits, result = splits_and_result(problem, config, tiles, out)
    arguments = matmul_arguments(problem, a, b, c, bias, out, *scales, batches=out.shape[0], are_tf32=are_tf32)[2:]
    yield TritonLaunch(
        _persistent_kernel,
        (min(tile["PROGRAMS"], tiles * tile["SPLIT_K"]),),
        config,
        describe(a, [1, block_m, block_k] if a_along_k else [1, block_k, block_m], are_tf32),
        describe(b, [1, block_n, block_k] if b_along_k else [1, block_k, block_n], are_tf32),
        None if result is None else describe(result, [1, block_m, block_n // 2]),
        *arguments,
        Layout(*map(tl.constexpr, (a_along_k, b_along_k, a.shape[0] == 1, b.shape[0] == 1))),
        splits,
    )
    if splits is not None:
        yield addition_of_splits(config, splits, tiles, arguments)


def packs(problem, config):
    along_k = problem.precision in ALONG_K
    return packed(problem, (along_k, along_k), packed_for_lines(problem, config))


def packed(problem, along_k, in_lines):
    """Whether `operand` packs A and B; operands that lie in other multiples of 16 bytes than the problem knows are left out."""
    if not problem.aligned or (problem.precision == "tf32" and not can_round()):
        return True, True
    (a_in_lines, b_in_lines), (a_along_k, b_along_k) = in_lines, along_k
    return a_in_lines or (a_along_k and problem.a_layout != "row"), b_in_lines or (b_along_k and problem.b_layout != "col")


def walks(config):
    return block_tile(config) | {"programs": config.kwargs["PROGRAMS"], "splits": config.kwargs["SPLIT_K"]}


WORK = of_splits(walks, packs, 0, ADD_ROWS)
DESIGN = Design(refuses=refuses, configs=configs, launches=launches, work=WORK, tile=block_tile)
