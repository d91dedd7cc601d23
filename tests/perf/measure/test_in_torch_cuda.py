"""perf torch on a GPU: a small model with the modules of both packages, so kernels of cuda_reference are built."""

import pytest
import torch

from perf.measure import in_torch


@pytest.mark.gpu
def test_everything_on_a_gpu(tmp_path, monkeypatch):
    for name, value in {"CALLS": 3, "ROUNDS": 2, "SECONDS": 0.0}.items():
        monkeypatch.setattr(in_torch, name, value)
    small = in_torch._example("resnet")
    tiny = ("ResNet", small.resnet(8).cuda(), (torch.randn(2, 3, 16, 16, device="cuda"), torch.randint(4, (2,), device="cuda")))
    monkeypatch.setattr(in_torch, "models", lambda device: [tiny])
    device = torch.device("cuda", 0)
    found = list(in_torch.model_times(device, in_torch.GpuClock(device), 5.0))
    assert len(found) == 2 * 2 * 5, "torch's, and both packages' where faster and throughout; as calls and as graphs"
