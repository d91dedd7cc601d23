"""torch's own way to compute each operation, at the precision asked for: cuBLAS and cuDNN on a GPU.

Each baseline has the signature of its user function. `out` is written where torch can do so; torch.conv2d cannot, and returns a
tensor from torch's caching allocator.
"""

import contextlib

import torch

from tritonkernels.errors import UnsupportedError


@contextlib.contextmanager
def precision(name):
    """torch multiplies as `name` says, accumulates in fp32 and picks cuDNN's fastest algorithm; restored on leaving.

    Matrix products and convolutions have a TF32 switch each, with opposite defaults, so both are set. They are set through
    `fp32_precision`: once that is written, reading the older `allow_tf32` is an error.
    """
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    fp32 = "tf32" if name == "tf32" else "ieee"
    wanted = (
        (matmul, "fp32_precision", fp32),
        (cudnn.conv, "fp32_precision", fp32),
        (matmul, "allow_fp16_reduced_precision_reduction", False),  # else split-K may add up in fp16
        (matmul, "allow_bf16_reduced_precision_reduction", False),
        (cudnn, "benchmark", True),
    )
    before = [(owner, attribute, getattr(owner, attribute)) for owner, attribute, _ in wanted]
    try:
        for owner, attribute, value in wanted:
            setattr(owner, attribute, value)
        yield
    finally:
        for owner, attribute, value in before:
            setattr(owner, attribute, value)


def precision_of(problem, device):
    """What torch computes the problem in: TF32 exists only on GPUs from sm_80 on, elsewhere torch stays at fp32."""
    has_tf32 = device.type == "cuda" and torch.cuda.get_device_capability(device) >= (8, 0)
    return "ieee" if problem.precision == "tf32" and not has_tf32 else problem.precision


def gemm(a, b, c=None, *, alpha=1.0, beta=0.0, out):
    return torch.addmm(out if c is None else c, a, b, alpha=alpha, beta=beta, out=out)  # beta = 0 never reads its addend


def gemv(a, x, y=None, *, alpha=1.0, beta=0.0, scale=None, out):
    if scale is not None:
        raise UnsupportedError("torch multiplies no int8 weights with a floating-point vector")
    if a.ndim == 2 and x.ndim == 1:
        return torch.addmv(out if y is None else y, a, x, alpha=alpha, beta=beta, out=out)
    if a.ndim != 3 or x.ndim != 2:
        raise UnsupportedError(f"torch.baddbmm wants a batch of matrices and one of vectors; got rank {a.ndim} and {x.ndim}")
    column = out if y is None else y.expand(out.shape)
    return torch.baddbmm(column[..., None], a, x[..., None], alpha=alpha, beta=beta, out=out[..., None])[..., 0]


def conv2d(input, weight, bias=None, *, out, **options):
    return torch.conv2d(input, weight, bias, **options)


def matmul(a, b, *, precision=None, out_dtype=None, out):
    if out.dtype == a.dtype:
        return torch.matmul(a, b, out=out)
    if a.device.type == "cpu":  # no mixed products there; products of upcast operands are exact all the same
        return torch.matmul(a.to(out.dtype), b.to(out.dtype), out=out)
    if a.ndim != 2 or b.ndim != 2:
        raise UnsupportedError(f"torch multiplies {a.dtype} into {out.dtype} for matrices only, not for batches")
    if a.dtype != torch.int8:
        return torch.mm(a, b, out_dtype=out.dtype, out=out)
    m, k, n = *a.shape, b.shape[1]
    if m <= 16 or k % 8 or n % 8:
        raise UnsupportedError(f"torch._int_mm wants M > 16 and N, K divisible by 8; got M={m}, N={n}, K={k}")
    try:
        return torch._int_mm(a, b, out=out)  # torch has no public product of int8
    except RuntimeError as error:
        if "NOT_SUPPORTED" in str(error):  # cuBLASLt has int8 for some layouts and sizes only, and tells by failing
            raise UnsupportedError(f"torch._int_mm on these operands: {str(error).splitlines()[0][:120]}") from error
        raise


# operation -> (the name of torch's function, the call, whether it writes `out`)
BASELINES = {
    "gemm": ("addmm", gemm, True),
    "gemv": ("addmv", gemv, True),
    "conv2d": ("conv2d", conv2d, False),
    "matmul": ("matmul", matmul, True),
}
