"""The calls that `python -m perf gate` makes under compute-sanitizer.

For every design, in every type and precision that it supports: the smallest problem, ragged ones, and those without products
(an empty K, alpha = 0). The smallest and the ragged ones with and without `out`.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch

from tests import cases
from tests.harness import Size, built, names, prepare, random, transposed
from tritonkernels.operations.matmul.prepare import FP8

FLOATS = [(dtype, {}) for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64)]
AND_TF32 = [*FLOATS, (torch.float32, {"precision": "tf32"})]
KINDS = {  # of an operation: (dtype, options)
    "gemm": [(torch.float32, {}), (torch.float64, {})],
    "gemv": [*FLOATS, (torch.int8, {})],
    "conv2d": AND_TF32,
    "conv2d_input": AND_TF32,
    "conv2d_weight": AND_TF32,
    "conv2d_bias": FLOATS,
    "matmul": cases.PRECISIONS + cases.MORE_PRECISIONS,
}

# Image, filter, options: every design of conv2d takes one of them.
SMALLEST_IMAGES = (
    ((1, 1, 1, 1), (1, 1, 1, 1), {}),
    ((1, 1, 3, 3), (1, 1, 3, 3), {}),
    ((1, 2, 1, 1), (2, 1, 1, 1), {"groups": 2}),
)
RAGGED_IMAGES = (
    ((2, 6, 9, 21), (10, 3, 3, 2), {"groups": 2, "stride": (2, 1), "padding": 1}),
    ((2, 5, 9, 21), (7, 5, 3, 3), {"padding": 1}),
    ((2, 5, 9, 21), (10, 1, 3, 3), {"groups": 5}),
    ((2, 5, 9, 21), (7, 5, 1, 1), {}),
    ((2, 5, 9, 21), (5, 1, 3, 3), {"groups": 5, "padding": 1}),
)
WHOLE_IMAGES = (  # channels in whole vectors
    ((2, 16, 5, 9), (16, 16, 3, 3), {"padding": 1}),
    ((2, 16, 5, 9), (16, 16, 1, 1), {}),
    ((2, 16, 5, 9), (16, 1, 3, 3), {"groups": 16, "padding": 1}),
)


@dataclass(frozen=True)
class GateCall:
    op: str
    design: str
    kind: str
    problem: str  # its name
    out: bool  # given
    make: Callable[[], tuple]  # (args, kwargs) on the CPU, the same every time but for the values

    def __str__(self):
        return f"{self.op}/{self.design} {self.kind} {self.problem}{', out given' if self.out else ''}"


def designs(library, op):
    """The names of all that the operation has; of those by way of two reductions, of which there are many, some."""
    every, own = library.names(op), library.operation(op).own
    return every if own else [name for name in every if name in names(library, library.operation(op).reductions[0].to)]


def calls(library, op, design, target):
    """The GateCalls that the design does not refuse on such a machine."""
    asked = {d.name: d for d in library.designs(op)}[design]
    for kind, name, alternatives, outs in _asked(op):
        having = [(make, problem) for make, problem in alternatives if asked.gates or not problem.is_gated]
        taken = [make for make, problem in having if asked.refuses(problem, target) is None]
        yield from (GateCall(op, design, kind, name, out, taken[0]) for out in outs if taken)


@functools.cache
def _asked(op):
    """(kind, problem's name, its alternatives, outs) that every design of it is asked: to make their tensors takes seconds."""
    found = []
    with torch.random.fork_rng(devices=[]):  # a test's data do not depend on whether another came first
        for dtype, options in KINDS[op]:
            kind = " ".join([str(dtype).removeprefix("torch."), *(str(v).removeprefix("torch.") for v in options.values())])
            for name, (makes, outs) in PROBLEMS[op](dtype, options).items():
                found.append((kind, name, [(make, _problem(op, make)) for make in makes], outs))
    return found


def _problem(op, make):
    args, kwargs = make()
    return prepare(op, *args, **kwargs).problem


BOTH, GIVEN, NEW = (False, True), (True,), (False,)


def _gemm(dtype, options):
    def call(m, k, n, b=random, **scalars):
        return [lambda: ((random(m, k, dtype=dtype), b(k, n, dtype=dtype), random(m, n, dtype=dtype)), scalars)]

    return {
        "smallest": (call(1, 1, 1, beta=0.0), BOTH),
        "ragged": (call(133, 77, 141, alpha=-1.5, beta=0.5), BOTH),
        "ragged, whole vectors along K": (call(133, 80, 141, b=_along_k, beta=0.0), BOTH),
        "no products": (call(9, 0, 13, beta=0.5), NEW),
        "alpha = 0": (call(9, 5, 13, alpha=0.0, beta=0.5), GIVEN),
    }


def _gemv(dtype, options):
    x_dtype = torch.float32 if dtype == torch.int8 else dtype

    def call(m, n, layout=lambda t: t, **scalars):
        def make():
            scale = {"scale": random(m)} if dtype == torch.int8 else {}
            vectors = random(n, dtype=x_dtype), random(m, dtype=x_dtype)
            return (layout(random(m, n, dtype=dtype)), *vectors), scalars | scale

        return [make]

    return {
        "smallest": (call(1, 1, beta=0.0), BOTH),
        "ragged": (call(37, 1101, alpha=-1.5, beta=0.5), BOTH),
        "ragged, transposed": (call(141, 37, transposed, beta=0.0), BOTH),
        "no products": (call(5, 0, beta=0.5), NEW),
        "alpha = 0": (call(5, 7, alpha=0.0, beta=0.5), GIVEN),
    }


def _matmul(dtype, options):
    def plain(*batch, sizes, b=random):
        m, k, n = sizes
        return lambda: ((random(*batch, m, k, dtype=dtype), b(*batch, k, n, dtype=dtype)), options)

    def fused(m, k, n, alpha):
        def make():
            args = random(m, k, dtype=dtype), _along_k(k, n, dtype=dtype)
            kind = prepare("matmul", *args, **options).problem.out_dtype
            c, bias = (_moderate(*shape, dtype=kind) for shape in ((m, n), (n,)))
            scales = {"scale_a": random(m, 1), "scale_b": random(1, n)} if dtype in FP8 else {}
            return args, options | {"alpha": alpha, "beta": 3.0, "c": c, "bias": bias, "activation": "relu"} | scales

        return make

    def gated(m, k, f, b=random):
        def make():
            args = random(m, k, dtype=dtype), b(k, 2 * f, dtype=dtype)
            bias = random(2 * f, dtype=prepare("matmul", *args, **options).problem.out_dtype)
            return args, options | {"bias": bias, "activation": "swiglu"}

        return make

    def pairs(*sizes, **how):
        return [gated(*sizes, **how)] if dtype.is_floating_point else []

    again = {} if options.get("precision") != "fp16x3" else {"computed again": ([_refused_by_planes], BOTH)}
    return again | {
        "smallest": ([plain(sizes=(1, 1, 1))], BOTH),
        "ragged": ([plain(2, sizes=ragged) for ragged in ((133, 77, 141), (1, 77, 141))] + [plain(sizes=(133, 77, 141))], BOTH),
        "ragged, whole vectors along K": ([fused(133, 80, 141, 2.0), plain(sizes=(133, 80, 141), b=_along_k)], BOTH),
        "ragged, long K": ([plain(sizes=(133, 8264, 141)), plain(sizes=(1, 8264, 141))], NEW),
        "no products": ([plain(sizes=(9, 0, 13))], NEW),
        "pairs": (pairs(133, 77, 141), BOTH),
        "pairs, whole vectors along K": (pairs(133, 80, 264, b=_along_k), BOTH),
        "alpha = 0": ([fused(9, 16, 13, 0.0)], GIVEN),
    }


def _refused_by_planes():
    """Products of tiny elements alone, next to large ones times 0."""
    a, b = random(133, 300), random(300, 141)
    a[:, 1:] *= 2.0**-45
    b[0, ::3] = 0.0
    return (a, b), {"precision": "fp32"}


def _conv2d(dtype, options):
    def call(image, weight, geometry, layout=lambda t: t, activation=None):
        def make():
            x, w, bias = (random(*shape, dtype=dtype) for shape in (image, weight, weight[:1]))
            after = {}
            if activation:
                result = prepare("conv2d", x, w, **geometry).result
                after = {"activation": activation, "residual": layout(random(*result.shape, dtype=dtype))}
            return (layout(x), w, bias), geometry | options | after

        return make

    return {
        "smallest": ([call(*geometry) for geometry in SMALLEST_IMAGES], BOTH),
        "ragged": ([call(*geometry) for geometry in RAGGED_IMAGES], BOTH),
        "ragged, channels_last": ([call(*geometry, _channels_last) for geometry in RAGGED_IMAGES], BOTH),
        "ragged, more than a bias": ([call(*geometry, activation="silu") for geometry in RAGGED_IMAGES], GIVEN),
        "whole vectors, more than a bias": ([call(*geometry, _channels_last, "gelu") for geometry in WHOLE_IMAGES], NEW),
        "whole vectors that are not aligned": ([call(*geometry, _one_element_further) for geometry in WHOLE_IMAGES], NEW),
        "no products": ([call((1, 0, 5, 5), (3, 0, taps, taps), {}) for taps in (2, 3, 1)], NEW),
    }


def _gradient(operands, empty):
    """Calls of a gradient; its arguments are operands(image, weight, the shape of the result); `empty`: nothing to add up."""

    def problems(dtype, options):
        def call(image, weight, geometry, layout=lambda t: t):
            meta = [torch.empty(shape, device="meta") for shape in (image, weight)]
            shapes = operands(image, weight, prepare("conv2d", *meta, **geometry).result.shape)

            def make():
                tensors = built(shapes, lambda *shape: layout(random(*shape, dtype=dtype)))
                return tensors, geometry | options if len(shapes) > 1 else {}

            return make

        return {
            "smallest": ([call(*geometry) for geometry in SMALLEST_IMAGES], BOTH),
            "ragged": ([call(*geometry) for geometry in RAGGED_IMAGES], BOTH),
            "ragged, channels_last": ([call(*geometry, _channels_last) for geometry in RAGGED_IMAGES], BOTH),
            "ragged, steps beyond the taps": ([call((2, 5, 9, 21), (7, 5, 1, 1), {"stride": 2})], NEW),
            "whole vectors that are not aligned": ([call(*geometry, _one_element_further) for geometry in WHOLE_IMAGES], NEW),
            "no products": ([call(*geometry) for geometry in empty], NEW),
        }

    return problems


def _along_k(*shape, dtype=torch.float32):
    """A right operand with contiguous columns instead of rows."""
    return transposed(random(*shape, dtype=dtype))


def _moderate(*shape, dtype):
    """Integers far from the limits of int32, so that multiples and products do not wrap around."""
    return random(*shape, dtype=dtype) // 1000 if dtype == torch.int32 else random(*shape, dtype=dtype)


def _channels_last(t):
    return t.contiguous(memory_format=torch.channels_last)


def _one_element_further(t):
    """channels_last, one element past an aligned address."""
    t = _channels_last(t) if t.ndim == 4 else t
    return t.new_empty(t.numel() + 1).as_strided(t.shape, t.stride(), 1).copy_(t)


NO_OUTPUT_CHANNELS = [((1, 5, 5, 5), (0, 5, taps, taps), {}) for taps in (2, 3, 1)]
NO_OUTPUT_CHANNELS += [((1, 5, 5, 5), (0, 1, 3, 3), {"groups": 5})]
NO_IMAGES = [((0, c, 5, 5), (3, c, 2, 2), {}) for c in (2, 1)]
PROBLEMS = {
    "gemm": _gemm,
    "gemv": _gemv,
    "matmul": _matmul,
    "conv2d": _conv2d,
    "conv2d_input": _gradient(lambda image, weight, result: (Size(image), weight, result), NO_OUTPUT_CHANNELS),
    "conv2d_weight": _gradient(lambda image, weight, result: (image, Size(weight), result), NO_IMAGES),
    "conv2d_bias": _gradient(lambda image, weight, result: (result,), NO_IMAGES),
}
