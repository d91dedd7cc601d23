"""Matrix product on tensor cores, with the precision stated by the caller."""

import math

import torch

from .. import validate
from ..batches import uniform_batches
from ..errors import ArgumentError, DtypeError
from ..launch import LIBRARY
from ..numerics import ACTIVATIONS
from ..operation import Call, Operation, Rung
from ..problem import PACKED, MatmulProblem, is_aligned, layout_of, needs_wide_offsets

LADDER = (
    Rung(
        "cuda_cores",
        "fp32 in IEEE arithmetic: gemm's double-buffered tiles on CUDA cores, operands along K or across it",
        "gemm seed: double buffer",
        only="cuda_reference",
        why="Triton's tl.dot computes fp32 in IEEE arithmetic itself, in every design.",
    ),
    Rung(
        "naive",
        "a warp per tile of one WMMA fragment, in all 20 combinations of types and shapes that nvcuda::wmma has",
        "tensor-core seed: WMMA",
        only="cuda_reference",
        why="WMMA fragments have no counterpart in Triton.",
        formerly=("wmma",),
    ),
    Rung(
        "tiled",
        "a block per tile, a slice of K at a time through shared memory, several fragments a warp",
        "tensor-core seed: WMMA",
        formerly=("wmma_tiled",),
    ),
    Rung(
        "pipelined",
        "tiled, with the next slices of K in flight: cp.async in 2 to 4 stages",
        "beyond the tensor-core seed: mma.sync, ldmatrix, cp.async",
        formerly=("tensor_core", "mma_async"),
    ),
    Rung(
        "persistent",
        "a block per SM walks the tiles, TMA copies the operands, warpgroups multiply them by wgmma",
        "beyond the tensor-core seed: TMA, wgmma",
        formerly=("wgmma_tma",),
    ),
    Rung(
        "split_k",
        "several programs per tile, each with its range of K; partial sums added in a fixed order",
        "beyond the tensor-core seed: gemm's split_k",
        only="tritonkernels",
        why="Not written in CUDA yet.",
    ),
    Rung(
        "stream_k",
        "a fixed number of programs, each with the same number of slices; cut tiles are added up in a fixed order",
        "beyond the tensor-core seed: gemm's stream_k",
        only="tritonkernels",
        why="Not written in CUDA yet.",
    ),
    Rung(
        "planes",
        "FP32 operands split once into fp16, bf16 or tf32 planes, whose products tensor cores add up to FP32 accuracy",
        "beyond the tensor-core seed: FP32 on tensor cores",
    ),
)

# input dtype -> (precisions, result dtypes), each with the default first
ACCEPTS = {
    torch.float16: (("fp16",), (torch.float16, torch.float32)),
    torch.bfloat16: (("bf16",), (torch.bfloat16, torch.float32)),
    torch.float32: (("ieee", "tf32", "tf32x3", "fp16x3", "bf16x6", "bf16x9", "torch"), (torch.float32,)),
    torch.float64: (("fp64",), (torch.float64,)),
    torch.int8: (("int8",), (torch.int32,)),
    torch.uint8: (("uint8", "int4", "uint4", "b1_xor", "b1_and"), (torch.int32,)),
    torch.float8_e4m3fn: (("fp8",), (torch.float16, torch.bfloat16, torch.float32)),
    torch.float8_e5m2: (("fp8",), (torch.float16, torch.bfloat16, torch.float32)),
}
TENSOR_CORES_READ = ("fp16", "bf16", "fp8", "int8", "tf32")  # as they lie in memory; of others registers hold another form
ALONG_K = ("fp8", "int8", "tf32")  # and of these Hopper reads what is contiguous along K
ENOUGH_REUSE = 256  # a packed element is read that often: copying it then costs less than reading it unaligned again and again
ENOUGH_WORK = 2**28  # multiply-adds; with fewer, describing operands to TMA takes longer than it saves
# result dtype -> the types of the sums, the default first; float16 operands may ask for "fp16" beside
SUMS = {torch.int32: ("int32",), torch.float64: ("fp64",)}
# torch.get_float32_matmul_precision() -> precision. "medium" may use bf16 where that is fast, else it is "high": so here
TORCH_PRECISION = {"highest": "ieee", "high": "tf32", "medium": "tf32"}


def matmul(
    a,
    b,
    *,
    precision=None,
    out_dtype=None,
    accumulate=None,
    alpha=1.0,
    beta=None,
    c=None,
    bias=None,
    activation=None,
    out=None,
    design=None,
    config=None,
):
    """activation(alpha * A B + beta * C + bias), with the shapes of torch.matmul: vectors, matrices, batches that broadcast.

    a       (K,), (M, K) or (..., M, K): float16, bfloat16, float32, float64, float8_e4m3fn, float8_e5m2, int8 or uint8, any
            strides
    b       (K,), (K, N) or (..., K, N), of the same dtype
    precision  float32: "ieee" (default; CUDA cores), "tf32" (inputs rounded to nearest, 10 bits of mantissa, on tensor cores),
            the split modes "tf32x3", "fp16x3", "bf16x6", "bf16x9", on tensor cores at the accuracy of ieee, or "torch": what
            torch.get_float32_matmul_precision() says. fp16x3 has one scale for a row of A and one for a column of B: elements
            below 2^-27 of the largest there lose bits, and each product may be off by 2^-48 of (the largest of its row) |b| +
            |a| (the largest of its column). Where a row or column spans more than 2^38, as 1e30 beside 1e-30, an element of
            the product that may be off by more than 2^-12 of |A||B| for that is refused: it is NaN (docs/numerics.md has the
            rule). The other modes keep both
            uint8: "uint8" (default), or what the bytes pack along K: "int4" or "uint4", two elements a byte, the first in the
            low nibble (int4: two's complement); "b1_xor" or "b1_and", eight a byte, the first in the lowest bit, whose product
            is the number of ones in a xor b, in a and b. Sizes are in bytes then: a is (..., M, K / 2), b (..., K / 2, N).
            Each other dtype has one: "fp16", "bf16", "fp64", "fp8", "int8"
    out_dtype  float16 and bfloat16: the same (default) or float32; fp8: float16 (default), bfloat16 or float32; float32 and
            float64: the same; integers: int32
    accumulate  the type of the sums: "fp32", for float64 "fp64", for integers "int32"; for float16 also "fp16"
    alpha, beta  real numbers, rounded to fp32 (float64: to fp64); integers: whole numbers. alpha == 0: A and B are not read.
            beta: default 1 if c is given, else 0
    c       what broadcasts to the result, of its dtype; needed if beta != 0, never read if beta == 0
    bias    (N,), of the result's dtype
    activation  None, "relu", "gelu" (with erf, torch's default) or "silu"; integers: None or "relu"
    out     a tensor of the result's shape and dtype to write into; must not overlap an input. Default: a new tensor
    design  a name from designs("matmul"); default: chosen for the problem
    config  one of the design's configs, or a dict of some of its numbers; default: chosen for the problem

    Any size may be 0. Error, elementwise, before the activation: (gamma(K + 4) + 2v + v^2) * S plus the rounding of the result,
    S = |alpha| |A||B| + |beta| |C| + |bias|, u = 2^-24 for ieee, 2^-53 for fp64 and 2^-23 on tensor cores, v = 2^-11 for tf32,
    else 0. fp16 sums add (K + 4) 2^-11 S, fp8 at most 0.017 S; an activation's slope (at most 1.13) and 2^-20 S come on top
    (`numerics.error_bound`). Integers are exact, modulo 2^32.

    Raises ShapeError, DtypeError, DeviceError, OverlapError, GradientError, ArgumentError, UnknownDesignError, ConfigError,
    UnsupportedError, all before anything is launched.

    Source: the tensor-core (WMMA) chapter of the CUDA programming guide.
    """
    return LIBRARY.call(
        MATMUL,
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
        out=out,
    )


def prepare(
    a,
    b,
    *,
    precision=None,
    out_dtype=None,
    accumulate=None,
    alpha=1.0,
    beta=None,
    c=None,
    bias=None,
    activation=None,
    out=None,
):
    """Validate matmul's arguments into a Call of parts (a, b, c or None, bias or None, out).

    In a part a is (batch, M, K), b (batch, K, N), c and out (batch, M, N), bias (N,); bytes where a precision packs elements.
    """
    ranks = range(1, 65)
    a = validate.tensor("a", a, dtypes=tuple(ACCEPTS), ranks=ranks)
    b = validate.tensor("b", b, dtypes=tuple(ACCEPTS), ranks=ranks, like=("a", a))
    precisions, out_dtypes = ACCEPTS[a.dtype]
    precision = validate.choice("precision", precision, precisions)
    if precision == "torch":
        precision = TORCH_PRECISION[torch.get_float32_matmul_precision()]
    out_dtype = out_dtypes[0] if out_dtype is None else out_dtype
    if out_dtype not in out_dtypes:
        raise DtypeError("out_dtype", out_dtype, ", ".join(map(str, out_dtypes)))
    sums = SUMS.get(out_dtype, ("fp32", "fp16") if a.dtype == torch.float16 else ("fp32",))
    accumulate = validate.choice("accumulate", accumulate, sums)
    alpha, beta = _scalar("alpha", alpha, out_dtype), _scalar("beta", validate.beta_of(beta, c), out_dtype)
    activations = ("relu",) if out_dtype == torch.int32 else tuple(ACTIVATIONS)
    if activation is not None and activation not in activations:
        raise validate.out_of_choices("activation", activation, (None, *activations))

    matrix_a = a if a.ndim > 1 else a[None, :]
    matrix_b = b if b.ndim > 1 else b[:, None]
    (m, k), (k_of_b, n) = matrix_a.shape[-2:], matrix_b.shape[-2:]
    validate.inner("a", k, "b", k_of_b)
    k = validate.size_of_packed("a", k, PACKED.get(precision, 1))
    batch = validate.broadcast_shape("a", matrix_a.shape[:-2], "b", matrix_b.shape[:-2])
    shape = (*batch, *(() if a.ndim == 1 else (m,)), *(() if b.ndim == 1 else (n,)))
    result_like = a.new_empty(0, dtype=out_dtype)
    c = validate.addend("c", c, beta, shape, like=("a", result_like))
    if bias is not None:
        bias = validate.tensor("bias", bias, dtypes=(out_dtype,), ranks=(1,), like=("a", result_like))
        validate.length("bias", bias, n, "N, the columns of the result")
    validate.no_gradient("matmul", a=a, b=b, c=c, bias=bias)
    if alpha == 0:  # as in BLAS, A and B are not read then: whatever they hold, the product is 0
        matrix_a, matrix_b, k = matrix_a[..., :0], matrix_b[..., :0, :], 0
        a, b = a[..., :0], b[..., :0]
    out = validate.result(out, shape, out_dtype, a.device, a=a, b=b, c=c, bias=bias)

    def as_matrix(t):
        """c and out with the rows or columns that a vector operand left out."""
        t = t if b.ndim > 1 else t.unsqueeze(-1)
        return t if a.ndim > 1 else t.unsqueeze(-2)

    matrix_out = as_matrix(out)
    matrix_c = None if c is None else as_matrix(c)
    matrix_a, matrix_b = matrix_a.expand(*batch, *matrix_a.shape[-2:]), matrix_b.expand(*batch, *matrix_b.shape[-2:])
    problem = MatmulProblem(
        dtype=a.dtype,
        out_dtype=out_dtype,
        precision=precision,
        wide=needs_wide_offsets(matrix_a, matrix_b, matrix_c, bias, matrix_out),
        batch=math.prod(batch),
        m=m,
        n=n,
        k=k,
        a_shared=a.ndim < 3 or not any(matrix_a.stride()[:-2]),
        b_shared=b.ndim < 3 or not any(matrix_b.stride()[:-2]),
        a_layout=layout_of(matrix_a),
        b_layout=layout_of(matrix_b),
        aligned=is_aligned(matrix_a) and is_aligned(matrix_b),
        accumulate=accumulate,
        alpha=alpha,
        beta=beta,
        bias=bias is not None,
        activation=activation,
    )
    matrices = [matrix_a, matrix_b, matrix_out] if c is None else [matrix_a, matrix_b, matrix_c, matrix_out]
    parts = ((x, y, rest[0] if rest else None, bias, z) for x, y, *rest, z in uniform_batches(*matrices))
    return Call(problem, tuple(parts), out)


def prefer(problem, target):
    """The design for a problem, by records of an H200 (perf/results/h200): split-K, in tiles of 64 x 64, where few of them have
    much K; from sm_90 on `persistent` from 650^3 on, of what TMA reads or what is re-used enough to be packed for it; in all
    else a program per tile. In the interpreter the cost is per operation, and `pipelined` has the fewest.
    """
    if not target.is_gpu:
        return "pipelined"
    tiles = problem.batch * -(-problem.m // 64) * -(-problem.n // 64)
    shortest = min(problem.m, problem.n)
    if problem.k >= 1024 and tiles * (1 if shortest <= 64 else 2) <= target.sms:
        return "split_k"
    read_by_tma = target.arch >= 90 and problem.k and problem.precision in TENSOR_CORES_READ
    if read_by_tma and shortest >= 128 and problem.batch * problem.m * problem.n * problem.k >= ENOUGH_WORK:
        along_k = (problem.a_layout, problem.b_layout) == ("row", "col")
        as_it_lies = problem.aligned and problem.precision != "tf32" and (along_k or problem.precision not in ALONG_K)
        if as_it_lies or shortest >= ENOUGH_REUSE:
            return "persistent"
    return "pipelined"


def _scalar(argument, value, out_dtype):
    """alpha or beta; a product of integers takes whole numbers that an int32 holds."""
    number = validate.number(argument, value)
    if out_dtype == torch.int32 and not (number.is_integer() and -(2**31) <= number < 2**31):
        raise ArgumentError(argument, repr(value), "a whole number of 32 bits, as the result is int32")
    return number


MATMUL = Operation("matmul", prepare, LADDER)
LIBRARY.serve(MATMUL, prefer=prefer)
