"""What `legal` counts of the Triton designs' tiles: sums of a thread, and bytes of shared memory. Needs no GPU."""

import pytest
import torch

from tests.harness import prepare
from tritonkernels.matmul.parts import space
from tritonkernels.target import Target

H200, A100 = Target.named("h200"), Target.named("a100")
HALF, EIGHTH = {"dtype": torch.float16}, {"dtype": torch.float8_e4m3fn}


def problem(dtype, **options):
    a, b = (torch.empty(1024, 1024, dtype=dtype, device="meta") for _ in range(2))
    return prepare("matmul", a, b.t(), **options).problem


@pytest.mark.parametrize(
    "tile, target, asked, expected",
    [
        ((128, 256, 128, 8, 3), H200, HALF, True),  # 128 sums
        ((128, 256, 128, 8, 3), A100, HALF, False),  # with operands in registers
        ((128, 128, 128, 8, 3), A100, HALF, True),
        ((128, 256, 128, 8, 3), H200, HALF | {"activation": "gelu"}, False),
        ((128, 256, 128, 8, 3), H200, HALF | {"activation": "relu"}, True),
        ((128, 256, 128, 8, 5), H200, HALF, False),  # 240 KB
        ((256, 256, 64, 8, 3), H200, HALF, False),
        ((128, 128, 128, 8, 3), H200, EIGHTH, True),
        ((128, 256, 128, 8, 3), H200, EIGHTH, False),  # two sets of sums
        ((128, 256, 128, 8, 3), H200, EIGHTH | {"accumulate": "fast"}, True),
        ((128, 64, 128, 4, 3), H200, EIGHTH, False),  # serialised: 128 rows of one warpgroup
        ((64, 64, 256, 4, 3), H200, EIGHTH, False),  # and slices beyond what its sums may run
        ((64, 64, 128, 4, 3), H200, EIGHTH, True),
    ],
    ids=str,
)
def test_of_tl_dot(tile, target, asked, expected):
    assert space.legal(tile, problem(**asked), target) == expected
