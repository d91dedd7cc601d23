"""Which design for which convolution: rules, each with its reason. Pure functions of (problem, target), for both packages."""

TILE_H, TILE_W = 4, 8  # of `direct`


def busy_lanes(problem, tile_h, tile_w):
    """The share of a tile's positions that are outputs, over all tiles of a plane."""
    tiles = -(-problem.p // tile_h) * -(-problem.q // tile_w)
    return problem.p * problem.q / (tiles * tile_h * tile_w) if tiles else 1.0


def prefer(problem, target):
    """The design that wastes least.

    - naive, where tiles of 4 x 8 outputs would be mostly empty (a filter almost as large as the image): its lanes are not idle.
    - direct: an input that is fetched serves all taps and several output channels.
    """
    if busy_lanes(problem, TILE_H, TILE_W) < 0.25:
        return "naive"
    return "direct"
