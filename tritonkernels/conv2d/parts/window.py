"""The window of inputs that four neighbouring outputs share and that slides from tap to tap: down H in `depthwise`, along W in
`register_blocked`."""

import triton
import triton.language as tl

from ...language.dot import widened


@triton.jit
def load_window(line_ptrs, first, apart, COUNT: tl.constexpr, step, inside, size):
    """COUNT inputs of lines, `apart` from each other from position `first` on, as a tuple; zeros outside of the image."""
    window = ()
    for i in tl.static_range(COUNT):
        at = first + i * apart
        window += (tl.load(line_ptrs + at * step, mask=inside & (at >= 0) & (at < size), other=0),)
    return window


@triton.jit
def multiplied(acc, window, tap, SUMS: tl.constexpr):
    """The sums of as many outputs after a tap, which multiplies an input of the window for each."""
    sums = ()
    for i in tl.static_range(len(acc)):
        sums += (acc[i] + tap * widened(window[i], SUMS),)
    return sums
