"""The CUDA C++ twins of tritonkernels' designs, with the same signatures.

On CUDA tensors a kernel is built by nvcc for the present GPU; on CPU tensors the unchanged source is built by g++ against
simt/, which runs every thread. Both are built on first use and cached (build.py); importing this package builds nothing.
"""

from typing import Any

from tritonkernels import explanation
from tritonkernels.annotations import Config, OperationName, ViewName
from tritonkernels.choice import tuner
from tritonkernels.design import Design, Designs
from tritonkernels.report import Report
from tritonkernels.target import Target

from . import build
from .conv2d import conv2d
from .conv2d_bias import conv2d_bias
from .conv2d_input import conv2d_input
from .conv2d_weight import conv2d_weight
from .gemm import gemm
from .gemv import gemv
from .launch import LIBRARY
from .matmul import interleave, matmul, split
from .views import conv1d, conv3d, conv_transpose1d, conv_transpose2d

__all__ = [
    "configs",
    "conv1d",
    "conv2d",
    "conv2d_bias",
    "conv2d_input",
    "conv2d_weight",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "designs",
    "doctor",
    "explain",
    "gemm",
    "gemv",
    "interleave",
    "matmul",
    "split",
    "tune",
]


def __dir__() -> list[str]:
    return __all__


def designs(op: OperationName | ViewName) -> Designs:
    """The Designs of an operation, simplest first; see tritonkernels.designs."""
    return LIBRARY.designs(op)


def configs(
    op: OperationName | ViewName,
    *args: Any,
    design: Design | str | None = None,
    target: Target | str | None = None,
    **kwargs: Any,
) -> list[dict[str, Any]]:
    """The configs that `op(*args, **kwargs, config=...)` accepts, its default first; see tritonkernels.configs."""
    return explanation.configs(LIBRARY, op, *args, design=design, target=target, **kwargs)


def explain(
    op: OperationName | ViewName,
    *args: Any,
    design: Design | str | None = None,
    config: Config | None = None,
    target: Target | str | None = None,
    **kwargs: Any,
) -> Report:
    """What `op(*args, **kwargs)` would do, as a Report; see tritonkernels.explain."""
    return explanation.explain(LIBRARY, op, *args, design=design, config=config, target=target, **kwargs)


def tune(op: OperationName | ViewName, *args: Any, budget: float = 60.0, **kwargs: Any) -> Report:
    """Time the designs' configs for `op(*args, **kwargs)` on this GPU, and keep the fastest; see tritonkernels.tune."""
    return tuner.tune(LIBRARY, op, args, kwargs, budget)


def doctor() -> Report:
    """What would be built here, and with which tools, as a Report; never raises."""
    return Report(build.doctor())
