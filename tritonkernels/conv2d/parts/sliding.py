"""A run of outputs below each other slides down a column of inputs: each input is loaded once and meets up to R taps.

Everything is unrolled, so that which tap an input meets for which output is known when the kernel is compiled, at any step.
"""

import triton
import triton.language as tl

from ...language.dot import widened


@triton.jit
def column_of_taps(tap_ptrs, step, inside, R: tl.constexpr, SUMS: tl.constexpr):
    """R taps, `step` apart, as a tuple; all of them where `inside` is None."""
    taps = ()
    for _ in tl.static_range(R):
        tap = tl.load(tap_ptrs) if inside is None else tl.load(tap_ptrs, mask=inside, other=0)
        taps += (widened(tap, SUMS),)
        tap_ptrs += step
    return taps


@triton.jit
def met(acc, x, taps, AT: tl.constexpr, STEP: tl.constexpr, DILATION: tl.constexpr):
    """The sums of a run, a tuple, after the inputs of row AT, counted from the first output's first tap."""
    sums = ()
    for i in tl.static_range(len(acc)):
        if i * STEP <= AT and AT - i * STEP <= (len(taps) - 1) * DILATION and (AT - i * STEP) % DILATION == 0:
            sums += (acc[i] + x * taps[(AT - i * STEP) // DILATION],)
        else:
            sums += (acc[i],)
    return sums
