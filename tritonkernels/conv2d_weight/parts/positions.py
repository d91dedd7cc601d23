"""Where the pixels of a slice of positions are, counted on from slice to slice over the ends of rows and images."""

from typing import Any, NamedTuple

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from ...language.gluon_tile import wide


@gluon.jit
def channels_from(first, columns, channels, CHUNK: gl.constexpr):
    """Offsets of channels; those of chunks behind the last are in that one: nobody stores their sums."""
    return gl.minimum(first + columns, (channels - 1) // CHUNK * CHUNK + columns % CHUNK)


class Positions(NamedTuple):
    """Positions' images, their first taps' places there, offsets of these and of grad_output."""

    image: Any
    h: Any
    w: Any
    input: Any
    grad: Any


@gluon.jit
def positions(first, input, grad, g, BOX: gl.constexpr, LAYOUT: gl.constexpr, WIDE: gl.constexpr):
    """Where the pixels of a slice of positions are."""
    position = first * BOX + gl.arange(0, BOX, LAYOUT)
    n = position // g.Q // g.P
    p = position // g.Q % g.P
    q = position % g.Q
    h = p * g.step_h - g.padding_h
    w = q * g.step_w - g.padding_w
    of_input = wide(n, WIDE) * input.n + wide(h, WIDE) * input.h + wide(w, WIDE) * input.w
    return Positions(n, h, w, of_input, wide(n, WIDE) * grad.n + wide(p, WIDE) * grad.h + wide(q, WIDE) * grad.w)


@gluon.jit
def advance(input, grad, g, BOX: gl.constexpr, WIDE: gl.constexpr):
    """(how far the next slice's positions are, what the end of a row adds, and that of an image)."""
    n = wide(BOX // g.Q // g.P, WIDE)
    p = wide(BOX // g.Q % g.P, WIDE)
    q = wide(BOX % g.Q, WIDE)
    row = g.step_h * wide(input.h, WIDE)
    pixel = g.step_w * wide(input.w, WIDE)
    grad_row = wide(grad.h, WIDE)
    step = Positions(n, p * g.step_h, q * g.step_w, n * input.n + p * row + q * pixel, n * grad.n + p * grad.h + q * grad.w)
    of_row = Positions(0, g.step_h, -g.Q * g.step_w, row - g.Q * pixel, grad_row - g.Q * wide(grad.w, WIDE))
    of_image = Positions(1, -g.P * g.step_h, 0, input.n - g.P * row, grad.n - g.P * grad_row)
    return step, of_row, of_image


@gluon.jit
def moved(at, step, where):
    """Positions, of which some are moved by a step."""
    return Positions(
        at.image + gl.where(where, step.image, 0).to(gl.int32),
        at.h + gl.where(where, step.h, 0).to(gl.int32),
        at.w + gl.where(where, step.w, 0).to(gl.int32),
        at.input + gl.where(where, step.input, 0),
        at.grad + gl.where(where, step.grad, 0),
    )
