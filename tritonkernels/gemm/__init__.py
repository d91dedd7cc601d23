"""FP32 general matrix product on CUDA cores, IEEE arithmetic throughout; in FP64 by matmul's designs."""

from torch import Tensor

from ..annotations import Config
from ..design import Design
from ..launch import LIBRARY
from ..operation import Operation, Rung
from ..operations.gemm.as_matmul import TO_CUDA_CORES, TO_TENSOR_CORES
from ..operations.gemm.prepare import prepare
from ..operations.gemm.rules import RULES
from ..torch_ops import Operator

LADDER = (
    Rung("naive", "a multiply-add per element and k, operands straight from the caches", "gemm write-up: naive", kind="lesson"),
    Rung(
        "tiled",
        "a block tile in shared memory, outer products in registers",
        "gemm write-up: shared memory + outer product",
        kind="lesson",
    ),
    Rung("warp_tiled", "tiled, with a warp's lanes in a grid of 4 x 8 thread tiles", "gemm write-up: warp tile", kind="lesson"),
    Rung(
        "vectorized",
        "warp_tiled with 128-bit accesses, where alignment allows",
        "gemm write-up: vectorised access",
        kind="lesson",
    ),
    Rung(
        "conflict_free",
        "vectorized without bank conflicts: rows of slices padded, lanes 4 x 2 a phase",
        "gemm write-up: conflict-free store, conflict-free load",
        kind="lesson",
    ),
    Rung(
        "z_order",
        "conflict_free with the thread tile in quadrants, so that neighbouring lanes own neighbouring quads",
        "gemm write-up: z-order thread map",
        kind="lesson",
    ),
    Rung(
        "double_buffered",
        "the next slice of K under way while one is multiplied, one barrier a slice",
        "gemm write-up: double buffer",
        kind="lesson",
    ),
    Rung(
        "rasterized",
        "tiles in grouped order, so that a wave is square and L2 serves it",
        "gemm write-up: block rasterisation",
    ),
    Rung(
        "async_copy",
        "slices copied past the registers by cp.async, in 3 or 4 stages, more sums a thread",
        "beyond the gemm write-up: double buffer by cp.async",
    ),
    Rung(
        "split_k",
        "several blocks a tile, each with its range of K; their sums added in the order of K",
        "gemm write-up: split-K, named as future work",
    ),
    Rung(
        "stream_k",
        "a fixed number of blocks share the last waves evenly, to the slice; cut tiles added up in order",
        "gemm write-up: tail effect, named as future work",
    ),
)


def gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float | None = None,
    out: Tensor | None = None,
    design: Design | str | None = None,
    config: Config | None = None,
) -> Tensor:
    """out = alpha * A B + beta * C in IEEE arithmetic, as torch.addmm(c, a, b, alpha=alpha, beta=beta).

    a       (M, K) float32, or float64, which matmul's designs multiply on tensor cores; any strides
    b       (K, N) of a's dtype, any strides
    c       broadcastable to (M, N), of a's dtype; needed if beta != 0, never read if beta == 0
    alpha, beta  real numbers, rounded to a's dtype; with alpha == 0, A and B are not read. beta: default 1 with c, else 0
    out     (M, N) of a's dtype to write into: c itself, or memory of no input. Default: a new contiguous tensor
    design  one of designs("gemm"), or its name; default: chosen for the problem
    config  one of the design's configs, or a dict of some of its numbers; default: chosen for the problem

    M, N and K may be 0; with K = 0 the product is 0. Error, elementwise: gamma(K + 4) * (|alpha| |A||B| + |beta| |C|) plus the
    rounding of the result, gamma(n) = n u / (1 - n u), u = 2^-24, of float64 2^-53 (`numerics.error_bound`).

    Operands may require gradients of any order, in both modes of autograd. torch.func, torch.compile, torch.export and autocast
    (which raises the operands to float32) see one operator. Into an `out` nothing is recorded: operands that require gradients
    are refused then.

    Raises ShapeError, DtypeError, DeviceError, OverlapError, GradientError, ArgumentError, UnknownDesignError, ConfigError,
    UnsupportedError, all before anything is launched.

    Source: "how to write a fast FP32 matrix product" (Hands-on-GEMM), the ladder of this operation's designs.
    """
    return OPERATOR(design, config, a=a, b=b, c=c, alpha=alpha, beta=beta, out=out)


GEMM = Operation("gemm", prepare, RULES, LADDER, (TO_CUDA_CORES, TO_TENSOR_CORES))
OPERATOR = Operator(LIBRARY, GEMM)
