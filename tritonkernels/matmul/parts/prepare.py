"""Checks matmul's arguments and makes its Call."""

import math

import torch

from ... import switches, validate
from ...batches import uniform_batches
from ...errors import ArgumentError, DtypeError
from ...numerics import ACTIVATIONS
from ...operation import Call
from ...problem import PACKED, MatmulProblem, is_aligned, layout_of, needs_wide_offsets

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
# result dtype -> the types of the sums, the default first; float16 operands also allow "fp16"
SUMS = {torch.int32: ("int32",), torch.float64: ("fp64",)}


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
        precision = switches.of_products()
    out_dtype = out_dtypes[0] if out_dtype is None else out_dtype
    if out_dtype not in out_dtypes:
        raise DtypeError("out_dtype", out_dtype, ", ".join(map(str, out_dtypes)), "Convert the result with .to().")
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
    if alpha == 0:  # as in BLAS, A and B are then not read, and the product is 0
        matrix_a, matrix_b, k = matrix_a[..., :0], matrix_b[..., :0, :], 0
        a, b = a[..., :0], b[..., :0]
    out = validate.result(out, shape, out_dtype, a.device, a=a, b=b, c=c, bias=bias)

    def as_matrix(t):
        """c and out as matrices, with the row or column that a vector operand lacks."""
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


def _scalar(argument, value, out_dtype):
    """alpha or beta; for a product of integers they are whole numbers within int32."""
    number = validate.number(argument, value)
    if out_dtype == torch.int32 and not (number.is_integer() and -(2**31) <= number < 2**31):
        raise ArgumentError(argument, repr(value), "a whole number of 32 bits, as the result is int32", "Scale the result.")
    return number
