"""Matrix-vector product: bound by the one read of the matrix, so everything is about reading it well."""

from torch import Tensor

from ..annotations import Config
from ..design import Design
from ..launch import LIBRARY
from ..operation import Operation, Rung
from ..operations.gemv.prepare import prepare
from ..operations.gemv.rules import RULES
from ..torch_ops import Operator

LADDER = (
    Rung("naive", "a thread per row", "gemv write-up: the starting point", kind="lesson"),
    Rung(
        "warp_per_row",
        "the lanes of a warp walk a row together, one reduction at the end",
        "gemv write-up: N = 32",
        kind="lesson",
    ),
    Rung(
        "staged_x",
        "warp_per_row with x through shared memory, to show that it gains nothing",
        "gemv write-up: x through shared memory",
        kind="lesson",
    ),
    Rung("vectorized", "warp_per_row with 128-bit loads", "gemv write-up: N >= 128"),
    Rung("rows_per_warp", "2 to 32 rows a warp, 128-bit loads, reduced inside a sub-warp", "gemv write-up: N <= 16"),
    Rung("block_per_row", "a block walks a row together, for long rows", "gemv write-up: N >= 128, for fewer rows than warps"),
    Rung(
        "split_n",
        "block_per_row with several blocks a row, partial sums added in order by the last",
        "gemv write-up: N >= 128, for fewer rows than SMs",
    ),
    Rung(
        "transposed",
        "lanes side by side over rows for contiguous columns, N over warps and blocks",
        "beyond the gemv write-up: x^T A",
    ),
)


def gemv(
    a: Tensor,
    x: Tensor,
    y: Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float | None = None,
    scale: Tensor | None = None,
    out: Tensor | None = None,
    design: Design | str | None = None,
    config: Config | None = None,
) -> Tensor:
    """alpha * A x + beta * y in IEEE arithmetic, as torch.addmv(y, a, x, alpha=alpha, beta=beta), or a batch of them.

    a       (..., M, N) float32, float16, bfloat16 or int8 weights, all with sums in fp32, or float64, with sums in fp64; any
            strides: a.t() of a row-major matrix is not copied
    x       (..., N) of a's dtype; float32, float16 or bfloat16 if a is int8. Batch dimensions broadcast with a's
    y       broadcastable to the result (..., M), of x's dtype; needed if beta != 0, never read if beta == 0
    alpha, beta  real numbers, rounded to the type of the sums; alpha == 0: A and x are not read. beta: default 1 with y, else 0
    scale   (M,) float32, a factor of each row; needed if a is int8, refused otherwise
    out     (..., M) of x's dtype to write into: y itself, or memory of no input. Default: a new tensor
    design  one of designs("gemv"), or its name; default: chosen for the problem
    config  one of the design's configs, or a dict of some of its numbers; default: chosen for the problem

    Any size may be 0. Error, elementwise: gamma(N + 4) * (|alpha| |scale| |A||x| + |beta| |y|) plus the rounding of the result,
    u = 2^-24, of float64 2^-53 (`numerics.error_bound`). Gradients are as gemm's, but autocast lowers the operands, as
    torch.mv's. Raises as `gemm` does, before anything is launched.

    Source: "gemv optimisation summary", work split by regime of N.
    """
    return OPERATOR(design, config, a=a, x=x, y=y, alpha=alpha, beta=beta, scale=scale, out=out)


GEMV = Operation("gemv", prepare, RULES, LADDER)
OPERATOR = Operator(LIBRARY, GEMV)
