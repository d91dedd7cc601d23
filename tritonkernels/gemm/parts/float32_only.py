"""What most designs of gemm refuse: float64. For the type alone `rasterized` is enough; the others are about speed."""

import torch


def float32_only(problem, target):
    """`refuses` of a design without float64."""
    return None if problem.dtype == torch.float32 else "it computes float32 only; rasterized takes float64 too"
