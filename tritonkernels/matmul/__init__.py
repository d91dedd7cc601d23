"""Matrix product on tensor cores, with the precision stated by the caller."""

import itertools
import math

import torch

from .. import validate
from ..errors import DtypeError
from ..launch import LIBRARY
from ..library import Call
from ..problem import MatmulProblem, layout_of, needs_wide_offsets

DESIGNS = ("tensor_core",)

# input dtype -> (precisions, result dtypes), each with the default first
ACCEPTS = {
    torch.float16: (("fp16",), (torch.float16, torch.float32)),
    torch.bfloat16: (("bf16",), (torch.bfloat16, torch.float32)),
    torch.float32: (("ieee", "tf32"), (torch.float32,)),
    torch.int8: (("int8",), (torch.int32,)),
}


def matmul(a, b, *, precision=None, out_dtype=None, out=None, design=None, config=None):
    """The product of two tensors, with the shapes of torch.matmul: vectors, matrices, and batches that broadcast.

    a       (K,), (M, K) or (..., M, K): float16, bfloat16, float32 or int8, any strides
    b       (K,), (K, N) or (..., K, N), of the same dtype
    precision  float32: "ieee" (default; CUDA cores) or "tf32" (inputs rounded to nearest, 10 bits of mantissa, on tensor
            cores). float16: "fp16"; bfloat16: "bf16"; int8: "int8". Products are exact and sums are fp32 (int32 for int8)
    out_dtype  float16 and bfloat16: the same (default) or float32; float32: float32; int8: int32
    out     a tensor of the result's shape and dtype to write into; must not overlap an input. Default: a new tensor
    design  a name from designs("matmul"); default: chosen for the problem
    config  one of the design's configs, or a dict of some of its numbers; default: chosen for the problem

    Any size may be 0. Error, elementwise: (gamma(K + 4) + 2v + v^2) * |A||B| plus the rounding of the result, u = 2^-24 for
    ieee and 2^-23 on tensor cores, v = 2^-11 for tf32, else 0; int8 is exact (`numerics.error_bound`). Raises as `gemm` does,
    before anything is launched.

    Source: the tensor-core (WMMA) chapter of the CUDA programming guide.
    """
    return LIBRARY.run(prepare(a, b, precision=precision, out_dtype=out_dtype, out=out), design, config)


def prepare(a, b, *, precision=None, out_dtype=None, out=None):
    """Validate matmul's arguments into a Call of parts (a (batch, M, K), b (batch, K, N), out (batch, M, N))."""
    ranks = range(1, 65)
    a = validate.tensor("a", a, dtypes=tuple(ACCEPTS), ranks=ranks)
    b = validate.tensor("b", b, dtypes=tuple(ACCEPTS), ranks=ranks, like=("a", a))
    precisions, out_dtypes = ACCEPTS[a.dtype]
    precision = precisions[0] if precision is None else precision
    if precision not in precisions:
        raise validate.out_of_choices("precision", precision, precisions)
    out_dtype = out_dtypes[0] if out_dtype is None else out_dtype
    if out_dtype not in out_dtypes:
        raise DtypeError("out_dtype", out_dtype, ", ".join(map(str, out_dtypes)))
    validate.no_gradient("matmul", a=a, b=b)

    matrix_a = a if a.ndim > 1 else a[None, :]
    matrix_b = b if b.ndim > 1 else b[:, None]
    (m, k), (k_of_b, n) = matrix_a.shape[-2:], matrix_b.shape[-2:]
    validate.inner("a", k, "b", k_of_b)
    batch = validate.broadcast_shape("a", matrix_a.shape[:-2], "b", matrix_b.shape[:-2])
    shape = (*batch, *(() if a.ndim == 1 else (m,)), *(() if b.ndim == 1 else (n,)))
    out = validate.result(out, shape, out_dtype, a.device, a=a, b=b)

    matrix_out = out if b.ndim > 1 else out.unsqueeze(-1)
    matrix_out = matrix_out if a.ndim > 1 else matrix_out.unsqueeze(-2)
    matrix_a, matrix_b = matrix_a.expand(*batch, m, k), matrix_b.expand(*batch, k, n)
    problem = MatmulProblem(
        dtype=a.dtype,
        out_dtype=out_dtype,
        precision=precision,
        wide=needs_wide_offsets(matrix_a, matrix_b, matrix_out),
        batch=math.prod(batch),
        m=m,
        n=n,
        k=k,
        a_shared=a.ndim < 3 or not any(matrix_a.stride()[:-2]),
        b_shared=b.ndim < 3 or not any(matrix_b.stride()[:-2]),
        a_layout=layout_of(matrix_a),
        b_layout=layout_of(matrix_b),
    )
    return Call(problem, tuple(_uniform_batches(matrix_a, matrix_b, matrix_out)), out)


def _uniform_batches(*tensors):
    """Split tensors of one batch shape into parts of rank 3, each with a single batch stride (usually one part).

    Neighbouring batch dimensions merge where, in every tensor, the outer stride is the inner one times the inner size. What
    cannot merge, as (2, 1) broadcast against (1, 3), is walked on the host: a view each, never a copy.
    """
    shape = tensors[0].shape[:-2]
    if 0 in shape:
        return
    if not shape:
        yield tuple(t[None] for t in tensors)
        return
    outer = len(shape) - 1  # batch dimensions from here inwards merge into one
    while outer > 0 and all(_merges(t, outer - 1) for t in tensors):
        outer -= 1
    for index in itertools.product(*map(range, shape[:outer])):
        yield tuple(_merge(t[index]) for t in tensors)


def _merges(t, dim):
    return t.shape[dim] == 1 or t.shape[dim + 1] == 1 or t.stride(dim) == t.stride(dim + 1) * t.shape[dim + 1]


def _merge(t):
    """Batch dimensions of one common stride as a single one."""
    sizes, strides = t.shape[:-2], t.stride()[:-2]
    stride = min((s for size, s in zip(sizes, strides) if size > 1), default=0)
    return t.as_strided((math.prod(sizes), *t.shape[-2:]), (stride, *t.stride()[-2:]), t.storage_offset())
