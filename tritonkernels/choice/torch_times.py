"""What torch's own operators take, by recorded times of near shapes: for `nn.replace`, which asks whether we are faster.

    tables/h200/torch.json    {"families": {"product fp16": {"scatter": 1.2, "times": [[sizes, us, over], ...]}}}

A time is over the roofline, of the full figures of the GPU, by a factor that is alike for like shapes: the prediction is the
shape's own roofline times the mean factor of the nearest recorded ones. A shape that is recorded itself counts most. How far
that is off in a family, where each recorded shape is predicted from the others, is its `scatter`: a factor of one standard
deviation. `python -m perf fit` writes the table. A table serves its own GPU and no other.
"""

import functools
import json
import math
from typing import NamedTuple

from ..problem import FLOAT_PRECISION
from . import model

FILE, SCHEMA = "torch.json", 1
NEAREST = 3  # shapes: of 1 to 5 what predicted best on the H200
FAR = math.log(16)  # no prediction where the nearest shape is further: a factor in all sizes together
EQUAL = 0.1  # the distance within which a shape counts as the same
UNALIGNED, CHANNELS_LAST = 8, 4  # a difference in these is so far as such a factor in a size


class TorchTime(NamedTuple):
    seconds: float
    scatter: float  # a factor, of one standard deviation


def family_of(problem):
    """The name of the problems that are comparable; None if there is none. The two 16-bit types take the same time."""
    kind = {"matmul": "product", "gemm": "product", "gemv": "product", "conv2d": "conv2d"}.get(problem.op)
    if kind is None or problem.dtype not in FLOAT_PRECISION:
        return None
    own = "tf32" if problem.precision == "tf32" else FLOAT_PRECISION[problem.dtype]
    return f"{kind} {own.replace('bf16', 'fp16')}"


def sizes_of(problem):
    """What nearness is judged by: factors, of which 1 counts nothing."""
    if problem.op == "conv2d":
        shape = problem.groups, problem.n * problem.p * problem.q, problem.k // problem.groups, problem.c // problem.groups
        return *shape, problem.r * problem.s, problem.stride[0], CHANNELS_LAST if problem.channels_last else 1
    batch = getattr(problem, "batch", 1)
    m, n, k = (1, problem.m, problem.n) if problem.op == "gemv" else (problem.m, problem.n, problem.k)
    chunk = 16 // problem.dtype.itemsize  # elements that are copied at once
    return batch, m, n, k, *(UNALIGNED if size % chunk else 1 for size in (n, k))


def roofline(problem, rates):
    """The seconds of the problem at the GPU's full figures, as the model of time joins them."""
    unit = family_of(problem).split()[1]
    flops = (rates.flops.get(unit) or rates.flops["ieee"]) * rates.sms
    return model.overlapped(problem.flops / flops, 0, problem.bytes / rates.dram, 0) + rates.launch


def predicted(problem, target):
    """The TorchTime of a problem on a Target; None where no near shape is recorded."""
    family = times(target.name).get(family_of(problem))
    factor = family and factor_of(sizes_of(problem), family["times"])
    return TorchTime(factor * roofline(problem, model.rates(target)), family["scatter"]) if factor else None


def factor_of(sizes, recorded):
    """The mean factor of the nearest of recorded rows [sizes, us, over]; None if all are far."""
    near = sorted((_distance(sizes, row[0]), row[2]) for row in recorded)[:NEAREST]
    if not near or near[0][0] > FAR:
        return None
    weights = [1 / (distance + EQUAL) for distance, _ in near]
    return math.exp(sum(w * math.log(over) for w, (_, over) in zip(weights, near)) / sum(weights))


def _distance(sizes, others):
    return sum(abs(math.log(max(1, one) / max(1, other))) for one, other in zip(sizes, others))


@functools.cache
def times(target_name):
    """{family: its recorded times} of a GPU; empty if there are none."""
    path = model.TABLES / model.gpu_name(target_name) / FILE
    return json.loads(path.read_text())["families"] if path.exists() else {}
