"""Shapes to learn from and to be judged by: random calls as people have them, of every family in turn.

Sizes are log-uniform; few are powers of two, most are the multiples of 8, 16 or 64 and the 3 x 2^n and 5 x 2^n of real models,
and some are odd. A shape that a GPU would take long for, or whose tensors are too large, is drawn again.
"""

import hashlib
import importlib
import json
import math
import random
from dataclasses import dataclass, replace

import torch

from tritonkernels.analysis import roofline
from tritonkernels.problem import Problem
from tritonkernels.target import Target

from . import cases
from .cases import Case, Given, Operand

LARGEST = 10**9  # bytes of an operand or a result
LONGEST = 5e-3  # seconds of a call on an H200, by the roofline
REFERENCE = {"matmul": 3e12, "conv2d": 2e11}  # FLOPs at most, else the exact result in float64 takes longer than all contenders
ON_A_CPU = 3e6  # FLOP: what the interpreter computes in seconds
PLAIN = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, "precision": "ieee"}  # options of a convolution
H200 = Target.named("h200")

F16, BF16, F32, F64 = torch.float16, torch.bfloat16, torch.float32, torch.float64
INT8, E4M3, E5M2 = torch.int8, torch.float8_e4m3fn, torch.float8_e5m2
BYTES = (INT8, E4M3, E5M2)
WIDTHS = (768, 1024, 1280, 1536, 2048, 2560, 3072, 3584, 4096, 5120, 6144, 8192)  # of models: hidden sizes
OUTPUTS = (
    512,
    1024,
    2304,
    4608,
    6144,
    8960,
    11008,
    13824,
    14336,
    18944,
    28672,
    32000,
    50257,
    128256,
)  # k v, qkv, gate up, head
CHANNELS = (16, 24, 32, 40, 48, 64, 80, 96, 112, 128, 160, 192, 240, 256, 320, 384, 512, 640, 768, 960, 1024, 1280, 1536, 2048)
PLANES = (7, 8, 13, 14, 16, 20, 28, 32, 33, 38, 40, 56, 64, 80, 96, 112, 128, 150, 160, 224)


@dataclass(frozen=True, eq=False)
class Shape:
    family: str
    case: Case
    problem: Problem

    @property
    def key(self):
        return key_of(self.problem.op, self.problem.describe())


def key_of(op, described):
    """The same for a problem (its describe()) on every machine and in every version."""
    return hashlib.sha256(json.dumps([op, described], sort_keys=True).encode()).hexdigest()[:16]


def half(key):
    """Which half of the shapes this one is of: "fit" or "judge"."""
    return ("fit", "judge")[int(key, 16) % 2]


def draw(op, number, seed=0, families=None):
    """`number` different Shapes of the operation, the families (default: its FAMILIES) in turn. Fewer are the first of more."""
    families = list((FAMILIES[op] if families is None else families).items())
    number = number if families else 0
    return list(different((*families[i % len(families)], random.Random(f"{op} {seed} {i}")) for i in range(number)))


def different(draws):
    """A Shape of each (family, pick -> Case, random.Random), drawn again where it was there before or is not affordable."""
    seen = set()
    for family, drawn, pick in draws:
        while True:
            case = drawn(pick)
            shape = Shape(family, case, prepared(case).problem)
            if shape.key not in seen and is_affordable(shape):
                break
        seen.add(shape.key)
        yield shape


def named(shape):
    """The case, to compare what a call gets that names no design. Its name has the family, what tells products apart (the
    layouts of A and B as BLAS calls them, and what is added) and the options of convolutions."""
    case, words = shape.case, shape.case.name.split()
    if case.op == "matmul":
        added = [name for name in case.named if "scale" not in name]
        modes = [case.options[name] for name in ("precision", "activation") if name in case.options]
        words += ["".join("T" if operand.layout == "col" else "N" for operand in case.operands), *modes, *added]
    elif case.op.startswith("conv2d"):
        words += [f"{name} {value}" for name, value in case.options.items() if value != PLAIN.get(name)]
    name = f"{shape.family}: {' '.join(dict.fromkeys(words))}"  # some have the modes in their names
    return replace(case, name=name, gpu_only=shape.problem.flops > ON_A_CPU, chosen=True)


def prepared(case):
    """The Call of a case's outlines."""
    args, kwargs = case.outlines()
    return importlib.import_module(f"tritonkernels.{case.op}").prepare(*args, **kwargs)


def is_affordable(shape):
    problem, (args, kwargs) = shape.problem, shape.case.outlines()
    tensors = [value for value in (*args, *kwargs.values(), prepared(shape.case).result) if isinstance(value, torch.Tensor)]
    limits = roofline.limits(problem, H200)
    return (
        max(t.numel() * t.element_size() for t in tensors) <= LARGEST
        and max(limits["memory_s"], limits["compute_s"]) <= LONGEST
        and problem.flops <= REFERENCE["conv2d" if problem.op.startswith("conv2d") else "matmul"]
    )


def size(pick, least, most):
    """A log-uniform size, mostly rounded as sizes are."""
    exact = _exact(pick, least, most)
    kind = pick.choices(("any", 8, 16, 64, "power", "neighbour"), (3, 3, 3, 5, 3, 4))[0]
    if kind == "any":
        rounded = round(exact)
    elif kind == "power":
        rounded = 2 ** round(math.log2(exact))
    elif kind == "neighbour":
        times = pick.choice((3, 5, 7))
        rounded = times * 2 ** max(0, round(math.log2(exact / times)))
    else:
        rounded = kind * max(1, round(exact / kind))
    return min(max(rounded, least), most)


def _exact(pick, least, most):
    return math.exp(pick.uniform(math.log(least), math.log(most)))


def _odd(pick, least, most):
    """A log-uniform size of rows that do not all begin at 16 bytes."""
    return round(_exact(pick, least, most)) // 2 * 2 + 1


def _layouts(pick):
    """The layouts of A and B: mostly nn and nt, which torch.nn.Linear has; tn are gradients of weights."""
    return pick.choices((("row", "row"), ("row", "col"), ("col", "row"), ("col", "col")), (4, 4, 2, 1))[0]


def _weight(pick):
    """(N, K) of a projection, as it is or of one of two or four GPUs."""
    n, k = pick.choice((*WIDTHS, *OUTPUTS)), pick.choice(WIDTHS)
    n, k = (k, n) if pick.random() < 0.3 else (n, k)
    return n // pick.choice((1, 1, 2, 4)), k


def _square(pick):
    n = size(pick, 96, 8192)
    return tuple(n if pick.random() < 0.6 else size(pick, max(16, n // 4), 2 * n) for _ in range(3))


def _skinny(pick):
    m, n, k = size(pick, 4096, 400_000), size(pick, 4, 256), size(pick, 8, 2048)
    return (m, n, k) if pick.random() < 0.7 else (n, m, k)


def _long_k(pick):
    return size(pick, 16, 768), size(pick, 16, 768), size(pick, 4096, 400_000)


def _pixels(pick):
    """A 1 x 1 convolution, or patches of an image times filters."""
    return pick.choice(PLANES) ** 2 * pick.choice((1, 2, 4, 8, 32)), pick.choice(CHANNELS), pick.choice((27, 147, *CHANNELS))


def _decode(pick):
    return pick.choice((1, 2, 4, 8, 16, 32, 64, size(pick, 1, 128))), *_weight(pick)


def _prefill(pick):
    return size(pick, 128, 8192), *_weight(pick)


def _tokens(pick):
    return pick.choice((_decode, _prefill))(pick)


def _shallow(pick):
    """Large results, bound by their stores."""
    sides = [pick.choice((size, _odd))(pick, 1000, 12_000) for _ in range(2)]
    return *sides, round(_exact(pick, 4, 100))


def _uneven(pick):
    return tuple(_odd(pick, 300, 4000) for _ in range(3))


def _gemm(sizes):
    def case(pick):
        a, b = _layouts(pick)
        scaled = pick.choice(({}, {}, {}, {"alpha": 1.5}, {"alpha": 0.5, "beta": 1.0}))
        return cases.gemm(*sizes(pick), a, b, **scaled)

    return case


def _gemv(sizes, dtypes, batch=lambda pick: ()):
    def case(pick):
        m, n = sizes(pick)
        layout, dtype = pick.choices(("row", "col"), (3, 1))[0], pick.choice(dtypes)
        scaled = pick.choice(({}, {}, {"alpha": 1.5, "beta": 0.5}))
        return cases.gemv(m, n, layout, dtype, batch(pick), **scaled)

    return case


def _int8_gemv(pick):
    """Weights of int8 with a scale per row."""
    n, k = _weight(pick)
    operands = Operand((n, k), INT8), Operand((k,), pick.choice((F16, BF16, F32)))
    return Case("gemv", f"{n}x{k} int8", operands, named={"scale": Operand((n,), F32)})


def _matmul(sizes, modes, batch=lambda pick: ()):
    """`modes` are (dtype, options) pairs."""

    def case(pick):
        m, n, k = sizes(pick)
        dtype, options = pick.choice(modes)
        options, named, (a, b), batches = dict(options), {}, _layouts(pick), None
        if dtype in BYTES:  # tensor cores read bytes along K only, and torch wants multiples of 16
            a, b = "row", "col"
            n, k = (max(16, x // 16 * 16) for x in (n, k))
            if dtype != INT8:
                options |= pick.choice(({}, {"accumulate": "fast"}))
                named = pick.choice(({}, cases.scales(), cases.scales(m, n)))
        elif (follows := pick.random()) < 0.3:
            named = {"bias": Operand((n,), options.get("out_dtype", dtype))}
            options |= pick.choice(({}, {"activation": "gelu"}, {"activation": "silu"}, {"activation": "relu"}))
        elif follows < 0.4:  # as a residual, or a gradient that is added up
            batches = batch(pick)
            named = {"c": Operand((*batches, m, n), options.get("out_dtype", dtype))}
        batches = batch(pick) if batches is None else batches
        return cases.matmul(m, n, k, dtype, a, b, batches, named=named, **options)

    return case


HALF = ((BF16, {}), (F16, {}), (BF16, {}), (F16, {"out_dtype": F32}))
BYTE = ((INT8, {}), (E4M3, {"out_dtype": BF16}), (E4M3, {}), (E5M2, {"out_dtype": F32}))
SINGLE = ((F32, {}), (F32, {"precision": "tf32"}), (F32, {"precision": "tf32"}), (F32, {"precision": "tf32x3"}))
SCIENCE = (*SINGLE, (F32, {"precision": "bf16x6"}), (F32, {"precision": "fp16x3"}), (F64, {}), (F64, {}))


def _heads(pick):
    """Batches of attention: products of queries and keys, or of weights and values."""
    length, width = size(pick, 32, 4096), pick.choice((32, 64, 80, 96, 128))
    return (length, size(pick, 32, 4096), width) if pick.random() < 0.5 else (length, width, size(pick, 32, 4096))


def _batch(pick):
    return (size(pick, 2, 256),)


def _conv2d(layer, dtypes=(F16, BF16, F16, F32, F32, F64)):
    """layer(pick) -> (images, channels, (height, width), outputs, taps, options)."""

    def case(pick):
        images, channels, plane, outputs, taps, options = layer(pick)
        dtype, layout = pick.choice(dtypes), pick.choice(cases.LAYOUTS)
        options = {"stride": 1, "padding": taps // 2, "groups": 1} | options
        if dtype == F32:
            options["precision"] = pick.choice(("ieee", "tf32"))
        shapes = (images, channels, *plane), (outputs, channels // options["groups"], taps, taps)
        convolution = cases.conv2d(*shapes, layout, dtype, **options)
        if pick.random() < 0.25:
            bias = Operand((outputs,), dtype)
            convolution = replace(convolution, operands=(*convolution.operands, bias))
        return convolution

    return case


def _images(pick):
    return pick.choice((1, 1, 2, 4, 8, 16, 32, 64))


def _plane(pick):
    height = pick.choice(PLANES)
    return height, height if pick.random() < 0.8 else pick.choice(PLANES)


def _dense(pick):
    taps, stride = pick.choice((3, 3, 3, 5, 7)), pick.choice((1, 1, 1, 2))
    dilation = pick.choice((2, 4)) if stride == 1 and taps == 3 and pick.random() < 0.1 else 1
    options = {"stride": stride, "dilation": dilation, "padding": dilation * (taps // 2)}
    return _images(pick), pick.choice(CHANNELS), _plane(pick), pick.choice(CHANNELS), taps, options


def _pointwise(pick):
    options = {"stride": pick.choice((1, 1, 1, 2))}
    return _images(pick), pick.choice(CHANNELS), _plane(pick), pick.choice((*CHANNELS, 1000)), 1, options


def _stem(pick):
    taps, stride = pick.choice(((3, 2), (7, 2), (3, 1), (5, 1)))
    return (
        _images(pick),
        pick.choice((1, 3, 4)),
        (size(pick, 96, 640),) * 2,
        pick.choice(CHANNELS[:10]),
        taps,
        {"stride": stride},
    )


def _depthwise(pick):
    channels, taps = pick.choice(CHANNELS), pick.choice((3, 3, 5, 7))
    return _images(pick), channels, _plane(pick), channels, taps, {"stride": pick.choice((1, 1, 2)), "groups": channels}


def _grouped(pick):
    groups, each = pick.choice((2, 4, 8, 16, 32, 64)), pick.choice((4, 8, 16, 24, 32, 64))
    options = {"stride": pick.choice((1, 1, 2)), "groups": groups}
    return _images(pick), groups * each, _plane(pick), groups * each * pick.choice((1, 1, 2)), 3, options


def _picture(pick):
    channels, taps = pick.choice((1, 3, 4, 6, 8, 16)), pick.choice((3, 3, 5, 6, 7, 9))
    return 1, channels, (size(pick, 256, 2160), size(pick, 256, 3840)), pick.choice((1, 3, 6, 8, 16, 32)), taps, {}


def _latent(pick):
    channels = pick.choice((128, 256, 320, 512, 640, 960, 1280))
    side = pick.choice((16, 32, 48, 64, 96, 128))
    return pick.choice((1, 2, 4)), channels, (side, side), pick.choice((channels, 320, 4)), 3, {}


CONV2D = {
    "dense": _conv2d(_dense),
    "pointwise": _conv2d(_pointwise),
    "depthwise": _conv2d(_depthwise, (F16, BF16, F32)),
    "grouped": _conv2d(_grouped, (F16, BF16, F32)),
    "image": _conv2d(_picture, (F32, F32, F16)),
    "diffusion": _conv2d(_latent, (F16, BF16, F32)),
    "stem": _conv2d(_stem, (F16, BF16, F32)),
}


def gradient(op, forward):
    """The gradient of a convolution with respect to its weight or its input."""

    def case(pick):
        convolution = forward(pick)
        image, weight = convolution.operands[:2]
        grad_output = replace(image, shape=tuple(prepared(convolution).result.shape))
        if op == "conv2d_weight":
            operands = image, Given(weight.shape), grad_output
        else:
            operands = Given(image.shape), weight, grad_output
        return replace(convolution, op=op, operands=operands)

    return case


# operation -> {family: pick -> Case}
FAMILIES = {
    "gemm": {
        "scientific": _gemm(_square),
        "llm": _gemm(_tokens),
        "tall-skinny": _gemm(_skinny),
        "vision": _gemm(_pixels),
        "long K": _gemm(_long_k),
        "shallow": _gemm(_shallow),
        "uneven": _gemm(_uneven),
    },
    "gemv": {
        "llm": _gemv(_weight, (F16, BF16)),
        "scientific": _gemv(lambda pick: _square(pick)[:2], (F32,)),
        "tall": _gemv(lambda pick: (size(pick, 4096, 2_000_000), size(pick, 3, 512)), (F32, F32, F16)),
        "wide": _gemv(lambda pick: (size(pick, 1, 512), size(pick, 4096, 1_000_000)), (F32, F32, BF16)),
        "attention": _gemv(lambda pick: _heads(pick)[::2], (F16, BF16), _batch),
        "int8 weights": _int8_gemv,
        "uneven": _gemv(lambda pick: _uneven(pick)[:2], (F32, F16, BF16)),
        "batched": _gemv(lambda pick: (size(pick, 32, 4096), size(pick, 32, 4096)), (F32, F16, BF16), _batch),
    },
    "matmul": {
        "llm decode": _matmul(_decode, HALF),
        "scientific": _matmul(_square, SCIENCE),
        "vision": _matmul(_pixels, (*HALF, *SINGLE)),
        "llm in bytes": _matmul(_tokens, BYTE),
        "attention": _matmul(_heads, (*HALF, SINGLE[1]), _batch),
        "tall-skinny": _matmul(_skinny, (*SINGLE, *HALF, (F64, {}))),
        "llm prefill": _matmul(_prefill, HALF),
        "long K": _matmul(_long_k, (*SINGLE, *HALF, (F64, {}))),
        "square": _matmul(_square, (*HALF, *BYTE)),
        "shallow": _matmul(_shallow, SINGLE[:1]),
        "uneven": _matmul(_uneven, SINGLE[:1]),
    },
    "conv2d": CONV2D,
    "conv2d_weight": {family: gradient("conv2d_weight", forward) for family, forward in CONV2D.items()},
    "conv2d_input": {family: gradient("conv2d_input", forward) for family, forward in CONV2D.items()},
}
