"""Matrix product, stream-K of `persistent` (tl.dot as wgmma, TMA descriptors): no SM waits for the last wave of tiles.

`persistent` gives whole tiles to programs: 96 tiles of 128 x 256 keep 96 of 132 SMs busy, and smaller tiles fetch more than L2
sends. Here the slices of the tiles of the last WAVES form one line, of which each program gets an equal piece, as `stream_k`
says, whose second kernel adds up the parts of tiles that a cut goes through. A program's whole tiles and its parts of others
are one flattened loop, as in `persistent`: the loads of the next part are under way while the sums of this one are written.

2048 x 1536 x 11008 is such a case: a program multiplies 126 slices of 64 instead of a tile's 172, and writes two parts.
Sums of parts go out a quarter of BLOCK_N at a time: half of 128 x 256 in fp32 would take 64 KB of what stages need.

Source: as `stream_k`. Mirrors cuda_reference/matmul/stream_k.cuh, where the last block of a tile adds up its parts.
"""

from ..choice.work import streamed
from ..config import config_of
from ..design import Design
from ..gemm.stream_k import Pieces, cut
from ..language.descriptor import describe
from ..language.dot import faithful_dot
from ..language.epilogue import rounded
from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Matrices, Vector
from ..language.tiles import span
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from . import persistent
from .parts.arguments import WORKSPACES, Arithmetic, Epilogue, Sizes, matmul_arguments
from .parts.epilogue import finished, store_tile
from .parts.space import block_tile, count_tiles, tile_configs
from .parts.tile import no_sum, tile_corner
from .parts.work import of_streams
from .persistent import Layout, load_tile
from .stream_k import ADD_ROWS, addition_of_parts


@triton.jit
def _part_of(pieces, index):
    """(tile, its slices from here, to here) of a program's parts: its whole tiles, then what its piece of the line has of each."""
    slices = pieces.slices_per_tile
    whole = pieces.whole_tiles // tl.num_programs(0)
    begin = tl.program_id(0) * pieces.slices_per_program
    behind = begin // slices + index - whole  # the tile of the line
    shared = index >= whole
    tile = pieces.whole_tiles + behind if shared else tl.program_id(0) + index * tl.num_programs(0)
    first = max(begin - behind * slices, 0) if shared else 0
    stop = min(begin + pieces.slices_per_program - behind * slices, slices) if shared else slices
    return tile, first, stop


@triton.jit
def _stream_kernel(
    a, b, out_boxes, scale_a: Matrices, scale_b: Matrices, c: Matrices, bias: Vector, out: Matrices,
    sizes: Sizes, epilogue: Epilogue, how: Arithmetic, layout: Layout, pieces: Pieces, line,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """a, b and out_boxes: TMA descriptors, the last None where TMA cannot write the result. line: slices of all programs."""
    wait_for_earlier_kernels()
    HALF: tl.constexpr = BLOCK_N // 2
    QUARTER: tl.constexpr = BLOCK_N // 4
    slices = pieces.slices_per_tile
    begin = min(tl.program_id(0) * pieces.slices_per_program, line)
    end = min(begin + pieces.slices_per_program, line)
    parts = pieces.whole_tiles // tl.num_programs(0) + tl.cdiv(end, slices) - begin // slices
    written = 0  # the loop's index again, for the epilogue: the pipeliner runs the index of the loads ahead
    for index in tl.range(0, parts, flatten=True):
        tile, first, stop = _part_of(pieces, index)
        batch, row, col = tile_corner(tile, sizes, BLOCK_M, BLOCK_N, GROUP_M, WIDE=False)  # TMA counts in 32 bits
        a_batch = 0 if layout.A_SHARED else batch
        b_batch = 0 if layout.B_SHARED else batch
        acc = no_sum(BLOCK_M, BLOCK_N, how.ACCUMULATE)
        for k in range(first * BLOCK_K, stop * BLOCK_K, BLOCK_K):
            a_slice = load_tile(a, a_batch, row, k, layout.A_ALONG_K)
            b_slice = load_tile(b, b_batch, col, k, layout.B_ALONG_K)
            acc = faithful_dot(a_slice, b_slice.T, acc, how.PRECISION, how.ARE_TF32, how.ACCUMULATE == "fast")

        tile, first, stop = _part_of(pieces, written)
        halves = acc.reshape(BLOCK_M, 2, HALF).permute(0, 2, 1).split()
        if stop - first == slices:
            batch, row, col = tile_corner(tile, sizes, BLOCK_M, BLOCK_N, GROUP_M, WIDE=False)
            rows = span(row, BLOCK_M, how.WIDE)
            far = batch.to(tl.int64) if how.WIDE else batch
            for half in tl.static_range(2):
                from_col = col + half * HALF
                cols = span(from_col, HALF, how.WIDE)
                if out_boxes is None:
                    store_tile(halves[half], scale_a, scale_b, c, bias, out, far, rows, cols, sizes, epilogue)
                else:
                    result = finished(halves[half], scale_a, scale_b, c, bias, far, rows, cols, sizes, epilogue)
                    result = rounded(result, out.ptr.dtype.element_ty)
                    out_boxes.store([batch, row, from_col], result.reshape(1, BLOCK_M, HALF))
        else:  # a program's first slot is for a tile that another one began, its second for one that it begins
            slot = 2 * tl.program_id(0) + (first == 0).to(tl.int32)
            place = pieces.ptr + slot.to(tl.int64) * (BLOCK_M * BLOCK_N)
            within = tl.arange(0, BLOCK_M)[:, None] * BLOCK_N + tl.arange(0, QUARTER)[None, :]
            for half in tl.static_range(2):
                quarters = halves[half].reshape(BLOCK_M, 2, QUARTER).permute(0, 2, 1).split()
                for quarter in tl.static_range(2):
                    tl.store(place + half * HALF + quarter * QUARTER + within, quarters[quarter])
        written += 1


def configs(problem, target):
    """2 WAVES where that is another cut than 1; none where every wave is full."""
    programs = target.sms or 3
    for config in tile_configs(problem, target, persistent.tiles_of(problem, target, problem.out_dtype.itemsize), GROUP_M=8, PROGRAMS=programs):
        count = count_tiles(problem, config.kwargs, problem.batch)
        if count % programs:
            for waves in (1, 2):
                if waves == 1 or streamed(count, programs, 1) < streamed(count, programs, 2):
                    yield config_of(config.kwargs | {"WAVES": waves}, config.num_warps, config.num_stages)


def refuses(problem, target):
    if problem.accumulate == "fp16":
        return "its sums are fp32"
    return persistent.refuses(problem, target)


def launches(problem, config, a, b, c, bias, out, *scales):
    tile, tiles = config.kwargs, count_tiles(problem, config.kwargs, out.shape[0])
    block_m, block_n, block_k = tile["BLOCK_M"], tile["BLOCK_N"], tile["BLOCK_K"]
    pack_a, a, a_along_k = persistent.operand(problem, a, False)
    pack_b, b, b_along_k = persistent.operand(problem, b.mT, False)
    yield from pack_a + pack_b
    are_tf32, result = problem.precision == "tf32", out if persistent.as_tma_writes(out) else None
    programs, shared, pieces = cut(tiles, problem.k, tile, tile["WAVES"], WORKSPACES[problem.accumulate], out.device)
    arguments = matmul_arguments(problem, a, b, c, bias, out, *scales, batches=out.shape[0], are_tf32=are_tf32)[2:]
    yield TritonLaunch(
        _stream_kernel,
        (programs,),
        config,
        describe(a, [1, block_m, block_k] if a_along_k else [1, block_k, block_m], are_tf32),
        describe(b, [1, block_n, block_k] if b_along_k else [1, block_k, block_n], are_tf32),
        None if result is None else describe(result, [1, block_m, block_n // 2]),
        *arguments,
        Layout(*map(tl.constexpr, (a_along_k, b_along_k, a.shape[0] == 1, b.shape[0] == 1))),
        pieces,
        shared * pieces.slices_per_tile,
    )
    yield from addition_of_parts(tile, pieces, shared, arguments)


def walks(config):
    return block_tile(config) | {"programs": config.kwargs["PROGRAMS"], "waves": config.kwargs["WAVES"]}


DESIGN = Design(refuses=refuses, configs=configs, launches=launches, work=of_streams(walks, persistent.packs, ADD_ROWS), tile=block_tile)
