"""The Triton design split_k of matmul: which kernel adds a tile's splits."""

import sys

import pytest
import torch

from tests.harness import DEVICES, available_on, random, run_checked
from tritonkernels.launch import LIBRARY


@pytest.mark.parametrize("alone", [0, 2**30], ids=["a second kernel", "the last split"])
@pytest.mark.parametrize("device", DEVICES)
def test_splits_are_added(device, alone, monkeypatch):
    """By the last split of a tile to arrive or, if they are many bytes, by a kernel with several programs per tile."""
    available_on(LIBRARY, device)
    LIBRARY.designs("matmul")  # imported after the backend is known
    monkeypatch.setattr(sys.modules["tritonkernels.matmul.split_k"], "ALONE", alone)
    a, b, c = (random(*shape, dtype=torch.float16, device=device) for shape in ((70, 300), (300, 45), (70, 45)))
    run_checked(LIBRARY, "matmul", "split_k", a, b, c=c, alpha=-1.5, beta=0.5, config={"SPLIT_K": 4})
