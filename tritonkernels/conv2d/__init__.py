"""Two-dimensional convolution (cross-correlation, as in torch), products and sums in IEEE fp32 or fp64."""

import torch

from .. import validate
from ..errors import ArgumentError, ShapeError
from ..launch import LIBRARY
from ..library import Call
from ..problem import FLOAT_PRECISION, Conv2dProblem, needs_wide_offsets
from .regime import prefer as prefer

DESIGNS = ("naive", "depthwise", "direct", "prefetched", "register_blocked", "winograd")

DTYPES = tuple(FLOAT_PRECISION)  # float16, bfloat16, float32, float64


def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, *, out=None, design=None, config=None):
    """The convolution of torch.nn.functional.conv2d, with its arguments and semantics.

    input   (N, C, H, W) or (C, H, W), any strides (channels_last is answered in channels_last): float32, float16,
            bfloat16, all three with products and sums in IEEE fp32, or float64
    weight  (K, C / groups, R, S) of input's dtype, any strides
    bias    (K,) of input's dtype, or None
    stride, dilation  an int or a pair, at least 1
    padding an int or a pair, at least 0, of zeros on both sides; or "valid" (none), or "same" (stride 1 only: the result has
            the size of the input, the odd row or column of zeros below or to the right)
    groups  divides C and K
    out     (N, K, P, Q) (or unbatched) of input's dtype to write into; must not overlap an input. Default: a new tensor
    design  a name from designs("conv2d"); default: chosen for the problem (`regime.prefer`)
    config  one of the design's configs, or a dict of some of its numbers; default: chosen for the problem

    P = (H + padding above and below - dilation * (R - 1) - 1) // stride + 1, Q likewise. N, C and K may be 0. Error,
    elementwise: gamma(C / groups * R * S + 4) * (|input| conv |weight| + |bias|) plus the one rounding of the result,
    u = 2^-24 for float32, 2^-23 for 16-bit types, 2^-53 for float64 (`numerics.error_bound`). The design "winograd" is never
    chosen unasked: its bound is another, for tiles of 4 x 4 about 6 times this one at 64 channels (numerics.py derives it).
    Raises as `gemm` does, before anything is launched.

    Source: "a hand-written CUDA convolution" (conv2d_direct).
    """
    return LIBRARY.call(prepare, **locals())


def prepare(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, *, out=None):
    """Validate conv2d's arguments into a Call whose one part is (input, weight, bias or None, out), batched."""
    input = validate.tensor("input", input, dtypes=DTYPES, ranks=(3, 4))
    weight = validate.tensor("weight", weight, dtypes=DTYPES, ranks=(4,), like=("input", input))
    (c, h, w), (k, c_per_group, r, s) = input.shape[-3:], weight.shape
    if bias is not None:
        bias = validate.tensor("bias", bias, dtypes=DTYPES, ranks=(1,), like=("input", input))
        if bias.shape[0] != k:
            raise ShapeError("bias", tuple(bias.shape), f"({k},), one value per output channel of weight")
    if isinstance(groups, bool) or not isinstance(groups, int) or groups < 1:
        raise ArgumentError("groups", repr(groups), "an int, at least 1")
    if c % groups or k % groups:
        raise ArgumentError("groups", groups, f"a divisor of the input's {c} channels and the weight's {k} output channels")
    if c_per_group != c // groups:
        allowed = f"(K, {c // groups}, R, S): the input's {c} channels over groups={groups}"
        raise ShapeError("weight", f"shape {tuple(weight.shape)}", allowed)
    if r == 0 or s == 0:
        raise ShapeError("weight", f"shape {tuple(weight.shape)}", "a filter of at least 1 x 1")
    stride, dilation = validate.pair("stride", stride, 1), validate.pair("dilation", dilation, 1)
    before, after = _padding(padding, stride, dilation, (r, s))
    padded = [size + b + a for size, b, a in zip((h, w), before, after)]
    extent = [d * (taps - 1) + 1 for d, taps in zip(dilation, (r, s))]
    if any(e > p for e, p in zip(extent, padded)):
        allowed = f"at most the padded input's {padded[0]} x {padded[1]}"
        raise ShapeError("weight", f"a dilated filter of {extent[0]} x {extent[1]}", allowed)
    p, q = ((total - e) // step + 1 for total, e, step in zip(padded, extent, stride))
    validate.no_gradient("conv2d", input=input, weight=weight, bias=bias)

    batched = input if input.ndim == 4 else input[None]
    n = batched.shape[0]
    channels_last = input.ndim == 4 and any(_is_channels_last(t) for t in (input, weight))
    shape = validate.fits((n, k, p, q) if input.ndim == 4 else (k, p, q))
    memory_format = torch.channels_last if channels_last else torch.contiguous_format
    out = validate.result(out, shape, input.dtype, input.device, memory_format, input=input, weight=weight, bias=bias)
    batched_out = out if out.ndim == 4 else out[None]
    problem = Conv2dProblem(
        dtype=input.dtype,
        out_dtype=input.dtype,
        precision=FLOAT_PRECISION[input.dtype],
        wide=needs_wide_offsets(batched, weight, bias, batched_out),
        n=n,
        c=c,
        h=h,
        w=w,
        k=k,
        r=r,
        s=s,
        p=p,
        q=q,
        stride=stride,
        padding=before,
        dilation=dilation,
        groups=groups,
        has_bias=bias is not None,
        channels_last=channels_last,
    )
    return Call(problem, ((batched, weight, bias, batched_out),), out)


def _padding(padding, stride, dilation, taps):
    """((above, left), (below, right)); "same" puts the odd one below and right, as torch does."""
    if isinstance(padding, str):
        if padding == "valid":
            return (0, 0), (0, 0)
        if padding != "same":
            raise ArgumentError("padding", repr(padding), "'valid', 'same', an int or a pair of ints, at least 0")
        if stride != (1, 1):
            raise ArgumentError("padding", "'same'", "'same' with stride 1 only", "Pass the padding as numbers.")
        total = [d * (t - 1) for d, t in zip(dilation, taps)]
        before = tuple(t // 2 for t in total)
        return before, tuple(t - b for t, b in zip(total, before))
    both = validate.pair("padding", padding, 0)
    return both, both


def _is_channels_last(t):
    return t.is_contiguous(memory_format=torch.channels_last) and not t.is_contiguous()
