"""GEMV, x staged: `warp_per_row` with x loaded through shared memory, once per block instead of once per warp.

The seed found no gain: the barrier costs as much as the saved loads. Theory agrees: a warp reads as many bytes of x as of A,
but from L1, which has six times the bandwidth that an SM gets from DRAM (128 bytes a cycle against 21 on an H200); and the
barrier in each step makes the loads of A wait for each other. A tile of rows belongs to one matrix of the batch.

Mirrors cuda_reference/gemv/staged_x.cuh.
"""

from ..config import config_of
from ..design import Design
from ..integers import ceil_div
from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Matrices, Vector, Vectors
from ..language.tiles import span
from ..language.triton import tl, triton
from ..launch import TritonLaunch
from .parts.row_tile import store_rows, within
from .parts.structs import Addend, alpha_of, results
from .parts.work import along_rows


@triton.jit
def _staged_x_kernel(
    a: Matrices, x: Vectors, y: Addend, scale: Vector, out: Vectors, M, N, alpha,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    wait_for_earlier_kernels()
    SUMS: tl.constexpr = tl.float64 if x.ptr.dtype.element_ty == tl.float64 else tl.float32
    tiles = tl.cdiv(M, BLOCK_M)
    batch = (tl.program_id(0) // tiles).to(tl.int64 if WIDE else tl.int32)
    m = span(tl.program_id(0) % tiles * BLOCK_M, BLOCK_M, WIDE)
    valid = m < M
    partial = tl.zeros((BLOCK_M, BLOCK_N), SUMS)
    for n in range(0, N, BLOCK_N):
        cols = span(n, BLOCK_N, WIDE)
        # one-dimensional, so the warps share the load and pass it on through shared memory
        of_x = tl.load(x.ptr + batch * x.batch + cols * x.step, mask=cols < N, other=0).to(SUMS)
        a_ptrs = a.ptr + batch * a.batch + m[:, None] * a.row + cols[None, :] * a.col
        of_a = tl.load(a_ptrs, mask=valid[:, None] & (cols < N)[None, :], other=0)
        partial += of_a.to(SUMS) * of_x[None, :]
    store_rows(tl.sum(partial, axis=1), valid, batch, m, y, scale, out, alpha)


def configs(problem, target):
    if not target.is_gpu:
        yield config_of({"BLOCK_M": within(problem.m, 1024), "BLOCK_N": within(problem.n, 512)})
    for warps in (4, 8):
        for steps in (4, 1):
            yield config_of({"BLOCK_M": warps, "BLOCK_N": target.warp_size * steps}, num_warps=warps, num_stages=1)


def launches(problem, config, a, x, y, scale, out):
    grid = (a.shape[0] * ceil_div(a.shape[1], config.kwargs["BLOCK_M"]),)
    arguments = Matrices.of(a), Vectors.of(x), *results(problem, y, scale, out), *a.shape[1:], alpha_of(problem)
    yield TritonLaunch(_staged_x_kernel, grid, config, *arguments, WIDE=problem.wide)


def work(problem, config, target):
    tile = config.kwargs
    tiles = problem.batch * ceil_div(problem.m, tile["BLOCK_M"])
    threads = target.warp_size * config.num_warps
    return (along_rows(problem, threads, tile["BLOCK_M"], tile["BLOCK_N"], width=1, unroll=1, tiles=tiles),)


DESIGN = Design(configs=configs, launches=launches, work=work)
