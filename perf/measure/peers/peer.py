"""What a Peer is, and refusals that several have in common."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tritonkernels.errors import UnsupportedError


@dataclass(frozen=True)
class Peer:
    """build(problem, *args, **kwargs) of the user function's arguments returns (call, whether it writes `out`).

    build only refuses, with UnsupportedError, or prepares: what takes long or could hang belongs to the first call(*args,
    out=, **kwargs). A call serves one case, always with operands of the same shapes, strides and types, but other addresses.
    """

    name: str
    package: str  # that it needs, as it is imported
    build: Callable[..., tuple[Callable[..., torch.Tensor], bool]]
    capability: tuple[int, int] | None = (7, 0)  # least compute capability; None: no GPU is needed

    def missing(self, device):
        """Why it cannot run here at all, or None."""
        if importlib.util.find_spec(self.package) is None:
            return f"the Python package {self.package} is not installed"
        if self.capability and not (device.type == "cuda" and torch.version.cuda):
            return "it needs an NVIDIA GPU"
        if self.capability and torch.cuda.get_device_capability(device) < self.capability:
            return f"it needs compute capability {'.'.join(map(str, self.capability))} or later"
        return None


def only_plain_products(problem, a, b, dtypes):
    """Refuse what is not alpha A B + beta C of two matrices of one of the dtypes."""
    if problem.op not in ("gemm", "matmul"):
        raise UnsupportedError(f"it is not compared in {problem.op}")
    if a.dtype not in dtypes or problem.out_dtype != a.dtype:
        raise UnsupportedError(f"it is not compared in products of {a.dtype} into {problem.out_dtype}")
    if a.ndim != 2 or b.ndim != 2:
        raise UnsupportedError("it is compared for matrices, not for batches")
    if fused := {"bias", "activation"}.intersection(getattr(problem, "fused", ())):
        raise UnsupportedError(f"it is compared without {' and '.join(sorted(fused))}")


def only_plain_convolutions(problem, image, dtypes, options: dict[str, Any]):
    """Refuse what is not a convolution of a batch, in one of the dtypes, padded alike on both sides."""
    if problem.op != "conv2d":
        raise UnsupportedError(f"it is not compared in {problem.op}")
    if image.dtype not in dtypes:
        raise UnsupportedError(f"it is not compared in convolutions of {image.dtype}")
    if image.ndim != 4:
        raise UnsupportedError("it is compared for batches of images")
    if isinstance(options.get("padding", 0), str):
        raise UnsupportedError("it has no padding by name")
