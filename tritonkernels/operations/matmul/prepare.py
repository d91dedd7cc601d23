"""Checks matmul's arguments and makes its Call."""

import math

import torch

from ... import switches, validate
from ...batches import uniform_batches
from ...errors import ArgumentError, DtypeError, ShapeError
from ...numerics import ACTIVATIONS, MODES
from ...operation import Call
from ...problem import GATED, PACKED, MatmulProblem, address, holds, is_aligned, layout_of, needs_wide_offsets
from .schemes import FEWEST, MOST
from .split import check_planes

FP8 = (torch.float8_e4m3fn, torch.float8_e5m2)  # which tensor cores multiply with each other, too
OF_FP8 = (("fp8",), (torch.float16, torch.bfloat16, torch.float32))
# input dtype -> (precisions, result dtypes), each with the default first
ACCEPTS = {
    torch.float16: (("fp16",), (torch.float16, torch.float32)),
    torch.bfloat16: (("bf16",), (torch.bfloat16, torch.float32)),
    torch.float32: (("ieee", "tf32", "fp32", "tf32x3", "fp16x3", "bf16x6", "bf16x9", "torch"), (torch.float32,)),
    torch.float64: (("fp64",), (torch.float64,)),
    torch.int8: (("int8",), (torch.int32,)),
    torch.uint8: (("uint8", "int4", "uint4", "b1_xor", "b1_and"), (torch.int32,)),
    **dict.fromkeys(FP8, OF_FP8),
}
# input dtype -> the types of the sums, the default first, where they are not fp32 alone
SUMS = {
    torch.float16: ("fp32", "fp16"),
    torch.float64: ("fp64",),
    **dict.fromkeys((torch.int8, torch.uint8), ("int32",)),
    **dict.fromkeys(FP8, ("fp32", "fast")),
}


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
    scale_a=None,
    scale_b=None,
    b_planes=None,
    b_ranges=None,
    out=None,
):
    """Validate matmul's arguments into a Call of parts (a, b, c or None, bias or None, out), of scaled operands (..., out,
    scale_a or None, scale_b or None), with the planes of a Split (..., out, b_planes, b_ranges or None).

    In a part a is (batch, M, K), b (batch, K, N), c and out (batch, M, N), bias (N,), scale_a (batch, M, 1), scale_b
    (batch, 1, N), b_planes (batch, N, planes K), b_ranges (batch, 3, N); bytes where a precision packs elements.
    """
    ranks = range(1, 65)
    a = validate.tensor("a", a, dtypes=tuple(ACCEPTS), ranks=ranks)
    of_b, like = (FP8, None) if a.dtype in FP8 else (tuple(ACCEPTS), ("a", a))
    b = validate.tensor("b", b, dtypes=of_b, ranks=ranks, like=like)
    validate.same_device("b", b, "a", a)
    precisions, out_dtypes = ACCEPTS[a.dtype]
    precision = validate.choice("precision", precision, precisions, MODES)
    if precision == "torch":
        precision = switches.of_products()
    out_dtype = out_dtypes[0] if out_dtype is None else out_dtype
    if out_dtype not in out_dtypes:
        raise DtypeError("out_dtype", out_dtype, ", ".join(map(str, out_dtypes)), "Convert the result with .to().")
    accumulate = validate.choice("accumulate", accumulate, SUMS.get(a.dtype, ("fp32",)))
    alpha, beta = _scalar("alpha", alpha, out_dtype), _scalar("beta", validate.beta_of(beta, c), out_dtype)
    activations = ("relu",) if out_dtype == torch.int32 else (*ACTIVATIONS, *GATED)
    if activation is not None and activation not in activations:
        raise validate.out_of_choices("activation", activation, (None, *activations))
    check_gated(activation, b, c)

    matrix_a = a if a.ndim > 1 else a[None, :]
    matrix_b = b if b.ndim > 1 else b[:, None]
    (m, k), (k_of_b, n) = matrix_a.shape[-2:], matrix_b.shape[-2:]
    validate.inner("a", k, "b", k_of_b)
    k = validate.size_of_packed("a", k, PACKED.get(precision, 1))
    batch = validate.broadcast_shape("a", matrix_a.shape[:-2], "b", matrix_b.shape[:-2])
    columns = n // 2 if activation in GATED else n
    shape = (*batch, *(() if a.ndim == 1 else (m,)), *(() if b.ndim == 1 else (columns,)))
    result_like = a.new_empty(0, dtype=out_dtype)
    c = validate.addend("c", c, beta, shape, like=("a", result_like))
    if bias is not None:
        bias = validate.tensor("bias", bias, dtypes=(out_dtype,), ranks=(1,), like=("a", result_like))
        validate.length("bias", bias, n, "N, the columns of b")
    if b_planes is not None:
        check_planes(b, precision, b_planes, b_ranges)
    scale_a = _scale("scale_a", scale_a, a, (*batch, m, 1), "(M, 1) is one for each row of A")
    scale_b = _scale("scale_b", scale_b, a, (*batch, 1, n), "(1, N) is one for each column of B")
    if holds(alpha == 0):  # as in BLAS, A and B are then not read, and the product is 0
        matrix_a, matrix_b, k = matrix_a[..., :0], matrix_b[..., :0, :], 0
        a, b, scale_a, scale_b, b_planes = a[..., :0], b[..., :0], None, None, None
    planes = {"b_planes": b_planes, "b_ranges": b_ranges}
    inputs = {"a": a, "b": b, "c": c, "bias": bias, "scale_a": scale_a, "scale_b": scale_b, **planes}
    overwritten = None if out is None else c  # or disjoint from it, as is checked next
    out = validate.result(out, shape, out_dtype, a.device, addend="c", **inputs)
    if precision == "fp32" and not _suits_planes(k, overwritten, out):
        precision, b_planes = "ieee", None

    def as_matrix(t):
        """c and out as matrices, with the row or column that a vector operand lacks."""
        t = t if b.ndim > 1 else t.unsqueeze(-1)
        return t if a.ndim > 1 else t.unsqueeze(-2)

    matrix_out = as_matrix(out)
    matrix_c = None if c is None else as_matrix(c)
    matrix_a, matrix_b = matrix_a.expand(*batch, *matrix_a.shape[-2:]), matrix_b.expand(*batch, *matrix_b.shape[-2:])
    scales = [scale for scale in (scale_a, scale_b) if scale is not None]
    following = (scale_a, scale_b) if scales else ()
    if b_planes is not None:
        following = [t if t is None else t.expand(*batch, *t.shape[-2:]) for t in (b_planes, b_ranges)]
    problem = MatmulProblem(
        dtype=a.dtype,
        out_dtype=out_dtype,
        precision=precision,
        wide=needs_wide_offsets(matrix_a, matrix_b, matrix_c, bias, matrix_out, *scales),
        batch=math.prod(batch),
        m=m,
        n=n,
        k=k,
        a_shared=a.ndim < 3 or not any(holds(stride != 0) for stride in matrix_a.stride()[:-2]),
        b_shared=b.ndim < 3 or not any(holds(stride != 0) for stride in matrix_b.stride()[:-2]),
        a_layout=layout_of(matrix_a),
        b_layout=layout_of(matrix_b),
        aligned=is_aligned(matrix_a) and is_aligned(matrix_b),
        accumulate=accumulate,
        alpha=alpha,
        beta=beta,
        bias=bias is not None,
        activation=activation,
        b_dtype=None if b.dtype == a.dtype else b.dtype,
        scales="rows" if any(map(_varies, scales)) else "matrix" if scales else None,
        b_split=b_planes is not None,
    )
    present = [t for t in (matrix_a, matrix_b, matrix_c, matrix_out, *following) if t is not None]
    return Call(problem, tuple(_part(uniform, c, bias, following) for uniform in uniform_batches(*present)), out)


def check_gated(activation, b, c):
    """Raises if a gated linear unit has a C, or a B whose columns are no pairs."""
    if activation not in GATED:
        return
    if c is not None:
        raise ArgumentError("c", "a tensor", f"None, as activation is {activation!r}", "Add c to what this call returns.")
    if b.ndim < 2 or holds(b.shape[-1] % 2 == 1):
        allowed = f"(..., K, 2 F), as {activation} takes columns in pairs"
        raise ShapeError("b", tuple(b.shape), allowed, "tritonkernels.interleave(gate, value) makes such a b.")


def _suits_planes(k, c, out):
    """Whether planes are as exact as IEEE arithmetic, and C is still there if a result is computed again."""
    return holds(k >= FEWEST) and holds(k <= MOST) and (c is None or address(c) != address(out))


def _part(uniform, c, bias, following):
    """A part of the tensors among its members that are matrices, in their order."""
    matrices = iter(uniform)
    a, b, c = next(matrices), next(matrices), None if c is None else next(matrices)
    return a, b, c, bias, next(matrices), *(None if t is None else next(matrices) for t in following)


def _varies(matrices):
    """Whether a matrix is not one element, expanded."""
    return any(holds(size > 1) and holds(stride != 0) for size, stride in zip(matrices.shape[-2:], matrices.stride()[-2:]))


def _scale(argument, value, a, shape, example):
    """The scales of an operand of fp8, broadcast to (*batch, M, 1) or (*batch, 1, N)."""
    if value is None:
        return None
    if a.dtype not in FP8:
        remedy = "Leave it out, or scale the operand."
        raise DtypeError(argument, "a tensor", f"None, as a is {a.dtype}: only operands of fp8 have scales", remedy)
    value = validate.tensor(argument, value, dtypes=(torch.float32,), ranks=range(len(shape) + 1))
    validate.same_device(argument, value, "a", a)
    return validate.expanded(argument, value, shape, f"A single element is the scale of all of it, {example}.")


def _scalar(argument, value, out_dtype):
    """alpha or beta; for a product of integers they are whole numbers within int32."""
    number = validate.number(argument, value)
    if not isinstance(number, float):
        return number
    if out_dtype == torch.int32 and not (number.is_integer() and -(2**31) <= number < 2**31):
        raise ArgumentError(argument, repr(value), "a whole number of 32 bits, as the result is int32", "Scale the result.")
    return number
