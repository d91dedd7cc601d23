"""Matrix product on tensor cores, pipelined (tl.dot, cp.async): while one slice of K is multiplied, the next ones are copied.

The kernel is `tiled`'s; only num_stages changes. With one stage every slice waits for global memory, about 600 ns, in which
the tensor cores of an H200's SM could do 2.4 million multiply-adds, more than two slices of 128 x 128 x 64. With s stages
Triton keeps s - 1 slices in flight by cp.async, at s times the shared memory, and one barrier a slice is enough.

Mirrors cuda_reference/matmul/pipelined.cuh, which spells out the stages, ldmatrix and mma.sync; on Hopper tl.dot is wgmma.
"""

from ..design import Design
from .parts.operands import refuses_operands
from .parts.space import block_tile, good_tiles, packs_of, tiled_configs
from .parts.work import of_tiles
from .tiled import launches


def configs(problem, target):
    """2 to 4 stages, as many as fit each tile."""
    return tiled_configs(problem, target, good_tiles(problem, target))


DESIGN = Design(
    refuses=refuses_operands, configs=configs, launches=launches, work=of_tiles(block_tile, packs_of), tile=block_tile
)
