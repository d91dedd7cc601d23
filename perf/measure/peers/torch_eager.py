"""torch as it is when nobody has touched its switches: TF32 for convolutions, and split-K sums that may be added in 16 bits."""

import torch

from .. import baselines
from .peer import Peer

DEFAULTS = (
    (torch.backends.cuda.matmul, "fp32_precision", "none"),  # which is IEEE
    (torch.backends.cudnn.conv, "fp32_precision", "tf32"),
    (torch.backends.cuda.matmul, "allow_fp16_reduced_precision_reduction", True),
    (torch.backends.cuda.matmul, "allow_bf16_reduced_precision_reduction", True),
    (torch.backends.cudnn, "benchmark", False),
)


def build(problem, *args, **kwargs):
    _, function, writes_out = baselines.BASELINES[problem.op][0]

    def call(*args, **kwargs):
        with baselines.switched(DEFAULTS):
            return function(*args, **kwargs)

    return call, writes_out


PEER = Peer("torch-eager", "torch", build, capability=None)
