"""Columns (r, s, c) of the filters as a matrix, counted on from slice to slice."""

from ...language.triton import tl, triton


@triton.jit
def next_slice(r, s, c, step_r, step_s, step_c, S, CHANNELS):
    """(r, s, c) of the next slice: digits of a number, added with carries."""
    c += step_c
    carry = c >= CHANNELS
    c = tl.where(carry, c - CHANNELS, c)
    s += step_s + carry
    carry = s >= S
    s = tl.where(carry, s - S, s)
    return r + step_r + carry, s, c
