"""Matrix product on tensor cores, with the precision stated by the caller."""

import torch
from torch import Tensor

from ..annotations import Accumulate, Config, MatmulActivation, MatmulPrecision, SplitPrecision
from ..design import Design
from ..launch import LIBRARY
from ..operation import Operation, Rung
from ..operations.matmul.as_gemm import TO_GEMM
from ..operations.matmul.as_gemv import TO_GEMV
from ..operations.matmul.gated import interleave as interleave
from ..operations.matmul.prepare import prepare
from ..operations.matmul.rules import RULES
from ..operations.matmul.split import Split, make, unpacked
from ..torch_ops import Operator

LADDER = (
    Rung(
        "cuda_cores",
        "fp32 in IEEE arithmetic: outer products in registers, of operands along K or across it; K may be split",
        "gemm write-up: double buffer",
    ),
    Rung(
        "naive",
        "a warp per tile of one WMMA fragment, in all 20 combinations of types and shapes that nvcuda::wmma has",
        "tensor-core write-up: WMMA",
        only="cuda_reference",
        why="WMMA fragments have no counterpart in Triton.",
        formerly=("wmma",),
    ),
    Rung(
        "tiled",
        "a block per tile, a slice of K at a time through shared memory, several fragments a warp",
        "tensor-core write-up: WMMA",
        kind="lesson",
        formerly=("wmma_tiled",),
    ),
    Rung(
        "pipelined",
        "tiled for every type and batch, with the next slices of K in flight: cp.async in 1 to 4 stages",
        "beyond the tensor-core write-up: mma.sync, ldmatrix, cp.async",
        formerly=("tensor_core", "mma_async"),
    ),
    Rung(
        "wgmma",
        "one warpgroup, one stage: threads copy swizzled slices to shared memory, where the tensor cores read both operands",
        "beyond the tensor-core write-up: wgmma",
        kind="lesson",
    ),
    Rung(
        "tma",
        "wgmma with a ring of stages, which the copy engine fills at the request of one thread",
        "beyond the tensor-core write-up: TMA",
        kind="lesson",
    ),
    Rung(
        "specialized",
        "tma by specialised warps: one requests slices, two warpgroups multiply a tile of 128 x 256",
        "beyond the tensor-core write-up: warp specialisation",
        kind="lesson",
    ),
    Rung(
        "tile_loop",
        "specialized with a block per SM that walks tiles in an order that suits L2, and loads the next while it writes one",
        "beyond the tensor-core write-up: persistent blocks",
        kind="lesson",
    ),
    Rung(
        "multicast",
        "tile_loop in clusters of two blocks, each of which loads half of B's slices for both",
        "beyond the tensor-core write-up: clusters and multicast",
        kind="lesson",
        only="cuda_reference",
        why="Gluon of Triton 3.6 cannot multicast.",
    ),
    Rung(
        "in_turn",
        "multicast with a tile for each consumer: one writes its result while the other multiplies",
        "beyond the tensor-core write-up: consumers in turn (ping-pong)",
        kind="lesson",
    ),
    Rung(
        "persistent",
        "a block per SM walks the tiles, TMA copies the operands, warpgroups multiply them by wgmma",
        "beyond the tensor-core write-up: TMA, wgmma",
        formerly=("wgmma_tma",),
    ),
    Rung(
        "warp_specialized",
        "persistent's tiles by specialised warps, in Gluon: one copies by TMA, two or three warpgroups multiply by wgmma",
        "beyond the tensor-core write-up: warp specialisation",
        only="tritonkernels",
        why="In CUDA persistent's warps are specialised.",
    ),
    Rung(
        "dmma",
        "fp64 on tensor cores, in Gluon: operands lie in shared memory so that no read has a bank conflict; K may be split",
        "beyond the tensor-core write-up: DMMA",
        only="tritonkernels",
        why="In CUDA pipelined and split_k multiply doubles so.",
    ),
    Rung(
        "split_k",
        "several programs per tile, each with its range of K; partial sums added in a fixed order",
        "beyond the tensor-core write-up: gemm's split_k",
    ),
    Rung(
        "cluster_split_k",
        "persistent's loop, with the blocks of a cluster for one tile; they send each other their sums through shared memory",
        "beyond the tensor-core write-up: distributed shared memory",
        only="cuda_reference",
        why="Triton has no distributed shared memory.",
    ),
    Rung(
        "planes",
        "FP32 operands split once into fp16, bf16 or tf32 planes, whose products tensor cores add up to FP32 accuracy",
        "beyond the tensor-core write-up: FP32 on tensor cores",
    ),
    Rung(
        "persistent_planes",
        "planes by the kernel of persistent: corrections and main sums are a product each of planes that lie side by side",
        "beyond the tensor-core write-up: wgmma of FP32",
        only="cuda_reference",
        why="Triton's planes multiplies by wgmma itself.",
    ),
    Rung(
        "fused_planes",
        "planes without copies: the product's own programs split the slices that they load, in registers",
        "beyond the tensor-core write-up: FP32 on tensor cores",
    ),
    Rung(
        "wgmma_planes",
        "fused_planes by specialised warpgroups: one makes the planes of B for its block, the others those of A, in registers",
        "beyond the tensor-core write-up: wgmma of FP32",
        only="cuda_reference",
        why="In Triton the compiler chooses who splits what: fused_planes.",
    ),
)


def matmul(
    a: Tensor,
    b: Tensor | Split,
    *,
    precision: MatmulPrecision | None = None,
    out_dtype: torch.dtype | None = None,
    accumulate: Accumulate | None = None,
    alpha: float = 1.0,
    beta: float | None = None,
    c: Tensor | None = None,
    bias: Tensor | None = None,
    activation: MatmulActivation | None = None,
    scale_a: Tensor | None = None,
    scale_b: Tensor | None = None,
    out: Tensor | None = None,
    design: Design | str | None = None,
    config: Config | None = None,
) -> Tensor:
    """activation(alpha * A B + beta * C + bias), with the shapes of torch.matmul: vectors, matrices, batches that broadcast;
    of scaled operands activation(alpha * scale_a * scale_b * A B + beta * C + bias).

    a       (K,), (M, K) or (..., M, K): float16, bfloat16, float32, float64, float8_e4m3fn, float8_e5m2, int8 or uint8, any
            strides
    b       (K,), (K, N) or (..., K, N), of the same dtype; either fp8 with either. Or a Split of a float32 B (`split`)
    precision  float32: "ieee" (default; CUDA cores), "fp32" (within the bound of ieee for K products on every element, by CUDA
            cores or, for K from 260 to 2^21, planes of fp16 on tensor cores, whichever is predicted to be faster; products by 0
            and 1 may be rounded), "tf32" (inputs rounded to nearest, 10 bits of mantissa, on tensor cores), the split modes
            "tf32x3", "fp16x3", "bf16x6", "bf16x9" (at the accuracy of ieee, on tensor cores), or "torch": what
            torch.backends.cuda.matmul.fp32_precision (and so torch.set_float32_matmul_precision) says. Where CUDA cores are
            faster, and no design is named, any of them may be computed as ieee. fp16x3 on tensor cores has one scale for a row
            of A and one for a column of B: elements below 2^-27 of the largest there lose bits, and each product may be off by
            2^-48 of (the largest of its row) |b| + |a| (the largest of its column). Where a row or column spans more than 2^37,
            as 1e30 and 1e-30 do, an element of the product that may be off by more than 2^-12 of |A||B| for that is refused: it
            is NaN. The other modes keep both
            uint8: "uint8" (default), or what the bytes pack along K: "int4" or "uint4", two elements a byte, the first in the
            low nibble (int4: two's complement); "b1_xor" or "b1_and", eight a byte, the first in the lowest bit, whose product
            is the number of ones in a xor b, in a and b. Sizes are in bytes then: a is (..., M, K / 2), b (..., K / 2, N).
            Each other dtype has one: "fp16", "bf16", "fp64", "fp8", "int8"
    out_dtype  float16 and bfloat16: the same (default) or float32; fp8: float16 (default), bfloat16 or float32; float32 and
            float64: the same; integers: int32
    accumulate  the type of the sums: "fp32", for float64 "fp64", for integers "int32"; for float16 also "fp16"; for fp8 also
            "fast": Hopper's tensor cores add up all of K in their own few bits, as in torch._scaled_mm(use_fast_accum=True),
            where "fp32" adds such a sum to one in fp32 after 128 products. Other GPUs may do more than that
    alpha, beta  real numbers, rounded to fp32 (float64: to fp64); integers: whole numbers. alpha == 0: A and B are not read.
            beta: default 1 if c is given, else 0
    c       broadcastable to the result, of its dtype; needed if beta != 0, never read if beta == 0
    bias    (N,), of the result's dtype
    activation  None, "relu", "gelu" (with erf, torch's default) or "silu"; integers: None or "relu". Of floats also a gated
            linear unit, "swiglu", "geglu" or "reglu" (Shazeer, 2020), of pairs of neighbouring columns: b is (..., K, 2 F)
            with gates in columns 2 j and values in 2 j + 1 (`interleave` makes it), the bias (2 F,), there is no c, and the
            result (..., M, F) is silu, gelu or relu of the gates' sums times the values' sums, none of which is rounded before.
            In float32 these have "ieee" and "tf32"
    scale_a, scale_b  of fp8, as torch._scaled_mm's: float32 tensors of one element, or (M, 1) with one for each row of A and
            (1, N) with one for each column of B, or what broadcasts to (..., M, 1) and (..., 1, N) where there is a batch.
            None is 1, so that either may be given alone, and in either form. Their products, with alpha, are rounded to fp32
            and must be within its normal range. They have no gradient
    out     a tensor of the result's shape and dtype to write into: c itself, or memory of no input. Default: a new tensor
    design  one of designs("matmul"), or its name; default: chosen for the problem
    config  one of the design's configs, or a dict of some of its numbers; default: chosen for the problem

    Any size may be 0. Error, elementwise, before the activation: (gamma(K + 4) + 2v + v^2) * S plus the rounding of the result,
    S = |alpha| |A||B| + |beta| |C| + |bias|, u = 2^-24 for ieee, 2^-53 for fp64 and 2^-23 on tensor cores, v = 2^-11 for tf32,
    else 0. fp16 sums add (K + 4) 2^-11 S, fp8 at most 0.017 S, its fast sums (33 K / 32 + 5) 2^-13 S. With scales, which count
    as alpha, it is gamma(K + 6). An activation's slope (at most 1.13) and 2^-20 S come on top (`numerics.error_bound`); of a
    gated linear unit both columns' errors count, and S is the product of theirs.
    Integers are exact, modulo 2^32.

    Gradients are as gemm's, in the precision of this call ("torch": what torch's switch said then), with the default sums; of
    fp8 and integers there are none. Where one is recorded the activation is torch's own, of the product rounded to the result's
    type. Autocast lowers the operands as torch.mm's, unless `precision` names one of float32.

    Raises ShapeError, DtypeError, DeviceError, OverlapError, GradientError, ArgumentError, UnknownDesignError, ConfigError,
    UnsupportedError, all before anything is launched.

    Source: the tensor-core (WMMA) chapter of the CUDA programming guide.
    """
    b, precision, planes = unpacked(b, precision)
    return OPERATOR(
        design,
        config,
        a=a,
        b=b,
        precision=precision,
        out_dtype=out_dtype,
        accumulate=accumulate,
        alpha=alpha,
        beta=beta,
        c=c,
        bias=bias,
        activation=activation,
        scale_a=scale_a,
        scale_b=scale_b,
        **planes,
        out=out,
    )


def split(b: Tensor, *, precision: SplitPrecision) -> Split:
    """The planes of a float32 B that is multiplied often, made once, as a Split, which matmul takes in place of B.

    b       (K, N) or (..., K, N), any strides; the weight of a linear layer is its weight.t()
    precision  "fp32", "fp16x3", "tf32x3", "bf16x6" or "bf16x9"; the products' own, which is their default then

        planes = split(layer.weight.t(), precision="fp16x3")
        with torch.no_grad():
            y = matmul(x, planes, bias=layer.bias)

    A design that multiplies planes splits both operands in each call: for few rows that takes as long as the product. Of a
    Split `planes` and CUDA's `persistent_planes` split A alone; all other designs get B itself, which the Split keeps. The
    result has the bits of the same config's for B. All of them compete in the choice, so that no call is predicted to take
    longer than with B itself: a few rows are multiplied by CUDA cores, as without a Split. (precision="fp32" of a K below 260
    or above 2^21 is computed from B in any case.) Both packages take the Splits of either, in all that matmul does: batches,
    out, torch.compile, vmap, CUDA graphs. nn.Linear keeps one of its weight: cache_split=True.

    Memory: the Split keeps B and, for each element of it, 4 bytes (fp32, fp16x3), 6 (bf16x6, bf16x9) or 8 (tf32x3), with K
    padded to a multiple of 64; fp32 and fp16x3 add 12 bytes a column. Its `nbytes` says how many, without those of B.

    B must not change after that. A call with a Split raises ArgumentError if B was written to, moved or reshaped in place;
    what torch does not count it cannot see, as writes through B.data, and code that torch.compile compiles does not look. It
    raises ArgumentError for another precision, too, and GradientError where a gradient of B would be recorded: a Split is for
    inference. A's gradient is that of the call with B itself. Other errors, of shapes and devices, are matmul's for B.

    Raises ShapeError, DtypeError, DeviceError, ArgumentError (also for an inference tensor, whose writes torch does not count),
    all before anything is launched.
    """

    def launches(*args):
        from .parts.fp32_planes import splitting  # imports Triton

        return splitting(*args)

    return make(LIBRARY, b, precision, launches)


MATMUL = Operation("matmul", prepare, RULES, LADDER, (TO_GEMV, TO_GEMM))
OPERATOR = Operator(LIBRARY, MATMUL)
