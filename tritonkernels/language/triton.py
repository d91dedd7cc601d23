"""Triton as the kernels import it: on a GPU Triton itself, in the interpreter the copy that interprets.

A kernel's file says `from ..language.triton import tl, triton` for `import triton` and `import triton.language as tl`.
"""

from .. import backend

if backend.name() == "interpreter":
    from ..interpreter import tl, triton
else:
    import triton
    import triton.language as tl

__all__ = ["tl", "triton"]
