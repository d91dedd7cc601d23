"""GPU kernels written twice: as readable Triton here, as raw CUDA C++ in `cuda_reference`, under one signature.

    gemm, gemv, conv2d, matmul    the operations, on torch tensors
    conv2d_input, conv2d_weight, conv2d_bias    the gradients of conv2d, which its backward calls
    conv1d, conv3d, conv_transpose1d, conv_transpose2d    calls of these on views of the operands
    split(b, precision=...)       the planes of an operand of matmul that is reused, made once
    interleave(gate, value)       the operand of a gated linear unit: matmul(x, b, activation="swiglu")
    designs(op)                   the designs of an operation, simplest first
    configs(op, *args)            the legal configs of the design that a call uses, the one that it uses first
    explain(op, *args)            the design and config that a call uses, on which target, and what limits it
    tune(op, *args, budget=60)    times the designs' configs on this GPU and keeps the fastest for calls like this one
    nn                            Linear, Conv2d, and replace(model), which swaps torch's for them
    doctor()                      what this installation would run on, and what is missing

Importing costs nothing: neither Triton nor CUDA is touched before the first call. (As attributes, the functions shadow the
subpackages of the same name; `from tritonkernels.gemm import GEMM` still works.)
"""

import importlib
from typing import TYPE_CHECKING, Any, get_args

from . import explanation
from .annotations import Config, OperationName, ViewName
from .choice import tuner
from .conv2d import conv2d
from .conv2d_bias import conv2d_bias
from .conv2d_input import conv2d_input
from .conv2d_weight import conv2d_weight
from .design import Design, Designs
from .diagnosis import diagnose
from .gemm import gemm
from .gemv import gemv
from .launch import LIBRARY
from .matmul import interleave, matmul, split
from .report import Report
from .target import Target
from .views import conv1d, conv3d, conv_transpose1d, conv_transpose2d

if TYPE_CHECKING:
    from . import nn as nn

__version__ = "0.2.0.dev0"
OPS: tuple[OperationName, ...] = get_args(OperationName)
__all__ = [
    "OPS",
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
    return [*__all__, "__version__", "nn"]


if not TYPE_CHECKING:  # a type checker would take every name for an attribute

    def __getattr__(name):
        if name == "nn":  # imported when it is first used
            return importlib.import_module(".nn", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def designs(op: OperationName | ViewName) -> Designs:
    """The Designs of an operation, simplest first; each has a name, a summary and what it mirrors.

    `op` is one of OPS, or a function that is one of their calls on views: "conv1d" and the like.
    """
    return LIBRARY.designs(op)


def configs(
    op: OperationName | ViewName,
    *args: Any,
    design: Design | str | None = None,
    target: Target | str | None = None,
    **kwargs: Any,
) -> list[dict[str, Any]]:
    """The configs that `op(*args, **kwargs, config=...)` accepts, as dicts; first the one that it uses by default.

    They are those of the design that the call would use, or of the one that `design` names. `target` and errors are as with
    `explain`.

        for config in configs("gemm", a, b, design="tiled"):
            time(lambda: gemm(a, b, design="tiled", config=config))
    """
    return explanation.configs(LIBRARY, op, *args, design=design, target=target, **kwargs)


def explain(
    op: OperationName | ViewName,
    *args: Any,
    design: Design | str | None = None,
    config: Config | None = None,
    target: Target | str | None = None,
    **kwargs: Any,
) -> Report:
    """What `op(*args, **kwargs)` would do, as a Report: design, config, who chose them, grid, target and the roofline's limits.

    `target` names a GPU that need not be present ("h200", "RTX 4090", "sm_80"); None is the machine that the call would run
    on. Raises the same errors as the call.
    """
    return explanation.explain(LIBRARY, op, *args, design=design, config=config, target=target, **kwargs)


def tune(op: OperationName | ViewName, *args: Any, budget: float = 60.0, **kwargs: Any) -> Report:
    """Time the designs' configs for `op(*args, **kwargs)` on this GPU, and keep the fastest in the tuned table, as a Report.

    budget  seconds, builds included. These are made first, in processes that end before anything is timed

    Calls like this one, in this process and later ones, get the winner unless they name a design or config: those whose
    Problem differs only in the sizes' low bits. Every candidate is checked against float64 before it is timed.
    The operands keep their values; `out` is not written. Candidates run in this process: if one crashes it, nothing found so
    far is lost, and the next call goes on from there, as it does where the budget was up before every candidate was tried.

    Raises what the call raises; BackendError without a GPU; ArgumentError for a budget shorter than the first build;
    TuningError where the table cannot be written.
    """
    return tuner.tune(LIBRARY, op, args, kwargs, budget)


def doctor() -> Report:
    """What Triton kernels run on here, as a Report; never raises."""
    return diagnose()
