"""Kernels that begin while the one before them on the stream still runs; cuda_reference/common/overlap.cuh says why and how.

A kernel that calls wait_for_earlier_kernels() before it reads or writes anything is launched so, where the GPU can (launch.py).
"""

from triton.language.core import TRITON_BUILTIN, builtin

from .. import backend

if backend.name() == "interpreter":

    def wait_for_earlier_kernels():
        """Kernels run one after the other."""

    setattr(wait_for_earlier_kernels, TRITON_BUILTIN, True)  # Triton refuses to hash kernels that call other functions
else:
    from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

    @builtin
    def wait_for_earlier_kernels(_semantic=None):
        """Everything before this in the stream has ended and is visible; the next kernel may begin. Nothing if it is compiled
        for a launch after the end of all before."""
        if getattr(_semantic.builder.options, "launch_pdl", False):
            gdc_wait(_semantic=_semantic)
            gdc_launch_dependents(_semantic=_semantic)
