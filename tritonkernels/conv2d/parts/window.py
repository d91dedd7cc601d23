"""The window of inputs that four neighbouring outputs share: down H in `depthwise`, along W in `register_blocked`. It slides by
one from tap to tap where taps are as far apart as outputs."""

from ...language.dot import widened
from ...language.triton import tl, triton


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


@triton.jit
def multiply_column(
    acc, column_ptrs, h, inside, tap_ptrs, k_inside, step, tap_step, g, TAPS: tl.constexpr, SLIDES: tl.constexpr
):
    """The sums of four outputs below each other after a column of R taps, TAPS of them unrolled, so that all their loads are in
    flight together: TAPS divides R. SLIDES: the window does. h: the row of the first output's first tap."""
    if SLIDES:
        window = load_window(column_ptrs, h, g.step_h, 3, step, inside, g.H)
    for first_r in range(0, g.R, TAPS):
        for r in tl.static_range(TAPS):
            at = h + (first_r + r) * g.dilation_h
            if not SLIDES:
                window = load_window(column_ptrs, at, g.step_h, 3, step, inside, g.H)
            window += load_window(column_ptrs, at + 3 * g.step_h, 0, 1, step, inside, g.H)
            tap = widened(tl.load(tap_ptrs, mask=k_inside, other=0), acc[0].dtype)[None, :]
            acc = multiplied(acc, window, tap, acc[0].dtype)
            window = window[1:]
            tap_ptrs += tap_step
    return acc
