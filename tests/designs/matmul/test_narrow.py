"""Triton's tiles of `matmul` for few columns: which problems have them, and their results."""

import pytest
import torch

from tests.harness import DEVICES, prepare, random, run_checked, short, transposed
from tritonkernels.launch import LIBRARY
from tritonkernels.matmul.parts.space import NARROW
from tritonkernels.matmul.pipelined import DESIGN
from tritonkernels.target import Target

SIZES = [tile[:2] for tile in NARROW]


def offered(m, n, dtype=torch.float16, **options):
    """The sizes of those that a product has."""
    a, b = torch.empty(m, 300, dtype=dtype, device="meta"), torch.empty(300, n, dtype=dtype, device="meta")
    configs = DESIGN.configs(prepare("matmul", a, b, **options).problem, Target.named("h100"))
    sizes = {(config.kwargs["BLOCK_M"], config.kwargs["BLOCK_N"]) for config in configs}
    return [size for size in SIZES if size in sizes]


def test_which_problems_have_them():
    """Products with no more columns than the tile, and more rows."""
    assert SIZES == [(128, 32), (128, 16)]
    assert offered(500, 16) == offered(500, 1, torch.float32, precision="tf32") == SIZES
    assert offered(500, 17) == offered(33, 32) == SIZES[:1]
    assert offered(17, 16) == SIZES[1:]
    assert offered(500, 33) == offered(32, 32) == offered(500, 16, torch.int8) == []


@short(lambda device, size, transposed_a, n: device == "cpu" and transposed_a == (n % 8 == 0))
@pytest.mark.parametrize("n", [1, 8, 15, 16])
@pytest.mark.parametrize("transposed_a", [False, True])
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("device", DEVICES)
def test_results(device, size, transposed_a, n):
    """At the edges of two tiles of rows, with all that may follow."""
    m, k = 131, 200
    a, b, c, bias = (random(*shape, device=device).half() for shape in ((m, k), (k, n), (m, n), (n,)))
    a = transposed(a) if transposed_a else a
    config = {"BLOCK_M": size[0], "BLOCK_N": size[1]}
    for design in ("pipelined", "split_k"):
        run_checked(LIBRARY, "matmul", design, a, b, config=config, c=c, beta=-0.5, bias=bias, activation="silu")
