"""Kernels that begin while the one before them on the stream still runs; cuda_reference/common/overlap.cuh says why and how.

A kernel that calls wait_for_earlier_kernels() before it reads or writes anything is launched so, where the GPU can (launch.py).
"""

from triton.language.core import TRITON_BUILTIN, builtin, constexpr
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from .. import backend
from .triton import triton

if backend.name() == "interpreter":

    def _begins_early():
        """Kernels run one after the other."""
        return False

    setattr(_begins_early, TRITON_BUILTIN, True)  # Triton refuses to hash kernels that call other functions
else:

    @builtin
    def _begins_early(_semantic=None):
        """Whether the kernel is compiled to begin before the end of those before it."""
        return constexpr(getattr(_semantic.builder.options, "launch_pdl", False))


@triton.jit
def wait_for_earlier_kernels():
    """Everything before this in the stream has ended and is visible; the next kernel may begin."""
    if _begins_early():
        gdc_wait()
        gdc_launch_dependents()
