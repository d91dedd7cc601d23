"""The Triton design split_k of matmul: which kernel adds a tile's splits, in which order, and how many there are."""

import sys

import pytest
import torch
import triton

from tests.designs.matmul.exact import OF_GROUPS, computed, of_four_parts
from tests.harness import DEVICES, available_on, prepare, random, run_checked
from tritonkernels.launch import LIBRARY
from tritonkernels.operations.gemm.split_counts import counts_for
from tritonkernels.target import Target

(SPLIT_K,) = (design for design in LIBRARY.designs("matmul") if design.name == "split_k")
BY_THE_LAST, BY_A_SECOND_KERNEL = 2**30, 0  # ALONE
adders = pytest.mark.parametrize("alone", [BY_A_SECOND_KERNEL, BY_THE_LAST], ids=["a second kernel", "the last split"])


@adders
@pytest.mark.parametrize("device", DEVICES)
def test_splits_are_added(device, alone, monkeypatch):
    """By the last split of a tile to arrive or, if they are many bytes, by a kernel with several programs per tile."""
    available_on(LIBRARY, device)
    monkeypatch.setattr(sys.modules["tritonkernels.matmul.split_k"], "ALONE", alone)
    a, b, c = (random(*shape, dtype=torch.float16, device=device) for shape in ((70, 300), (300, 45), (70, 45)))
    run_checked(LIBRARY, "matmul", "split_k", a, b, c=c, alpha=-1.5, beta=0.5, config={"SPLIT_K": 4})


@adders
@pytest.mark.parametrize("parts, own", [(4, (0, 1, 2, 3)), *((28, own) for own in OF_GROUPS.values()), (7, (0, 2, 5, 6))])
@pytest.mark.parametrize("block", (16, 64, 128))
@pytest.mark.parametrize("device", DEVICES)
def test_in_the_order_of_k(device, block, parts, own, alone, monkeypatch):
    """A large tile's one at a time, a small one's many at once, of which the last are fewer. The next call finds the counters
    at zero."""
    available_on(LIBRARY, device)
    monkeypatch.setattr(sys.modules["tritonkernels.matmul.split_k"], "ALONE", alone)
    a, b = of_four_parts(32, parts, own, device)
    sizes = {"BLOCK_M": block, "BLOCK_N": block, "BLOCK_K": 32, "GROUP_M": 2, "PACK_A": False, "PACK_B": False}
    config = triton.Config(sizes | {"SPLIT_K": parts}, num_warps=4, num_stages=2)
    for _ in range(2):
        launch, result = computed(SPLIT_K, config, a.repeat(block + 2, 1), b.repeat(block // 2, 1).t(), out_dtype=torch.float32)
        assert result.unique().tolist() == [2.0]
    assert launch.kernel.fn.__name__ == ("_split_kernel" if alone else "_add_splits_kernel")


@pytest.mark.parametrize(
    "tiles, k, block_k, filling",
    [
        (36, 7472, 16, [3, 7, 11, 14]),  # 108, 252, 396 and 504 blocks on 132 SMs
        (3, 7872, 16, [41, 82, 123]),  # of 12, 6 and 4 slices; shorter ones would have less than 512 bytes
        (1, 128, 16, [2]),
        (264, 4096, 16, [2]),
        (600, 4096, 16, []),
        (0, 4096, 16, []),
        (4, 0, 16, []),  # K of no slice, as alpha = 0 leaves it, may have any power of split_counts
    ],
)
def test_splits_fill_the_sms(tiles, k, block_k, filling):
    a = torch.empty(8, k, dtype=torch.float64, device="meta")
    problem = prepare("matmul", a, a.mT).problem
    powers = {power for power in (4, 64) if power * block_k <= k or not k}
    assert counts_for(tiles, [4, 64], problem, block_k, Target.named("h100")) == sorted({*filling, *powers})
