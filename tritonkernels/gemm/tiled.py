"""FP32 GEMM, tiled: a program owns a BLOCK_M x BLOCK_N tile of C and walks K in slices of BLOCK_K, staged in shared memory.

Over `naive` each element loaded is used BLOCK_N (of A) or BLOCK_M (of B) times, and inside a thread the outer product of TM +
TN registers does TM * TN multiply-adds. The tile's intensity is BM * BN / (2 (BM + BN)) FLOP per byte: 64 x 64 gives 16, 128 x
128 gives 32; BLOCK_K cancels, it only sets how often the loop pays its overhead.

tl.dot with input_precision="ieee" is the block-level spelling: Triton stages both slices in shared memory and issues FFMA,
for float64 the tensor cores' DMMA where they have it, else DFMA.
Mirrors cuda_reference/gemm/tiled.cuh, the seed's "shared memory + outer product".
"""

from ..design import Design
from ..language.overlap import wait_for_earlier_kernels
from ..language.structs import Matrix
from ..language.triton import tl, triton
from .parts.space import block_tile, blocked_configs
from .parts.tile import one_program_a_tile, rows_and_cols, store_tile, tile_product
from .parts.work import of_tiles


@triton.jit
def tiled_kernel(
    a: Matrix, b: Matrix, c: Matrix, out: Matrix, M, N, K, alpha, beta,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """a (M, K), b (K, N), c and out (M, N); c is None where beta is 0. WIDE: offsets need 64 bits."""
    wait_for_earlier_kernels()
    rows, cols = rows_and_cols(tl.program_id(0), N, BLOCK_M, BLOCK_N, WIDE)
    acc = tile_product(a, b, rows, cols, 0, K, M, N, BLOCK_K, WIDE)
    store_tile(acc, c, out, rows, cols, M, N, alpha, beta)


def configs(problem, target):
    """One stage: a slice is loaded, then multiplied, then the next is loaded."""
    return blocked_configs(problem, target, num_stages=(1,))


DESIGN = Design(configs=configs, launches=one_program_a_tile(tiled_kernel), work=of_tiles(block_tile), tile=block_tile)
