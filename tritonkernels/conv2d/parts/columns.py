"""Columns (r, s, c) of the filters as a matrix, counted on from slice to slice."""

from ...language.triton import tl, triton


@triton.jit
def next_slice(at, step, S, CHANNELS):
    """(c, s, r) of the next slice: digits of a number, the lowest first, added with carries."""
    c, s, r = at
    step_c, step_s, step_r = step
    c += step_c
    carry = c >= CHANNELS
    c = tl.where(carry, c - CHANNELS, c)
    s += step_s + carry
    carry = s >= S
    s = tl.where(carry, s - S, s)
    return c, s, r + step_r + carry
