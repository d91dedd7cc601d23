"""A vertical run of outputs slides down a column of inputs: each input is loaded once and multiplied by up to R taps.

Rows and taps are unrolled (except in `depthwise`), so that the compiler knows each input's taps at any stride.
"""

from ...language.dot import widened
from ...language.tiles import span
from ...language.triton import tl, triton


@triton.jit
def place_of_runs(block, RUN: tl.constexpr, BLOCK: tl.constexpr, g, WIDE: tl.constexpr):
    """(image, first row, column) of a block of runs of RUN outputs, the column fastest."""
    runs = tl.cdiv(g.P, RUN)
    if WIDE:
        block = block.to(tl.int64)
    index = span(block * BLOCK, BLOCK, WIDE)
    q = index % g.Q
    p = index // g.Q % runs * RUN
    return index // g.Q // runs, p, q


@triton.jit
def blocks_of_program(g, BLOCK_K: tl.constexpr, CHANNELS_INSIDE: tl.constexpr):
    """(block of runs, block of output channels) of a program: channels are fastest where they lie side by side, else runs."""
    program = tl.program_id(0)
    if CHANNELS_INSIDE:
        blocks = tl.cdiv(g.K, BLOCK_K)
        block_k = program % blocks
        block = program // blocks
    else:
        blocks = tl.num_programs(0) // tl.cdiv(g.K, BLOCK_K)
        block = program % blocks
        block_k = program // blocks
    return block, block_k


@triton.jit
def split_last(x, COUNT: tl.constexpr):
    """x (.., .., COUNT) as a tuple of COUNT tensors (.., .., 1)."""
    if COUNT == 1:
        return (x,)
    elif COUNT == 2:
        even, odd = tl.split(x)
        return tl.expand_dims(even, 2), tl.expand_dims(odd, 2)
    else:
        even, odd = tl.split(tl.reshape(x, (x.shape[0], x.shape[1], 2, 2)))
        x0, x2 = tl.split(even)
        x1, x3 = tl.split(odd)
        return tl.expand_dims(x0, 2), tl.expand_dims(x1, 2), tl.expand_dims(x2, 2), tl.expand_dims(x3, 2)


@triton.jit
def zero_sums(SHAPE: tl.constexpr, RUN: tl.constexpr, SUMS: tl.constexpr):
    """The initial sums of a run, a tuple."""
    sums = ()
    for _ in tl.static_range(RUN):
        sums += (tl.zeros(SHAPE, SUMS),)
    return sums


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
def add_products(acc, x, taps, AT: tl.constexpr, STEP: tl.constexpr, DILATION: tl.constexpr):
    """Adds the inputs x times taps to the sums of a run, a tuple. AT: the row of x, from the first output's first tap on."""
    sums = ()
    for i in tl.static_range(len(acc)):
        if i * STEP <= AT and AT - i * STEP <= (len(taps) - 1) * DILATION and (AT - i * STEP) % DILATION == 0:
            sums += (acc[i] + x * taps[(AT - i * STEP) // DILATION],)
        else:
            sums += (acc[i],)
    return sums
