"""torch's functions for each operation, at the requested precision: cuBLAS and cuDNN on a GPU.

Each baseline has the signature of its user function. They write `out` where torch can; torch.conv2d returns a new tensor from
torch's caching allocator.
"""

import contextlib

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from tritonkernels.errors import UnsupportedError
from tritonkernels.numerics import activated
from tritonkernels.operations.matmul.schemes import SCHEMES
from tritonkernels.problem import GATED, PACKED
from tritonkernels.validate import beta_of

SPLIT = tuple(SCHEMES)  # modes for fp32 products that torch lacks: it runs in ieee


@contextlib.contextmanager
def precision(name):
    """A context in which torch multiplies as `name` says, accumulates in fp32 and picks cuDNN's fastest algorithm.

    Matrix products and convolutions each have a TF32 switch, with opposite defaults, so both are set. They are set through
    `fp32_precision`: once that is written, reading the older `allow_tf32` is an error.
    """
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    fp32 = "tf32" if name == "tf32" else "ieee"
    settings = (
        (matmul, "fp32_precision", fp32),
        (cudnn.conv, "fp32_precision", fp32),
        (matmul, "allow_fp16_reduced_precision_reduction", False),  # else split-K may add up in fp16
        (matmul, "allow_bf16_reduced_precision_reduction", False),
        (cudnn, "benchmark", True),
    )
    with switched(settings):
        yield


@contextlib.contextmanager
def switched(settings):
    """A context with torch's switches set: (owner, attribute, value) each."""
    before = [(owner, attribute, getattr(owner, attribute)) for owner, attribute, _ in settings]
    try:
        for owner, attribute, value in settings:
            setattr(owner, attribute, value)
        yield
    finally:
        for owner, attribute, value in before:
            setattr(owner, attribute, value)


def precision_of(problem, device):
    """The precision in which torch computes the problem: TF32 exists only on GPUs from sm_80 on, elsewhere torch uses fp32."""
    has_tf32 = device.type == "cuda" and torch.cuda.get_device_capability(device) >= (8, 0)
    return "ieee" if problem.precision == "tf32" and not has_tf32 else yardstick(problem.precision)


def yardstick(precision):
    """torch's precision for a fair comparison: fp32 for a split mode, which replaces it."""
    return "ieee" if precision in SPLIT else precision


def gemm(a, b, c=None, *, alpha=1.0, beta=None, out):
    beta = beta_of(beta, c)
    return torch.addmm(out if c is None else c, a, b, alpha=alpha, beta=beta, out=out)  # beta = 0 never reads its addend


def gemv(a, x, y=None, *, alpha=1.0, beta=None, scale=None, out):
    beta = beta_of(beta, y)
    if scale is not None:
        raise UnsupportedError("torch cannot multiply int8 weights with a floating-point vector")
    if a.ndim == 2 and x.ndim == 1:
        return torch.addmv(out if y is None else y, a, x, alpha=alpha, beta=beta, out=out)
    if a.ndim != 3 or x.ndim != 2:
        raise UnsupportedError(
            f"torch.baddbmm needs a batch of matrices and a batch of vectors; got rank {a.ndim} and {x.ndim}"
        )
    column = out if y is None else y.expand(out.shape)
    return torch.baddbmm(column[..., None], a, x[..., None], alpha=alpha, beta=beta, out=out[..., None])[..., 0]


def conv2d(input, weight, bias=None, *, precision=None, out, **options):
    return torch.conv2d(input, weight, bias, **options)


def conv2d_input(input_size, weight, grad_output, *, precision=None, out, **options):
    return torch.nn.grad.conv2d_input(input_size, weight, grad_output, **options)


def conv2d_weight(input, weight_size, grad_output, *, precision=None, out, **options):
    return torch.nn.grad.conv2d_weight(input, weight_size, grad_output, **options)


def conv2d_bias(grad_output, *, out):
    return torch.sum(grad_output, (-1, -2, 0) if grad_output.ndim == 4 else (-1, -2), out=out)


_filters = WeakTensorKeyDictionary()  # each converted to the other layout once, as a caller would do


def renew():
    """Bring what is kept of operands up to date with them, after they were written in place."""
    for weight, converted in _filters.items():
        converted.copy_(weight)


def _layouts(image):
    """The layout of a batch of images, and the other one."""
    if image.ndim != 4 or image.is_contiguous() == image.is_contiguous(memory_format=torch.channels_last):
        raise UnsupportedError("the image has no other layout: it is not a batch, or in both layouts, or in neither")
    both = torch.contiguous_format, torch.channels_last
    return both if image.is_contiguous() else both[::-1]


def _filters_in(layout, weight):
    if weight.is_contiguous(memory_format=layout):  # as those of one channel are in both
        return weight
    if weight not in _filters:
        _filters[weight] = weight.contiguous(memory_format=layout)
    return _filters[weight]


def conv2d_in_the_other_layout(input, weight, bias=None, *, precision=None, out, **options):
    """conv2d in channels_last where the operands are NCHW, and vice versa; the call converts the image and the result."""
    own, other = _layouts(input)
    result = torch.conv2d(input.contiguous(memory_format=other), _filters_in(other, weight), bias, **options)
    return result.contiguous(memory_format=own)


def conv2d_input_in_the_other_layout(input_size, weight, grad_output, *, precision=None, out, **options):
    own, other = _layouts(grad_output)
    operands = _filters_in(other, weight), grad_output.contiguous(memory_format=other)
    return torch.nn.grad.conv2d_input(input_size, *operands, **options).contiguous(memory_format=own)


def conv2d_weight_in_the_other_layout(input, weight_size, grad_output, *, precision=None, out, **options):
    own, other = _layouts(grad_output)
    image, grad = (t.contiguous(memory_format=other) for t in (input, grad_output))
    return torch.nn.grad.conv2d_weight(image, weight_size, grad, **options).contiguous(memory_format=own)


def linear_over_patches(input, weight, bias=None, *, precision=None, out, stride=1, padding=0, dilation=1, groups=1):
    """Where filters do not overlap, each patch of pixels is a row of a matrix, and the filters are that of torch.nn.Linear."""
    (height, width), steps = weight.shape[2:], (stride, stride) if isinstance(stride, int) else tuple(stride)
    plain = padding in (0, (0, 0), "valid") and dilation in (1, (1, 1)) and groups == 1 and input.ndim == 4
    if not plain or steps != (height, width) or height * width == 1:
        raise UnsupportedError("patches are what filters of more than a pixel cover that do not overlap, without padding")
    last = not input.is_contiguous()  # rows are copied in the order of the filters' memory
    patches = input.unfold(2, height, height).unfold(3, width, width)  # N, C, P, Q, R, S
    order = (0, 2, 3, 4, 5, 1) if last else (0, 2, 3, 1, 4, 5)
    rows, filters = patches.permute(order).flatten(3).flatten(0, 2), (weight.permute(0, 2, 3, 1) if last else weight).flatten(1)
    result = torch.nn.functional.linear(rows, filters, bias)
    images, _, p, q = patches.shape[:4]
    result = result.view(images, p, q, -1).permute(0, 3, 1, 2)
    return result if last else result.contiguous()


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
    scale_a=None,
    scale_b=None,
    out,
):
    """The product by cuBLAS, then the epilogue step by step in fp32: rounding each step to 16 bits would break the bound."""
    beta, scales = beta_of(beta, c), (scale_a, scale_b)
    if alpha == 1 and not beta and bias is None and activation is None:
        return _product(a, b, precision, accumulate, scales, out)
    wide = out if out.dtype.itemsize >= 4 else torch.empty_like(out, dtype=torch.float32)
    if activation in GATED:
        wide = wide.new_empty(*out.shape[:-1], b.shape[-1])
    product = _product(a, b, precision, accumulate, scales, wide)
    if alpha != 1:
        product.mul_(alpha)
    if beta:
        product.add_(c, alpha=beta)
    if bias is not None:
        product += bias
    return out.copy_(activated(product, activation))


def addmm(a, b, *, alpha=1.0, beta=None, c=None, bias=None, activation=None, out, **others):
    """cuBLAS's own epilogue, as torch.nn.Linear uses it: one addend and ReLU, in the kernel of the product; ReLU
    after batches is another kernel."""
    beta, floating = beta_of(beta, c), a.is_floating_point() and a.dtype.itemsize > 1
    alike = a.ndim == b.ndim == 2 or (a.ndim == b.ndim == 3 and len(a) == len(b))
    if not alike or out.dtype != a.dtype or not floating:
        raise UnsupportedError("torch.addmm and baddbmm multiply matrices of floating-point numbers into the same type")
    if bool(beta) == (bias is not None) or activation not in (None, "relu"):
        raise UnsupportedError("torch.addmm adds one addend; of the activations it can be followed by ReLU only")
    addend, beta = (c, beta) if bias is None else (bias, 1.0)
    if a.ndim == 3:
        added = torch.baddbmm(addend, a, b, alpha=alpha, beta=beta, out=out)
        return added if activation is None else added.relu_()
    if activation is None:
        return torch.addmm(addend, a, b, alpha=alpha, beta=beta, out=out)
    if addend.ndim == 1:
        return torch.ops.aten._addmm_activation.out(addend, a, b, alpha=alpha, beta=beta, out=out)
    return torch.addmm(addend, a, b, alpha=alpha, beta=beta, out=out).relu_()


def addmm_and_activation(a, b, *, bias=None, activation=None, beta=None, c=None, out, **others):
    """A torch.nn.Linear and an activation after it: the sum is rounded to the result's type between the two."""
    if activation not in _IN_PLACE or bias is None or beta_of(beta, c):
        raise UnsupportedError("torch.addmm and an activation after it are a sum with a bias, then GELU or SiLU")
    return _IN_PLACE[activation](addmm(a, b, bias=bias, out=out, **others))


_IN_PLACE = {"gelu": torch.ops.aten.gelu_, "silu": torch.ops.aten.silu_}


def matmul_with_fp32_sums(a, b, *, accumulate=None, out, **options):
    """The product of fp8 whose sums are better than it needs: where fast ones will do, torch's others may be faster."""
    if accumulate != "fast":
        raise UnsupportedError("torch has two kinds of sums where fast ones of fp8 will do")
    return matmul(a, b, out=out, **options)


def matmul_by_cublaslt(a, b, *, out, **options):
    """The same by cuBLASLt, torch's other library, whose first proposal is another kernel for some shapes."""
    if out.device.type != "cuda":
        raise UnsupportedError("cuBLASLt multiplies on GPUs")
    before = torch.backends.cuda.preferred_blas_library()
    torch.backends.cuda.preferred_blas_library("cublaslt")
    try:
        return matmul(a, b, out=out, **options)
    finally:
        torch.backends.cuda.preferred_blas_library(before)


def _product(a, b, precision, accumulate, scales, out):
    if precision in PACKED:
        raise UnsupportedError(f"torch cannot multiply packed elements: {precision}")
    if out.dtype == a.dtype:
        return torch.matmul(a, b, out=out)
    if a.device.type == "cpu":  # no mixed products there, but products of upcast operands are just as exact
        wide = torch.float32 if a.dtype.itemsize == 1 and out.dtype.is_floating_point else out.dtype
        product = torch.matmul(a.to(wide), b.to(wide))
        for scale in filter(lambda scale: scale is not None, scales):
            product *= scale
        return out.copy_(product)
    if a.ndim != 2 or b.ndim != 2:
        raise UnsupportedError(f"torch multiplies {a.dtype} into {out.dtype} for matrices only, not for batches")
    if a.dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        return _fp8_product(a, b, scales, accumulate == "fast", out)
    if a.dtype == torch.uint8:
        raise UnsupportedError("torch cannot multiply uint8 on a GPU")
    if a.dtype != torch.int8:
        return torch.mm(a, b, out_dtype=out.dtype, out=out)
    m, k, n = *a.shape, b.shape[1]
    if m <= 16 or k % 8 or n % 8:
        raise UnsupportedError(f"torch._int_mm needs M > 16 and N, K divisible by 8; got M={m}, N={n}, K={k}")
    try:
        return torch._int_mm(a, b, out=out)  # torch has no public product of int8
    except RuntimeError as error:
        if "NOT_SUPPORTED" in str(error):  # cuBLASLt supports int8 only for some layouts and sizes, and otherwise fails
            raise UnsupportedError(f"torch._int_mm on these operands: {str(error).splitlines()[0][:120]}") from error
        raise


def _fp8_product(a, b, scales, fast, out):
    """torch._scaled_mm, torch's only product of fp8; it needs contiguous rows of A and columns of B, and both scales."""
    if a.shape[1] % 16 or b.shape[1] % 16 or a.stride(1) != 1 or b.stride(0) != 1:
        raise UnsupportedError("torch._scaled_mm needs operands contiguous along K, and N and K divisible by 16")
    if a.dtype == b.dtype == torch.float8_e5m2:
        raise UnsupportedError("torch._scaled_mm multiplies e5m2 with e4m3 only")
    rows = any(scale is not None and scale.numel() > 1 for scale in scales)
    if rows and out.dtype != torch.bfloat16:
        raise UnsupportedError(f"torch._scaled_mm with a scale for each row has results in bfloat16, not in {out.dtype}")
    one = torch.ones((), device=a.device)
    scales = [one if scale is None else scale for scale in scales]
    if rows:
        scales = [scale.expand(shape).contiguous() for scale, shape in zip(scales, ((a.shape[0], 1), (1, b.shape[1])))]
    return torch._scaled_mm(a, b, *scales, out_dtype=out.dtype, use_fast_accum=fast, out=out)


# operation -> torch's functions for it: (name, call, whether it writes `out`). Ratios are to the fastest
BASELINES = {
    "gemm": (("addmm", gemm, True),),
    "gemv": (("addmv", gemv, True),),
    "conv2d": (
        ("conv2d", conv2d, False),
        ("conv2d in the other layout", conv2d_in_the_other_layout, False),
        ("linear over patches", linear_over_patches, False),
    ),
    "conv2d_input": (
        ("nn.grad.conv2d_input", conv2d_input, False),
        ("nn.grad.conv2d_input in the other layout", conv2d_input_in_the_other_layout, False),
    ),
    "conv2d_weight": (
        ("nn.grad.conv2d_weight", conv2d_weight, False),
        ("nn.grad.conv2d_weight in the other layout", conv2d_weight_in_the_other_layout, False),
    ),
    "conv2d_bias": (("sum", conv2d_bias, True),),
    "matmul": (
        ("matmul", matmul, True),
        ("addmm", addmm, True),
        ("addmm and activation", addmm_and_activation, True),
        ("matmul with fp32 sums", matmul_with_fp32_sums, True),
        ("matmul by cuBLASLt", matmul_by_cublaslt, True),
    ),
}
STEPWISE = (addmm_and_activation,)  # rounds the sum before the activation, as users' modules do
