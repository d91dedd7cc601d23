"""Hypothesis strategies of valid calls. Sizes sit on and around the edges of tiles; layouts are any that torch can express.

`calls_of` draws calls that a design accepts: a 3 x 3 filter for winograd, the precisions of a matmul design.
"""

import functools
import itertools
import math
from dataclasses import replace

import torch
from hypothesis import strategies as st

from tests.cases import MORE_PRECISIONS, PRECISIONS
from tests.harness import prepare
from tests.properties.examples import Example, Layout, Operand, Size

EDGES = (1, 2, 3, 5, 7, 8, 9, 13, 15, 16, 17, 31, 32, 33, 37, 63, 64, 65, 127, 128, 129, 257, 260, 511, 513, 1024, 1025)
AREA, WORK = 2**14, 2**17  # elements of a matrix and products of a call, about: an interpreted kernel must end soon
# Mostly plain numbers: an infinity hides what else is wrong.
SCALARS = (1.0, 0.5, -1.5, 2) * 3 + (0.0, 0.0, 1e-30, torch.inf, -torch.inf, torch.nan)
PLANTED = (None,) * 16 + (0.0, -0.0, 1e-40, 6e-8, torch.inf, -torch.inf, torch.nan)  # 1e-40, 6e-8: subnormal in fp32, in fp16
SEEDS = st.sampled_from(range(100))


def size(limit=260):
    """1 to limit, and now and then 0."""
    return among(*(edge for edge in EDGES if edge <= max(17, limit)), 0)


@functools.cache
def among(*values):
    """st.sampled_from, made once: making it takes longer than drawing from it."""
    return st.sampled_from(values)


@functools.cache
@st.composite
def layout(draw, rank, expanded=True):
    """Contiguous, or any order of the dimensions with gaps, steps, an offset and odd strides of dimensions of size 1."""
    if rank == 0 or draw(st.booleans()):
        return Layout(offset=draw(among(0, 1, 3)))
    dims = tuple(range(rank))
    swapped = (*dims[:-2], *reversed(dims[-2:]))
    channels_last = (*dims[:-3], *dims[-2:], *dims[-3:-2])  # of (..., C, H, W)
    usual = (dims, swapped, channels_last, (*dims[1:], 0))  # the last is CHWN
    others = tuple(itertools.permutations(dims))
    return Layout(
        order=draw(among(*usual * max(1, len(others) // 4), *others)),
        steps=tuple(draw(among(1, 1, 1, 2, 0) if expanded else among(1, 1, 2)) for _ in dims),
        gap=draw(among(0, 0, 1, 3)),
        offset=draw(among(0, 1, 3)),
        odd=draw(among(None, 0, 7, 1001)),
    )


@st.composite
def operand(draw, shape, dtype=torch.float32):
    values = draw(among("normal", "normal", "integers"))
    planted = draw(among(*PLANTED)) if dtype.is_floating_point and 0 not in shape else None
    return Operand(tuple(shape), dtype, draw(layout(len(shape))), values, planted, draw(SEEDS))


@functools.cache
def maybe(strategy):
    return st.none() | strategy


@st.composite
def blended(draw, shape, dtype=torch.float32):
    """(addend or None, options): beta * C with a C that broadcasts to shape, or that must not be read."""
    beta = draw(among(*SCALARS))
    whole = tuple(itertools.product(*((1, size) for size in shape)))
    shapes = [s[first:] for s in whole for first in range(len(shape) + 1)]
    addend = draw(operand(draw(st.sampled_from(sorted(set(shapes), key=len))), dtype))
    if beta == 0:
        unread = Operand(addend.shape, dtype, layout=addend.layout, values="nan")
        addend = draw(st.sampled_from((None, unread)))
    return addend, {"alpha": draw(among(*SCALARS)), "beta": beta}


def factors(alpha, *operands):
    """The factors of the product, whose sums are exact: infinity times a rounding error would be infinite, not NaN."""
    return [replace(x, values="integers", planted=None) for x in operands] if math.isinf(alpha) else operands


CONFIG = among(0, 0, 1, 2, 3, 4, 5, 6)


@st.composite
def gemm(draw, dtypes=(torch.float32, torch.float32, torch.float64)):
    dtype = draw(among(*dtypes))
    m = draw(size())
    n = draw(size(AREA // max(m, 1)))
    k = draw(size(WORK // (max(m, 1) * max(n, 1))).filter(lambda k: k <= 130))
    c, options = draw(blended((m, n), dtype))
    operands = factors(options["alpha"], draw(operand((m, k), dtype)), draw(operand((k, n), dtype)))
    return Example("gemm", (*operands, c), options, draw(maybe(layout(2, expanded=False))), draw(CONFIG))


@st.composite
def gemv(draw):
    """A matrix and a vector, or batches of either."""
    dtype = draw(among(torch.float32, torch.float32, torch.float16, torch.float64))
    batch = draw(among((), (), (3,), (1,), (0,), (2, 2), (2, 1, 3)))
    m = draw(size(260 // max(1, math.prod(batch))))
    n = draw(size(4 * AREA // max(m, 1) // max(1, math.prod(batch))))
    a_batch, x_batch = draw(st.sampled_from(((batch, batch), (batch, ()), ((), batch), (batch[1:], batch))))
    y, options = draw(blended((*torch.broadcast_shapes(a_batch, x_batch), m), dtype))
    operands = factors(options["alpha"], draw(operand((*a_batch, m, n), dtype)), draw(operand((*x_batch, n), dtype)))
    rank = len(torch.broadcast_shapes(a_batch, x_batch)) + 1
    return Example("gemv", (*operands, y), options, draw(maybe(layout(rank, expanded=False))), draw(CONFIG))


FP8 = (torch.float8_e4m3fn, torch.float8_e5m2)


@st.composite
def scaled(draw, rows, columns, batch):
    """{name: a scale} of none, one or both operands of fp8: of one element, or of each row and column, maybe of a batch."""
    lines = {"scale_a": (rows, 1), "scale_b": (1, columns)}
    shapes = {name: draw(st.sampled_from((None, (), (1,), (1, 1), line, (*batch, *line)))) for name, line in lines.items()}
    drawn = {name: draw(operand(shape)) for name, shape in shapes.items() if shape is not None}
    return {name: replace(scale, planted=None) for name, scale in drawn.items()}


@st.composite
def matmul(draw, kinds=PRECISIONS + MORE_PRECISIONS):
    """Ranks 1 to 5 and batches that broadcast, in every dtype and precision."""
    dtype, options = draw(st.sampled_from(kinds))
    batch = draw(st.lists(among(1, 2, 3, 0), max_size=3))
    images = max(1, torch.Size(batch).numel())
    m = draw(size())
    n = draw(size(AREA // images // max(m, 1)))
    k = draw(size(WORK // (images * max(m, 1) * max(n, 1))).filter(lambda k: k <= 130))
    a_batch = [draw(among(x, 1)) for x in batch[draw(st.integers(0, len(batch))) :]]
    b_batch = [draw(among(x, 1)) for x in batch[draw(st.integers(0, len(batch))) :]]
    a = (*a_batch, m, k) if a_batch or draw(st.booleans()) else (k,)
    b = (*b_batch, k, n) if b_batch or draw(st.booleans()) else (k,)
    vectors = (len(a) == 1) + (len(b) == 1)
    rank = max(len(a_batch), len(b_batch)) + 2 - vectors
    operands = (draw(operand(a, dtype)), draw(operand(b, draw(among(*FP8)) if dtype in FP8 else dtype)))
    if dtype in FP8:
        rows, columns = a[-2] if len(a) > 1 else 1, b[-1] if len(b) > 1 else 1
        options = options | draw(scaled(rows, columns, torch.broadcast_shapes(a_batch, b_batch)))
    return Example("matmul", operands, options, draw(maybe(layout(rank, expanded=False))), draw(CONFIG))


ONE, SMALL = among(1), among(1, 2, 3)
GEOMETRY = {
    "taps": among(1, 3, 2, 4, 5),
    "stride": SMALL,
    "dilation": SMALL,
    "padding": among(0, 1, 2, 4),
    "groups": SMALL,
    "c": SMALL,  # channels of a group
    "k": among(1, 2, 3, 5, 8, 9, 17),  # and its filters
    "dtype": among(torch.float32, torch.float32, torch.float16),
    "activation": among(None, None, "relu", "gelu", "silu"),
    "residual": st.booleans(),
    "precision": among(None, "ieee", "tf32", "torch"),  # of float32
}
ONE_TAP = {"taps": ONE, "stride": ONE, "padding": among(0), "groups": ONE}
WANTED = {  # by designs that are for some geometries
    "depthwise": {"groups": among(1, 2, 3, 5, 8, 17), "c": ONE, "k": among(1, 1, 2)},
    "depthwise_channels": {"groups": among(1, 2, 3, 5, 8, 17), "c": ONE, "k": ONE},
    "grouped": {"groups": among(1, 2, 3, 4), "c": among(1, 2, 3, 4, 8)},
    "conv2d_weight.depthwise": {
        "groups": among(1, 2, 3, 5, 8, 17),
        "c": ONE,
        "k": among(1, 1, 2),
        "taps": among(1, 3, 2, 5, 9),
        "stride": among(1, 2),
        "dilation": ONE,
    },
    "matmul.pipelined": ONE_TAP,
    "matmul.cuda_cores": ONE_TAP | {"dtype": among(torch.float32), "precision": among("ieee", "ieee", None)},
    "winograd": {"taps": among(3), "stride": ONE, "dilation": ONE, "activation": among(None), "residual": st.just(False)},
    "warp_specialized": {"groups": ONE, "c": among(1, 2, 3, 8, 33), "dtype": among(torch.float16, torch.bfloat16)},
}


@st.composite
def convolution(draw, design=None):
    """(image, weight, options, dtype) of every geometry: strides, padding, dilation, groups, unbatched, no images.

    torch, the reference, requires channels.
    """
    numbers = GEOMETRY | WANTED.get(design, {})
    groups, k = draw(numbers["groups"]), draw(numbers["k"])
    taps = [draw(numbers["taps"]) for _ in "hw"]
    c = draw(numbers["c"]) if taps[0] * taps[1] <= 9 else 1  # an interpreted kernel walks channels and taps one by one
    stride, dilation = draw(pair(numbers["stride"])), draw(pair(numbers["dilation"]))
    padding = draw(among(None, None, "valid", "same")) or draw(pair(numbers["padding"]))
    if padding == "same":
        stride = 1
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    around = (0, 0) if isinstance(padding, str) else both(padding)
    extents = [d * (t - 1) + 1 for d, t in zip(both(dilation), taps)]
    least = [max(1, extent - 2 * p) for extent, p in zip(extents, around)] if padding != "same" else (1, 1)
    height = least[0] + draw(among(0, 1, 2, 3, 5, 7, 8, 9, 16))
    width = least[1] + draw(among(0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63))
    images = draw(among((1,), (), (2,), (3,), (0,)))
    dtype = draw(numbers["dtype"])
    return (*images, groups * c, height, width), (groups * k, c, *taps), options, dtype


@st.composite
def precision(draw, dtype, design=None):
    """The option of a convolution, or none."""
    said = draw((GEOMETRY | WANTED.get(design, {}))["precision"]) if dtype == torch.float32 else None
    return {"precision": said} if said else {}


@st.composite
def conv2d(draw, design=None):
    image, weight, options, dtype = draw(convolution(design))
    options |= draw(precision(dtype, design))
    numbers = GEOMETRY | WANTED.get(design, {})
    if activation := draw(numbers["activation"]):
        options["activation"] = activation
    if draw(numbers["residual"]):
        result = prepare("conv2d", *(torch.empty(shape, device="meta") for shape in (image, weight)), **options).result
        options["residual"] = draw(operand(tuple(result.shape), dtype))
    operands = (
        draw(operand(image, dtype)),
        draw(operand(weight, dtype)),
        draw(maybe(operand(weight[:1], dtype))),
    )
    return Example("conv2d", operands, options, draw(maybe(layout(len(image), expanded=False))), draw(CONFIG))


@st.composite
def gradient(draw, op, design=None):
    """The gradient of a convolution with respect to its input, weight or bias."""
    image, weight, options, dtype = draw(convolution(design))
    result = prepare("conv2d", *(torch.empty(shape, device="meta") for shape in (image, weight)), **options).result.shape
    grad_output = draw(operand(tuple(result), dtype))
    if op == "conv2d_bias":
        return Example(op, (grad_output,), {}, draw(maybe(layout(1, expanded=False))), draw(CONFIG))
    options |= draw(precision(dtype, design))
    if op == "conv2d_weight":
        operands, rank = (draw(operand(image, dtype)), Size(weight), grad_output), 4
    else:  # with an infinite weight the zeros around grad_output are NaN, where torch has none
        filters = draw(operand(weight, dtype))
        finite = filters.planted is None or math.isfinite(filters.planted)
        operands, rank = (Size(image), filters if finite else replace(filters, planted=None), grad_output), len(image)
    return Example(op, operands, options, draw(maybe(layout(rank, expanded=False))), draw(CONFIG))


@functools.cache
def pair(numbers):
    """The ways to say it: an int, or a sequence of one or two."""
    return numbers | st.tuples(numbers, numbers) | st.lists(numbers, min_size=1, max_size=2)


def both(value):
    return (value, value) if isinstance(value, int) else (value[0], value[-1])


CALLS = {"gemm": gemm(), "gemv": gemv(), "matmul": matmul(), "conv2d": conv2d()} | {
    op: gradient(op) for op in ("conv2d_input", "conv2d_weight", "conv2d_bias")
}


def calls_of(library, op, design, device):
    """Calls that the design accepts on the device, with few exceptions, such as no products or too many taps."""
    if op == "conv2d":
        return conv2d(design)
    if op == "conv2d_weight":
        return gradient(op, f"{op}.{design}" if f"{op}.{design}" in WANTED else design)
    if op not in ("gemm", "matmul"):
        return CALLS[op]
    (chosen,) = (d for d in library.designs(op) if d.name == design)
    matrix, target = torch.empty(16, 16, device="meta"), library.target(torch.device(device))

    def takes(dtype, options):
        problem = prepare(op, matrix.to(dtype), matrix.to(dtype), **options).problem
        return chosen.refuses(problem, target) is None

    if op == "gemm":
        return CALLS[op] if takes(torch.float64, {}) else gemm((torch.float32,))
    return matmul([kind for kind in PRECISIONS + MORE_PRECISIONS if takes(*kind)])
