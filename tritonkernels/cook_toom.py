"""Winograd's convolutions by their matrices: M outputs of 3 taps from M + 2 products, and bounds on the sizes of their
operands.

y = A^T [(G g) * (B^T d)] along an axis: d are M + 2 inputs, g three taps, * is elementwise; in two dimensions every matrix
stands on both sides. The matrices follow from M + 1 points p and infinity (A. Toom 1963, S. Cook 1966, S. Winograd 1980). With
P the product of all (x - p_j) and N_i that of all (p_i - p_j), j != i: row i of B^T has the coefficients of P / (x - p_i), row
i of G is (1, p_i, p_i^2) / N_i, column i of A^T (1, p_i, p_i^2, ...); infinity adds P, (0, 0, 1) and (0, ..., 0, 1).

The points decide the error. A. Lavin and S. Gray (Fast algorithms for convolutional neural networks, 2016) take 0, +-1, +-2 for
four outputs; other small fractions round better (K. Vincent et al., On improving the numerical stability of Winograd
convolutions, 2017; B. Barabasz et al., Error analysis and improving the accuracy of Winograd convolution for deep neural
networks, 2020). Of all 0, +-a, +-b in eighths, a = 5/8 and b = 3/2 are among the three where S' of the error bound
(docs/numerics.md) exceeds the direct sum's S least in the worst case, with the same number of operations: 71 times on normal
data, against 297 for Lavin's points. A and B are dyadic and exact.
"""

import functools
from dataclasses import dataclass
from fractions import Fraction

import torch

POINTS = {
    2: (0, 1, -1),
    4: (0, Fraction(5, 8), Fraction(-5, 8), Fraction(3, 2), Fraction(-3, 2)),
}
ROUNDINGS = {2: (2, 1, 2), 4: (4, 4, 5)}  # of a term of a line of A, B, G in our kernels, G's constants included
TINY = 16  # subnormals that may be lost to underflow in the transforms of a filter or a tile of inputs; twice as many in A's


@dataclass(frozen=True)
class Transform:
    """F(M x M, 3 x 3), in float64: AT (M, M + 2), G (M + 2, 3) and BT (M + 2, M + 2)."""

    outputs: int
    AT: torch.Tensor
    G: torch.Tensor
    BT: torch.Tensor

    @property
    def points(self):
        """Products along an axis."""
        return self.outputs + 2

    @property
    def roundings(self):
        """How many roundings a product has in the transforms, both axes of each."""
        return 2 * sum(ROUNDINGS[self.outputs])

    def sizes(self, problem, input, weight):
        """(U, V) = (|G| |g| |G^T|, |B^T| |d| |B|): bounds on the sizes of transformed filters and tiles of inputs."""
        m, (above, left), groups = self.outputs, problem.padding, problem.groups
        rows, cols = (-(-size // m) * m + 2 for size in (problem.p, problem.q))
        margins = (left, cols - left - problem.w, above, rows - above - problem.h)
        padded = torch.nn.functional.pad(input.abs(), margins)  # a negative margin crops what no tile reads
        tiles = padded.unfold(-2, self.points, m).unfold(-2, self.points, m)
        inputs = _both_sides(self.BT.abs(), tiles.reshape(problem.n, groups, problem.c // groups, *tiles.shape[-4:]))
        filters = _both_sides(self.G.abs(), weight.abs())
        return filters.reshape(groups, problem.k // groups, *filters.shape[1:]), inputs

    def spread(self, problem, filters, inputs):
        """|A^T| (sum over c of U V) |A|: their size in every output, from U of filters and V of inputs."""
        sums = torch.einsum("gkcij,ngcpqij->ngkpqij", filters, inputs)
        tiles = _both_sides(self.AT.abs(), sums).transpose(-2, -3)  # (..., TP, M, TQ, M)
        planes = tiles.reshape(problem.n, problem.k, tiles.shape[-4] * self.outputs, tiles.shape[-2] * self.outputs)
        return planes[..., : problem.p, : problem.q]


def _both_sides(matrix, t):
    matrix = matrix.to(t.device)
    return matrix @ t @ matrix.T


@functools.cache
def transform(outputs):
    """The Transform of F(outputs x outputs, 3 x 3)."""
    points, of_all = [Fraction(p) for p in POINTS[outputs]], (Fraction(1),)
    for p in points:
        of_all = _times(of_all, p)
    AT = [[*(p**i for p in points), i == outputs - 1] for i in range(outputs)]
    G, BT = [], []
    for p in points:
        scale, product = Fraction(1), (Fraction(1),)
        for other in points:
            if other != p:
                scale, product = scale * (p - other), _times(product, other)
        G.append([p**i / scale for i in range(3)])
        BT.append([*product, 0])
    matrices = AT, [*G, [0, 0, 1]], [*BT, of_all]
    as_floats = ([[float(x) for x in row] for row in matrix] for matrix in matrices)
    return Transform(outputs, *(torch.tensor(rows, dtype=torch.float64) for rows in as_floats))


def _times(polynomial, root):
    """The coefficients, lowest first, of polynomial * (x - root)."""
    shifted = (Fraction(0), *polynomial)
    return tuple(high - root * low for high, low in zip(shifted, (*polynomial, Fraction(0))))
