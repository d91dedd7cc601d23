"""The Triton design split_k of matmul: who adds a tile's splits."""

import pytest
import torch

from tests.harness import DEVICES, available_on, random, run_checked
from tritonkernels.launch import LIBRARY


@pytest.mark.parametrize("alone", [0, 2**30], ids=["a second kernel", "the last split"])
@pytest.mark.parametrize("device", DEVICES)
def test_splits_are_added(device, alone, monkeypatch):
    """By the last of a tile's splits to arrive, or, where they are many bytes, by a kernel of several programs a tile."""
    available_on(LIBRARY, device)
    LIBRARY.designs("matmul")  # imported after the backend is known
    monkeypatch.setattr("tritonkernels.matmul.split_k.ALONE", alone)
    a, b, c = (random(*shape, dtype=torch.float16, device=device) for shape in ((70, 300), (300, 45), (70, 45)))
    run_checked(LIBRARY, "matmul", "split_k", a, b, c=c, alpha=-1.5, beta=0.5, config={"SPLIT_K": 4})
