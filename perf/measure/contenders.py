"""The contenders of a comparison: every design of both packages or what each chooses, and torch."""

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tritonkernels import backend

from . import baselines

PACKAGES = {"triton": "tritonkernels", "cuda": "cuda_reference"}
OWN = "own"  # the implementation of a user's kernel (own.py)
CPU_BACKENDS = {"triton": "interpreter", "cuda": "simt", "torch": "torch-cpu", "peer": "torch-cpu", OWN: "cpu"}


@dataclass(frozen=True)
class Contender:
    """explain(*args, **kwargs) names design and config, and raises a refusal before anything runs; call(*args, out=, **kwargs)
    returns the result. design is None where the package chooses.

    transform(config) is the design's own, which its error bound depends on; so it does on whether the sum is rounded before the
    activation (`stepwise`).
    """

    implementation: str
    design: str | None
    explain: Callable[..., dict[str, Any]]
    call: Callable[..., torch.Tensor]
    writes_out: bool = True
    transform: Callable[[dict[str, Any]], Any] = lambda config: None
    stepwise: bool = False


def device():
    """The device of the comparison: the current GPU, else the CPU. Fixes Triton's backend before any kernel is imported."""
    return torch.device("cuda", torch.cuda.current_device()) if backend.device_type() == "cuda" else torch.device("cpu")


def backend_of(implementation, device):
    return "gpu" if device.type == "cuda" else CPU_BACKENDS[implementation]


def designs(op):
    """(implementation, Design) of every design of the operation, in both packages."""
    packages = ((key, importlib.import_module(name)) for key, name in PACKAGES.items())
    return [(key, design) for key, package in packages for design in package.designs(op)]


def contenders(op, names=None, implementations=None, chosen=False, ways=baselines.BASELINES):
    """The designs of the operation (all, or those of the given names and implementations), or `chosen`: what each package
    chooses by itself; and torch last, in each of its `ways`."""
    for implementation, design in [(key, None) for key in PACKAGES] if chosen else designs(op):
        if (names is None or chosen or design.name in names) and (implementations is None or implementation in implementations):
            package, named = importlib.import_module(PACKAGES[implementation]), {} if chosen else {"design": design.name}
            explain, call = functools.partial(package.explain, op, **named), functools.partial(getattr(package, op), **named)
            transform = {} if chosen else {"transform": design.transform}
            yield Contender(implementation, named.get("design"), explain, call, **transform)
    for name, call, writes_out in ways[op]:
        explain, stepwise = functools.partial(_named, name), call in baselines.STEPWISE
        yield Contender("torch", name, explain, call, writes_out, stepwise=stepwise)


def _named(name, *args, **kwargs):
    return {"design": name, "config": {}}
