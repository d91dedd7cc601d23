"""Kernels that begin while the one before them on the stream still runs; cuda_reference/common/overlap.cuh says why and how.

Every contender's kernel calls wait_for_earlier_kernels() before it reads or writes anything, and is launched so where the GPU
can (launch.py). A lesson's kernels do not, and are launched alone (lesson.py).
"""

from triton.language.core import TRITON_BUILTIN, builtin, constexpr

from .. import backend

if backend.name() == "interpreter":

    def wait_for_earlier_kernels():
        """Kernels run one after the other."""

    setattr(wait_for_earlier_kernels, TRITON_BUILTIN, True)  # Triton refuses to hash kernels that call other functions
else:
    import triton
    from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

    @builtin
    def _begins_early(_semantic=None):
        """Whether the kernel is compiled to begin before the end of those before it."""
        return constexpr(getattr(_semantic.builder.options, "launch_pdl", False))

    @triton.jit  # Triton's cache knows the text of such a function, of a builtin it does not
    def wait_for_earlier_kernels():
        """Everything before this in the stream has ended and is visible; the next kernel may begin."""
        if _begins_early():
            gdc_wait()
            gdc_launch_dependents()
