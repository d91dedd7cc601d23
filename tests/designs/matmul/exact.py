"""Launches of a design with a config of the test's own, on small integers, whose sums are exact: results must be equal."""

import pytest
import torch

from cuda_reference.launch import LIBRARY
from tests.harness import available_on, prepare, random


def integers(*shape, device="cpu"):
    return random(*shape, device=device).mul(3).round().half()


def computed(design, config, a, b, **options):
    """(the last launch, the result)"""
    call = prepare("matmul", a, b, **options)
    call.result.fill_(torch.nan if call.result.dtype.is_floating_point else 77)
    for tensors in call.parts:
        launches = list(design.launches(call.problem, config, *tensors))
        for launch in launches:
            launch.run()
    return launches[-1], call.result


def with_wgmma(device):
    """Skip where the CUDA kernels of Hopper cannot run."""
    available_on(LIBRARY, device)
    if device == "cuda" and LIBRARY.target(torch.device("cuda")).arch != 90:
        pytest.skip("no wgmma")
