"""The geometry of a convolution, shared with its gradients: checks sizes against each other, and derives the others."""

from ... import validate
from ...errors import ArgumentError, ShapeError
from ...problem import LARGEST_TILE, differ, holds, is_known


def geometry(input_shape, weight_shape, stride, padding, dilation, groups, *, input="input", weight="weight"):
    """The fields of a Conv2dProblem that sizes decide, given (..., C, H, W) and (K, C / groups, R, S).

    `input` and `weight` are the names of the arguments that the shapes come from.
    """
    *images, c, h, w = input_shape
    k, c_per_group, r, s = weight_shape
    groups = validate.groups(groups)
    if holds(c % groups != 0) or holds(k % groups != 0):
        allowed = f"a divisor of the input's {c} channels and the weight's {k} output channels"
        raise ArgumentError("groups", groups, allowed, "Pass groups=1, or other numbers of channels.")
    if differ(c_per_group, c // groups):
        allowed = f"(K, {c // groups}, R, S): the input's {c} channels over groups={groups}"
        raise ShapeError(weight, f"shape {tuple(weight_shape)}", allowed, "Pass such a weight, or other groups.")
    if holds(r == 0) or holds(s == 0):
        raise ShapeError(weight, f"shape {tuple(weight_shape)}", "a filter of at least 1 x 1", "Pass a weight with a tap.")
    stride, dilation = validate.pair("stride", stride, 1), validate.pair("dilation", dilation, 1)
    before, after = _padding(padding, stride, dilation, (r, s))
    for size, b, a, step, apart in zip((h, w), before, after, stride, dilation):
        _check_reach(size, b + a, step, apart)
    padded = [size + b + a for size, b, a in zip((h, w), before, after)]
    extent = [d * (taps - 1) + 1 for d, taps in zip(dilation, (r, s))]
    if any(holds(e > p) for e, p in zip(extent, padded)):
        allowed = f"at most the padded input's {padded[0]} x {padded[1]}"
        raise ShapeError(weight, f"a dilated filter of {extent[0]} x {extent[1]}", allowed, "Pass more padding.")
    p, q = ((total - e) // step + 1 for total, e, step in zip(padded, extent, stride))
    sizes = {"n": images[0] if images else 1, "c": c, "h": h, "w": w, "k": k, "r": r, "s": s, "p": p, "q": q}
    return sizes | {"stride": stride, "padding": before, "dilation": dilation, "groups": groups}


def _check_reach(size, padding, step, apart):
    """Bounds stride, padding and dilation together, so that every row and column that a kernel computes fits 32 bits.

    The inputs of outputs and taps that exist lie in the padded image. A kernel's last tile is up to LARGEST_TILE outputs and as
    many taps longer, whose inputs it computes too, and finds outside.
    """
    reach = size + padding + LARGEST_TILE * (step + apart)
    if is_known(reach) and reach >= 2**31:
        parts = {"stride": LARGEST_TILE * step, "padding": padding, "dilation": LARGEST_TILE * apart}
        argument = max(parts, key=parts.get)
        allowed = f"values with which size + padding on both sides + {LARGEST_TILE} (stride + dilation) is below 2^31"
        remedy = "Pass less. For a single output every stride is the same, for a single tap every dilation."
        raise ArgumentError(argument, f"{reach} in all for a size of {size}", allowed, remedy)


def _padding(padding, stride, dilation, taps):
    """((above, left), (below, right)); "same" puts the odd one below and right, as torch does."""
    if isinstance(padding, str):
        if padding == "valid":
            return (0, 0), (0, 0)
        if padding != "same":
            allowed = "'valid', 'same', an int or a pair of ints, at least 0"
            raise ArgumentError("padding", repr(padding), allowed, "Pass padding=0 for none.")
        if stride != (1, 1):
            raise ArgumentError("padding", "'same'", "'same' with stride 1 only", "Pass the padding as numbers.")
        total = [d * (t - 1) for d, t in zip(dilation, taps)]
        before = tuple(t // 2 for t in total)
        return before, tuple(t - b for t, b in zip(total, before))
    both = validate.pair("padding", padding, 0)
    return both, both
