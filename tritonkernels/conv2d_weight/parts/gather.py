"""The factors of an element of the weight: grad_output at a position, and the input at its tap there."""

from ...language.position_sums import position
from ...language.triton import tl, triton


@triton.jit
def load_grads(grad, g, at, k, inside):
    """grad_output at positions `at` and channels `k`; their shapes broadcast against each other."""
    image, p, q = position(at, g.P, g.Q)
    return tl.load(grad.ptr + image * grad.n + p * grad.h + q * grad.w + k * grad.c, mask=inside, other=0)


@triton.jit
def place_of_tap(input, g, group, c, r, s):
    """(a channel's offset, row, column) of taps (c, r, s) of a group, as `load_inputs` wants them."""
    return (group * g.c_per_group + c) * input.c, r * g.dilation_h - g.padding_h, s * g.dilation_w - g.padding_w


@triton.jit
def load_inputs(input, g, at, channel, tap_h, tap_w, inside):
    """The inputs at positions `at` of taps (channel's offset, row, column), zeros outside of the image; shapes that broadcast.

    Offsets are added up, not pointers: a lane has many taps, and a pointer takes two registers.
    """
    image, p, q = position(at, g.P, g.Q)
    h = p * g.step_h + tap_h
    w = q * g.step_w + tap_w
    inside = inside & (h >= 0) & (h < g.H) & (w >= 0) & (w < g.W)
    return tl.load(input.ptr + (image * input.n + channel + h * input.h + w * input.w), mask=inside, other=0)
