"""The lessons of Hopper in Gluon: their results by an emulation, and the machine code for sm_90."""

import importlib

import numpy
import pytest
import torch

from tests.designs.matmul import gluon_threads
from tritonkernels.config import config_of
from tritonkernels.matmul import prepare
from tritonkernels.target import Target

LADDER = ("wgmma", "tma", "specialized", "tile_loop", "in_turn")
PROBLEMS = {  # (M, N, K), layouts of A and B
    "edges": (200, 300, 333, "row", "row"),
    "transposed": (264, 520, 648, "col", "col"),
    "less than a slice": (130, 8, 24, "row", "col"),
    "one": (1, 1, 1, "row", "row"),
    "no K": (70, 40, 0, "row", "row"),
}


def operand(generator, rows, cols, layout):
    shape = (rows, cols) if layout == "row" else (cols, rows)
    values = torch.randint(-4, 5, shape, generator=generator).to(torch.float16)
    return values if layout == "row" else values.t()


@pytest.mark.parametrize("shape", PROBLEMS.values(), ids=PROBLEMS)
@pytest.mark.parametrize("name", LADDER)
def test_results_of_partitions_in_any_order(name, shape):
    """Small whole numbers, so that every sum is exact."""
    m, n, k, a_layout, b_layout = shape
    generator = torch.Generator().manual_seed(m)
    a, b = operand(generator, m, k, a_layout), operand(generator, k, n, b_layout)
    c = torch.randint(-9, 10, (m, n), generator=generator).float()
    out = torch.full((m, n + 3), 77.0)[:, 1 : n + 1]
    call = prepare(a, b, c=c, alpha=2.0, beta=0.5, out_dtype=torch.float32, out=out)
    design = importlib.import_module(f"tritonkernels.matmul.{name}").DESIGN
    (config,) = design.configs(call.problem, Target.named("h200"))
    config = config_of(config.kwargs | ({"PROGRAMS": 2} if "PROGRAMS" in config.kwargs else {}), config.num_warps)
    *packs, launch = design.launches(call.problem, config, *call.parts[0])
    for pack in packs:
        pack.run()
    gluon_threads.run(launch)
    expected = 2 * a.double() @ b.double() + c.double() / 2
    numpy.testing.assert_array_equal(out.numpy(), expected.float().numpy())
    assert (out._base[:, [0, -1, -2]] == 77).all(), "nothing outside is written"
