"""The operations as operators of torch: torch.ops.tritonkernels.gemm and so on, of both packages.

Here, and nowhere else, is what torch asks of an operator: schemas, fake tensors, autograd in both modes, autocast, vmap, FLOP
counts. Kernels and designs know nothing of it. What differs between operations is in their Rules (rules.py).
"""

from .operator import Operator
from .rules import Rules

__all__ = ["Operator", "Rules"]
