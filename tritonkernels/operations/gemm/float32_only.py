"""What gemm's own designs refuse: float64, which matmul's multiply on tensor cores (as_matmul.py)."""

import torch


def float32_only(problem, target):
    """`refuses` of a design without float64."""
    return None if problem.dtype == torch.float32 else "it computes float32 only; designs of matmul take float64"
