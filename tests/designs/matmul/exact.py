"""Launches of a design with a config of the test's own, on small integers, whose sums are exact: results must be equal."""

import pytest
import torch

from cuda_reference.launch import LIBRARY
from tests.harness import available_on, bits, prepare, random, run_checked


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


def over_c(design, config, a, b, c, **options):
    """(the last launch, the result), which is c itself, overwritten; the Call has one part."""
    call = prepare("matmul", a, b, c=c, out=c, out_dtype=c.dtype, **options)
    launches = list(design.launches(call.problem, config, *call.parts[0]))
    for launch in launches:
        launch.run()
    return launches[-1], call.result


# Four of 28 parts, which are added up in groups of 8
OF_GROUPS = {"in a group": (8, 9, 14, 15), "in each": (3, 8, 23, 24), "in the last": (24, 25, 26, 27)}


def of_four_parts(depth, parts=4, own=(0, 1, 2, 3), device="cpu", root=2.0**13, dtype=torch.float16):
    """A row of A and a column of B with a product in four parts of K: 1, the square of `root`, in which it is lost, minus that,
    and 2. Added in this order they are 2."""
    a, b = (torch.zeros(parts, depth, dtype=dtype, device=device) for _ in range(2))
    a[own, 0] = torch.tensor([1.0, root, -root, 2.0], dtype=dtype, device=device)
    b[own, 0] = torch.tensor([1.0, root, root, 1.0], dtype=dtype, device=device)
    return a.flatten(), b.flatten()


def with_wgmma(device):
    """Skip where the CUDA kernels of Hopper cannot run."""
    available_on(LIBRARY, device)
    if device == "cuda" and LIBRARY.target(torch.device("cuda")).arch != 90:
        pytest.skip("no wgmma")


def check_order(monkeypatch, order, design, config, dtype=torch.float16, **options):
    """In any order of blocks, threads and copies, about half of which land at once: right, with all that may follow the sums,
    and the same bits as in another order."""
    a, b, c = (random(*shape, dtype=dtype) for shape in ((2, 136, 840), (2, 840, 200), (2, 136, 200)))
    options |= {"c": c, "beta": 0.5, "bias": random(200, dtype=dtype), "activation": "silu"}

    def result(order):
        monkeypatch.setenv("SIMT_ORDER", order)
        return bits(run_checked(LIBRARY, "matmul", design, a, b, config=config, **options)[0])

    assert torch.equal(result(order), result("4"))
