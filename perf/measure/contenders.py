"""The contenders of a comparison: every design of both packages, and torch."""

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tritonkernels import backend

from . import baselines

PACKAGES = {"triton": "tritonkernels", "cuda": "cuda_reference"}
CPU_BACKENDS = {"triton": "interpreter", "cuda": "simt", "torch": "torch-cpu", "peer": "torch-cpu"}


@dataclass(frozen=True)
class Contender:
    """explain(*args, **kwargs) raises a refusal before anything runs; call(*args, out=, **kwargs) returns the result.

    transform(config) is the design's own, which its error bound depends on.
    """

    implementation: str
    design: str
    explain: Callable[..., dict[str, Any]]
    call: Callable[..., torch.Tensor]
    writes_out: bool = True
    transform: Callable[[dict[str, Any]], Any] = lambda config: None


def device():
    """The device of the comparison: the current GPU, else the CPU. Fixes Triton's backend before any kernel is imported."""
    return torch.device("cuda", torch.cuda.current_device()) if backend.device_type() == "cuda" else torch.device("cpu")


def backend_of(implementation, device):
    return "gpu" if device.type == "cuda" else CPU_BACKENDS[implementation]


def designs(op):
    """(implementation, Design) of every design of the operation, in both packages."""
    packages = ((key, importlib.import_module(name)) for key, name in PACKAGES.items())
    return [(key, design) for key, package in packages for design in package.designs(op)]


def contenders(op, names=None, implementations=None):
    """The designs of the operation (all, or those of the given names and implementations), and torch last."""
    for implementation, design in designs(op):
        if (names is None or design.name in names) and (implementations is None or implementation in implementations):
            package = importlib.import_module(PACKAGES[implementation])
            explain = functools.partial(package.explain, op, design=design.name)
            call = functools.partial(getattr(package, op), design=design.name)
            yield Contender(implementation, design.name, explain, call, transform=design.transform)
    for name, call, writes_out in baselines.BASELINES[op]:
        yield Contender("torch", name, lambda *args, **kwargs: {"config": {}}, call, writes_out)
