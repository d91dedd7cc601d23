"""A fault of Triton 3.6's LLVM that gives wrong indices: a kernel that has it is not launched.

LLVM packs two shifted indices into one number of 64 bits, and only the upper one is used afterwards. But the lower one, which
it takes for meaningless, runs over into the upper one:

    mul.wide.u32 %rd101, %r1, 2147483648;  // the thread's number shifted by 31: in no index
    or.b64       %rd104, %rd101, %rd103;   // an index in the upper half
    mov.b64      {_, %r32}, %rd104;        // that index, with bits of the thread's number

Found by compute-sanitizer in conv2d's implicit_gemm, in tf32 with an image that is not aligned to 16 bytes: threads wrote next
to their results. Such tiles are no candidates any more (conv2d/parts/slices.py); of what else the fault may be in, this is the
check. Triton 3.7 and later do not pack so.
"""

import functools
import re

import torch

from .errors import LaunchError

LARGEST_INDEX = 1024  # threads of a block: their number times a smaller factor stays in the lower half
_PRODUCT = re.compile(r"mul\.wide\.[su]32\s+(%rd\d+), %r\d+, (\d+);")
_UNION = re.compile(r"or\.b64\s+(%rd\d+), (%rd\d+), (%rd\d+);")
_UPPER = re.compile(r"mov\.b64\s+\{_, %r\d+\}, (%rd\d+);")


@functools.cache
def is_known_of():
    """Whether this Triton has the fault."""
    import triton

    return triton.__version__.startswith("3.6.") and not torch.version.hip


def check(compiled):
    """Raise LaunchError if the compiled kernel has the fault."""
    if is_known_of() and is_faulty(compiled.asm.get("ptx", "")):
        raise LaunchError(
            f"Triton 3.6 compiles {compiled.name} wrongly for this config and these operands: bits of the thread's number get "
            "into an index (tritonkernels/miscompiled.py). Triton 3.7 and later do not; or name another config or design."
        )


def is_faulty(ptx):
    """Whether an index in the PTX is the upper half of a number whose lower half may run over."""
    beyond = {register for register, factor in _PRODUCT.findall(ptx) if int(factor) * LARGEST_INDEX > 2**32}
    packed = {union for union, *parts in _UNION.findall(ptx) if not beyond.isdisjoint(parts)}
    return not packed.isdisjoint(_UPPER.findall(ptx))
