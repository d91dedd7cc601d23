"""Winograd's transforms along one axis: a line of values at the pixels or taps to one at the points, and back.

B^T, G and A^T of cook_toom.py, by their symmetry in +-p: even and odd terms of a point are summed once for both signs.
"""

from ...language.triton import tl, triton

# The points of four outputs are 0, +-A, +-B and infinity. Constants are right of tensors, as the interpreter requires.
A, B, AA, BB, AABB = (tl.constexpr(x) for x in (5 / 8, 3 / 2, 25 / 64, 9 / 4, 225 / 256))
NEAR_0, NEAR_A, NEAR_B = (tl.constexpr(x) for x in (256 / 225, -2048 / 2975, 128 / 1071))  # 1 / N of 0, of +-A, of +-B


@triton.jit
def of_inputs(d, OUTPUTS: tl.constexpr):
    """B^T d of OUTPUTS + 2 pixels."""
    if OUTPUTS == 2:
        return d[2] - d[0], d[1] + d[2], d[2] - d[1], d[3] - d[1]
    else:
        even_a = d[4] - d[2] * BB
        even_b = d[4] - d[2] * AA
        odd_a = d[3] - d[1] * BB
        odd_b = d[3] - d[1] * AA
        first = d[0] * AABB - d[2] * (AA + BB) + d[4]
        last = d[1] * AABB - d[3] * (AA + BB) + d[5]
        return first, even_a + odd_a * A, even_a - odd_a * A, even_b + odd_b * B, even_b - odd_b * B, last


@triton.jit
def of_taps(g, OUTPUTS: tl.constexpr):
    """G g of three taps."""
    if OUTPUTS == 2:
        return -g[0], 0.5 * (g[0] + g[2] + g[1]), 0.5 * (g[0] + g[2] - g[1]), g[2]
    else:
        even_a = g[0] + g[2] * AA
        even_b = g[0] + g[2] * BB
        at_a = (even_a + g[1] * A) * NEAR_A
        at_b = (even_b + g[1] * B) * NEAR_B
        return g[0] * NEAR_0, at_a, (even_a - g[1] * A) * NEAR_A, at_b, (even_b - g[1] * B) * NEAR_B, g[2]


@triton.jit
def to_outputs(m, OUTPUTS: tl.constexpr):
    """A^T m of OUTPUTS + 2 points."""
    if OUTPUTS == 2:
        return m[0] + m[1] + m[2], m[1] - m[2] + m[3]
    else:
        even_a = m[1] + m[2]
        even_b = m[3] + m[4]
        odd_a = m[1] - m[2]
        odd_b = m[3] - m[4]
        last = odd_a * (A * AA) + odd_b * (B * BB) + m[5]
        return m[0] + even_a + even_b, odd_a * A + odd_b * B, even_a * AA + even_b * BB, last


@triton.jit
def across(lines, i: tl.constexpr):
    """The i-th values of all lines, a line of the other axis."""
    line = ()
    for j in tl.static_range(len(lines)):
        line += (lines[j][i],)
    return line
