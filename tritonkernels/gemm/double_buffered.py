"""FP32 GEMM, double-buffered: while one slice of K is multiplied, the next ones are copied to shared memory.

The kernel is `tiled`'s; only num_stages changes. With one stage every slice waits for global memory, about 600 ns, and only
other warps can hide it: at 50 % occupancy a scheduler has 4. With s stages Triton's pipeliner keeps s - 1 slices in flight by
cp.async (sm_80 on), at s times the shared memory, and one barrier per slice suffices.

Mirrors cuda_reference/gemm/double_buffered.cuh, the seed's last rung but one, which has both levels of prefetch explicitly.
"""

from ..design import Design
from .parts.float32_only import float32_only
from .parts.space import block_tile, blocked_configs
from .parts.tile import one_program_a_tile
from .parts.work import of_tiles
from .tiled import tiled_kernel


def configs(problem, target):
    """2 to 4 stages of every tile: at most 4 * 16 KB, which fits everywhere."""
    return blocked_configs(problem, target, num_stages=(3, 2, 4))


DESIGN = Design(
    refuses=float32_only, configs=configs, launches=one_program_a_tile(tiled_kernel), work=of_tiles(block_tile), tile=block_tile
)
