"""Arithmetic of sizes. Triton's cdiv and next_power_of_2 take the host twenty times as long: they look for constexprs."""


def ceil_div(a, b):
    return -(-a // b)


def next_power_of_2(size):
    """The least power of two that is not below `size`."""
    return 1 << max(0, size - 1).bit_length()


def power_and_rest(size, most):
    """(the greatest power of two in it, but `most` at most; the rest), as Gluon's tiles are powers of two."""
    power = min(most, 1 << size.bit_length() - 1)
    return power, size - power
