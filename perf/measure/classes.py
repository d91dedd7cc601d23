"""The classes of calls that speed is judged by, each drawn afresh, with its goals; docs/measuring.md has the table.

A draw is a Case that names no design. Sizes are log-uniform; N and K are no multiples of 8 wherever a class allows that, so
products with few tiles and a long K that no tile divides are among them: cuBLASLt's split-K drops the rest of K for some.
"""

import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from . import cases, shapes
from .cases import Case, Operand
from .shapes import BF16, E4M3, F16, F32, F64, INT8

SUITE = "classes"
PER_CLASS = 8
HALF = (F16, BF16)
ANY_LAYOUTS, NN, NT, TN = tuple(itertools.product(("row", "col"), repeat=2)), ("row", "row"), ("row", "col"), ("col", "row")
HIDDEN = (896, 1024, 1152, 1280, 1536, 2048, 2304, 2560, 3072, 3584, 4096, 5120, 6144, 7168, 8192)  # sizes of models
WIDER = (1 / 2, 1, 3 / 2, 2, 8 / 3, 7 / 2, 4)  # of a projection, relative to the hidden size
FEW_GFLOP = 20  # below, packing and splitting operands takes a large part of a product on tensor cores
AS_FP32 = "fp32"


@dataclass(frozen=True)
class Class:
    name: str
    draw: Callable[[random.Random], Case]
    mean: float  # the goal: torch's time over ours, in the geometric mean of the cases
    worst: float  # the goal: none below
    against: str  # torch's ways

    def cases(self, number, seed):
        """`number` different cases; fewer are the first of more."""
        draws = (random.Random(f"{self.name} {seed} {i}") for i in range(number))
        return [shapes.named(shape) for shape in shapes.different((self.name, self.draw, pick) for pick in draws)]


def lu(pick, least, most, of=1):
    """A log-uniform size between two, rounded to a multiple."""
    exact = math.exp(pick.uniform(math.log(least), math.log(most)))
    return of * min(max(round(exact / of), math.ceil(least / of)), most // of)


def _each(least, most, of=1):
    """Sizes M, N, K, each between the two."""
    return lambda pick: tuple(lu(pick, least, most, of) for _ in range(3))


def _odd(pick):
    return tuple(lu(pick, 300, 4000, 2) - 1 for _ in range(3))


def _product(sizes, dtypes, layouts=ANY_LAYOUTS, **options):
    """sizes(pick) -> (M, N, K)"""

    def case(pick):
        m, n, k = sizes(pick)
        a, b = pick.choice(layouts)
        return cases.matmul(m, n, k, pick.choice(dtypes), a, b, **options)

    return case


def _weight(pick):
    """(N, K) of a model's projection: up, down, gate and up together, or Q, K and V together."""
    hidden, kind = pick.choice(HIDDEN), pick.choice(("up", "down", "gate-up", "qkv"))
    inner = round(pick.choice(WIDER) * hidden / 64) * 64
    if kind == "down":
        return hidden, inner
    if kind == "qkv":
        return hidden + 2 * 128 * pick.choice((1, 2, 4, 8)), hidden
    return (2 if kind == "gate-up" else 1) * inner, hidden


def _prefill(pick):
    return lu(pick, 160, 6000), *_weight(pick)


def _decode(pick):
    return lu(pick, 1, 128), *_weight(pick)


def _training(pick):
    """The gradient of the layer's input, dY W, or of its weight, dY^T X, which has the weight's layout."""
    tokens, n, k = _prefill(pick)
    sizes, layouts = pick.choice((((tokens, k, n), NN), ((n, k, tokens), TN)))
    return cases.matmul(*sizes, pick.choice(HALF), *layouts)


def _batched(pick):
    m, n, k = lu(pick, 64, 2000, 8), lu(pick, 64, 2000, 8), lu(pick, 32, 512, 8)
    return cases.matmul(m, n, k, pick.choice(HALF), *pick.choice(ANY_LAYOUTS), batch=(pick.randint(6, 128),))


def _fused(pick):
    m, n, k = lu(pick, 500, 8000, 8), lu(pick, 500, 8000, 8), lu(pick, 200, 4000, 8)
    dtype, options = pick.choice(HALF), {"activation": pick.choice(("gelu", "silu"))}
    return cases.matmul(m, n, k, dtype, *pick.choice(ANY_LAYOUTS), named={"bias": Operand((n,), dtype)}, **options)


def _fp8(pick):
    """A product in fp8 with a scale for each operand, which torch asks for; half of them with the fast sums of tensor cores."""
    m, n, k = lu(pick, 200, 8000, 16), lu(pick, 800, 8000, 16), lu(pick, 800, 8000, 16)
    sums = pick.choice(({}, {"accumulate": "fast"}))
    return cases.matmul(m, n, k, E4M3, *NT, out_dtype=BF16, named=cases.scales(), **sums)


def _tall_or_flat(pick):
    sides = lu(pick, 8000, 120_000), lu(pick, 4, 200)
    return *(sides if pick.random() < 0.5 else sides[::-1]), lu(pick, 32, 1500)


def _deep(least, most, k_most, of=1):
    return lambda pick: (lu(pick, least, most, of), lu(pick, least, most, of), lu(pick, 8000, k_most, of))


def _shallow(pick):
    return lu(pick, 1000, 12_000), lu(pick, 1000, 12_000), lu(pick, 4, 100)


def _accurate(has_few):
    """Sizes of products below FEW_GFLOP, or of at least as many."""

    def sizes(pick):
        while True:
            m, n, k = _each(700, 7000, 8)(pick)
            if (2e-9 * m * n * k < FEW_GFLOP) == has_few:
                return m, n, k

    return _product(sizes, (F32,), precision=AS_FP32)


def _matrix(pick):
    """(M, N) of a matrix times a vector: wide, tall, few long rows, or squarish."""
    kind = pick.choice(("wide", "tall", "long", "squarish"))
    if kind == "wide":
        return lu(pick, 200, 4000), lu(pick, 200, 20_000)
    if kind == "tall":
        return lu(pick, 10_000, 800_000), lu(pick, 2, 200)
    if kind == "long":
        return lu(pick, 1, 40), lu(pick, 50_000, 4_000_000)
    m = lu(pick, 500, 16_000)
    return m, round(m * pick.uniform(0.75, 1.33))


def _gemv(dtypes, sizes=_matrix, batch=lambda pick: ()):
    def case(pick):
        layout = "col" if pick.random() < 0.25 else "row"
        return cases.gemv(*sizes(pick), layout, pick.choice(dtypes), batch(pick))

    return case


def _small_matrix(pick):
    return lu(pick, 32, 4000), lu(pick, 32, 4000)


def _conv2d(layer, kinds):
    """layer(pick) -> (images, channels, (height, width), outputs, taps, options); `kinds` are (dtype, precision or None)."""

    def case(pick):
        images, channels, plane, outputs, taps, options = layer(pick)
        dtype, precision = pick.choice(kinds)
        options |= {"precision": precision} if precision else {}
        image, weight = (images, channels, *plane), (outputs, channels // options.get("groups", 1), taps, taps)
        return cases.conv2d(image, weight, pick.choice(cases.LAYOUTS), dtype, **options)

    return case


IN_HALF, IN_FP32, IN_TF32 = ((F16, None), (BF16, None)), ((F32, "ieee"),), ((F32, "tf32"),)
IMAGES = (1, 1, 2, 4, 8, 16, 32, 64)


def _channels(pick):
    return lu(pick, 32, 640, pick.choice((1, 8, 8, 8)))


def _dense(pick):
    """Between 2 and 20 million pixels x channels, on images of 7 to 500 pixels a side; some widths are odd."""
    while True:
        channels, images, size = _channels(pick), pick.choice(IMAGES), lu(pick, 2_000_000, 20_000_000)
        side = math.sqrt(size / channels / images)
        height, width = round(side), round(side * pick.choice((1, 1, 1, 0.75, 4 / 3)))
        if 7 <= side <= 500 and 2_000_000 <= images * channels * height * width <= 20_000_000:
            break
    taps, stride = pick.choice((3, 3, 1, 5)), pick.choice((1, 1, 2))
    dilation = 2 if taps == 3 and stride == 1 and pick.random() < 0.25 else 1
    options = {"stride": stride, "dilation": dilation, "padding": dilation * (taps // 2)}
    return images, channels, (height, width), _channels(pick), taps, options


def _few_channels(pick):
    taps = pick.randint(3, 11)
    return 1, lu(pick, 1, 32), (lu(pick, 200, 1600), lu(pick, 200, 1600)), lu(pick, 1, 32), taps, {"padding": taps // 2}


def _stem(pick):
    """The first layers of ResNet, ConvNeXt, DINO, ViT and AlexNet: (filter, stride, padding, outputs)."""
    kinds = (7, 2, 3, 64), (4, 4, 0, 96), (14, 14, 0, 1024), (16, 16, 0, 768), (11, 4, 2, 64)
    taps, stride, padding, outputs = pick.choice(kinds)
    return pick.choice(IMAGES), 3, (224, 224), outputs, taps, {"stride": stride, "padding": padding}


def _plane(pick):
    side = lu(pick, 7, 80)
    return side, pick.choice((side, side, side, lu(pick, 7, 80)))


def _depthwise(pick):
    channels, taps = lu(pick, 32, 768, pick.choice((1, 8, 8, 8))), pick.choice((3, 3, 5, 7, 9, 11, 13))
    options = {"stride": pick.choice((1, 1, 2)), "padding": taps // 2, "groups": channels}
    return pick.choice(IMAGES), channels, _plane(pick), channels, taps, options


def _grouped(pick):
    groups, each, taps = lu(pick, 2, 32), lu(pick, 4, 32), pick.choice((3, 3, 3, 5, 7))
    options = {"stride": pick.choice((1, 1, 2)), "padding": taps // 2, "groups": groups}
    return pick.choice(IMAGES), groups * each, _plane(pick), groups * each, taps, options


def _both(kinds):
    return *kinds, *IN_FP32


CUDNN = "torch.conv2d, the best of cuDNN's searches in either layout, conversion counted"
GRADIENTS = "torch.nn.grad, the best of cuDNN's searches in either layout, conversion counted"
MATMUL, MM = "torch.matmul", "torch.mm, TF32 off"
MV = "torch.mv and torch.compile(max-autotune)"


def _classes():
    dense = {"16-bit": _conv2d(_dense, IN_HALF), "tf32": _conv2d(_dense, IN_TF32), "fp32": _conv2d(_dense, IN_FP32)}
    depthwise = {"fp32": _conv2d(_depthwise, IN_FP32), "16-bit": _conv2d(_depthwise, IN_HALF)}
    yield Class("16-bit large", _product(_each(400, 9000, 8), HALF), 1.00, 0.90, MATMUL)
    yield Class("16-bit prefill", _product(_prefill, HALF, (NT,)), 1.00, 0.90, MATMUL)
    yield Class("16-bit decode", _product(_decode, HALF, (NT,)), 1.05, 0.92, MATMUL)
    yield Class("16-bit training", _training, 1.00, 0.90, MATMUL)
    yield Class("16-bit batched", _batched, 1.05, 0.92, MATMUL)
    yield Class("16-bit deep", _product(_deep(32, 500, 100_000, 8), HALF), 1.05, 0.92, MATMUL)
    yield Class("16-bit fused", _fused, 1.20, 0.95, "torch.addmm and the activation")
    yield Class("16-bit unaligned", _product(_odd, HALF), 2.5, 1.0, MATMUL)
    yield Class("tf32", _product(_each(500, 7000, 4), (F32,), precision="tf32"), 1.05, 0.92, "torch.mm in TF32")
    yield Class("fp8", _fp8, 1.00, 0.90, "torch._scaled_mm, with the same sums or better ones")
    yield Class("int8", _product(_each(200, 6000, 16), (INT8,), (NT,)), 1.5, 1.0, "torch._int_mm")
    yield Class("fp64", _product(_each(300, 3000), (F64,)), 1.00, 0.92, "torch.mm")
    for kind, sizes in {
        "squarish": _each(300, 6000),
        "tall or flat": _tall_or_flat,
        "deep": _deep(16, 600, 120_000),
        "shallow": _shallow,
    }.items():
        yield Class(f"fp32 {kind}", _product(sizes, (F32,), precision="ieee"), 1.02, 0.92, MM)
    yield Class(f"fp32 accuracy below {FEW_GFLOP} GFLOP", _accurate(True), 2.0, 1.0, MM)
    yield Class(f"fp32 accuracy from {FEW_GFLOP} GFLOP", _accurate(False), 3.5, 1.0, MM)
    yield Class("gemv fp32", _gemv((F32,)), 1.10, 0.95, MV)
    yield Class("gemv 16-bit", _gemv(HALF), 1.10, 0.95, MV)
    yield Class("gemv batched", _gemv((F32, *HALF), _small_matrix, lambda pick: (lu(pick, 2, 256),)), 1.10, 0.95, MV)
    for kind, goal in {"16-bit": 1.00, "tf32": 1.00, "fp32": 1.1}.items():
        yield Class(f"conv {kind} dense", dense[kind], goal, 0.85, CUDNN)
    yield Class("conv few channels", _conv2d(_few_channels, _both(IN_HALF)), 2.5, 1.0, CUDNN)
    stems = _conv2d(_stem, (*IN_HALF, *IN_FP32, *IN_TF32))
    yield Class("conv stems and patches", stems, 1.5, 0.95, f"{CUDNN}, and Linear over unfolded pixels for patches")
    for kind, draw in depthwise.items():
        yield Class(f"conv depthwise {kind}", draw, 1.8, 0.95, CUDNN)
    for kind, kinds in {"fp32": IN_FP32, "16-bit": IN_HALF}.items():
        yield Class(f"conv grouped {kind}", _conv2d(_grouped, kinds), 1.8, 0.95, CUDNN)
    for name, op in {"input": "conv2d_input", "weight": "conv2d_weight"}.items():
        for kind in ("16-bit", "fp32"):
            yield Class(f"gradient of {name} {kind}", shapes.gradient(op, dense[kind]), 1.00, 0.85, GRADIENTS)
        layers = _conv2d(_depthwise, _both(IN_HALF))
        yield Class(f"gradient of {name} depthwise", shapes.gradient(op, layers), 1.8, 0.95, GRADIENTS)


CLASSES = {own.name: own for own in _classes()}


def families_of(op):
    """{name: draw} of the operation's classes, to sweep: what shapes.draw makes of them is drawn by no seed of a judge."""
    return {name: own.draw for name, own in CLASSES.items() if own.draw(random.Random(0)).op == op}


def class_of(case):
    """The Class of a case's name; None if it is of no class."""
    return CLASSES.get(case.partition(":")[0])


def drawn(names, seed, number):
    """The cases of the classes, one of each in turn, so that any part of a run has all."""
    of_classes = [CLASSES[name].cases(number, seed) for name in names]
    return [case for together in zip(*of_classes) for case in together]
