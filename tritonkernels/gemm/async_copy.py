"""FP32 GEMM, async_copy: `z_order` with slices copied by cp.async, fragments read ahead, twice the accumulators a thread.

A copy goes from global to shared memory asynchronously, without registers, and no warp waits to store it. The saved registers
become accumulators: 128 x 256 on 8 warps is 16 x 8 per thread, which reads 6 quads from shared memory per 128 multiply-adds,
where 8 x 8 reads 4 per 64. 93 % of the instructions of the slice loop are FFMA (sm_90), most others are these reads. A block
has STAGES - 1 slices of 24 KB in flight: at 3 stages 6 MB on 132 SMs, where Little's law needs 3 MB at 4.3 TB/s and 600 ns. The
rest of the time is waiting, so the order inside the loop matters: the first fragments of a slice are loaded before the copies,
which would delay them, and no copy computes a mask (see gluon_tile.py).

A copy moves 16 bytes at once or single floats, 4 times as many, and cannot transpose in quads. So an operand without aligned
quads along M or N (row-major A, column-major B, odd pitches) is packed first by another kernel; packed.py says what that costs.
The CUDA twin copies row-major A in single floats into padded rows: Triton pads no rows here, and swizzled ones cannot be read
one by one. (A whole slice can be read from swizzled rows at once: matmul/cuda_cores.py needs no packing.) Mirrors
cuda_reference/gemm/async_copy.cuh.
"""

from ..design import Design
from ..language.packed import packed
from . import z_order
from .parts.gluon_tile import PLAIN, gluon_configs, gluon_launch, gluon_refuses, loads, reads_quads
from .parts.space import block_tile
from .parts.work import of_packed_tiles

TILES = ((128, 256, 16, 8), (128, 128, 16, 4), (64, 128, 16, 2), (64, 64, 16, 2))


def refuses(problem, target):
    return gluon_refuses(problem, target) or target.lacks("cp.async", 80)


def configs(problem, target):
    """At 128 x 128, 2 to 4 stages are 32 to 64 KB."""
    return gluon_configs(problem, target, TILES, num_stages=(3, 4, 2))


def layouts(problem, config, a, b):
    """Of operands in quads, as `launches` packs them."""
    return {
        **z_order.layouts(problem, config, a, b),
        "LOAD_A": loads(config, config.kwargs["BLOCK_M"], along_k=False, width=4),
        "LOAD_B": loads(config, config.kwargs["BLOCK_N"], along_k=False, width=4),
        "SHARED_A": PLAIN,
        "SHARED_B": PLAIN,
    }


def launches(problem, config, a, b, c, out):
    if a.stride(0) != 1 or not reads_quads(a):
        copies, a = packed(a)
        yield from copies
    if b.stride(1) != 1 or not reads_quads(b):
        copies, b_t = packed(b.t())
        b = b_t.t()
        yield from copies
    yield gluon_launch(problem, config, layouts(problem, config, a, b), a, b, c, out)


DESIGN = Design(refuses=refuses, configs=configs, launches=launches, work=of_packed_tiles(block_tile), tile=block_tile)
