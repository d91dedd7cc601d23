"""Kernels compiled for GPUs that are not present, and their machine code."""

from .calls import representative_calls, unusual_calls
from .compiling import compile_launch

__all__ = ["compile_launch", "representative_calls", "unusual_calls"]
