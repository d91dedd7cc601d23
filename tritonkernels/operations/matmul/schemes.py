"""The split modes of FP32: their planes, and the workspace of them. Without kernels, for both packages."""

import functools
from dataclasses import dataclass, replace

import torch

from ...numerics import as_exact_from
from ...watch import fresh

AGAIN = 64  # rows and columns of the tiles that are looked through for what is computed again
MULTIPLE = 64  # of elements of K: a whole slice of every tile, and a multiple of the 16 bytes of a load


@dataclass(frozen=True)
class Scheme:
    """The planes of a mode: `step` is what each lower one is multiplied by; `smallest` and `limit` are the type's own.

    Products of planes i of A and j of B are taken where i + j <= depth. Of `shifted` rows the elements below `small`, where the
    largest are in [2^14, 2^15), may lose bits: a row's are counted, each as `weight`. `again`: what they may cost too much is
    computed once more in IEEE arithmetic, where other modes refuse it.
    """

    dtype: torch.dtype
    planes: int
    depth: int
    smallest: float
    limit: float
    step: float = 1.0
    shifted: bool = False
    small: float = 2.0**-18
    weight: int = 1
    again: bool = False

    @property
    def unit(self):
        """The precision of the tensor cores that multiply the planes."""
        return {torch.float32: "tf32", torch.float16: "fp16", torch.bfloat16: "bf16"}[self.dtype]


_FP16X3 = Scheme(torch.float16, 2, 1, smallest=2.0**-24, limit=65504.0, step=2.0**11, shifted=True)
_BF16 = {"smallest": 2.0**-133, "limit": (2 - 2.0**-7) * 2.0**127}
SCHEMES = {
    "tf32x3": Scheme(torch.float32, 2, 1, smallest=2.0**-136, limit=(2 - 2.0**-10) * 2.0**127),
    "fp16x3": _FP16X3,
    "fp32": replace(_FP16X3, small=2.0**-11, weight=64, again=True),
    "bf16x6": Scheme(torch.bfloat16, 3, 2, **_BF16),
    "bf16x9": Scheme(torch.bfloat16, 3, 4, **_BF16),
}
# Of fewer or more products the bound of fp32's planes is not below that of ieee.
FEWEST, MOST = as_exact_from("fp32", "ieee"), 2**21
NO_FINER_THAN_IEEE = ("ieee", "tf32", *SCHEMES)  # precisions whose promises IEEE arithmetic keeps, too


@functools.lru_cache(256)
def in_ieee(problem):
    """The problem, as designs compute it that have IEEE arithmetic for all of these precisions."""
    return replace(problem, precision="ieee")


def cannot_fuse(problem):
    """Why the kernel of a product cannot split its operands itself, as a sentence, or None."""
    if problem.precision not in SCHEMES:
        modes = ", ".join(name for name, scheme in SCHEMES.items() if not scheme.shifted)
        return f"it multiplies float32 as {modes}, not {problem.precision}"
    if SCHEMES[problem.precision].shifted:
        return f"{problem.precision} shifts rows by their largest elements, which no slice of them knows: planes has it"
    return None


def padded(k):
    """K of planes: at least one MULTIPLE, so that rows are aligned where K is 0."""
    return max(1, -(-k // MULTIPLE)) * MULTIPLE


def room(matrix, precision):
    """(what of it is split, planes, ranges) of an FP32 matrix (batch, R, K): one of the batch, where it shares one.

    planes  (planes, batch, R, K padded to a multiple of 64), K contiguous
    ranges  (batch, 3, R) int32, zeros, to be what a row's shift and its refusals are made from: the bits of its largest finite
            |x|, those of its smallest |x| with all 31 flipped, and how many of its elements are raised; where none is, minus
            how many of another row it takes to refuse a product. All are maxima or sums, in any order. None in modes that
            shift nothing
    """
    scheme = SCHEMES[precision]
    once = matrix if matrix.stride(0) else matrix[:1]
    batch, r, k = once.shape
    planes = torch.empty((scheme.planes, batch, r, padded(k)), dtype=scheme.dtype, device=matrix.device)
    zeros = functools.partial(torch.zeros, (batch, 3, r), dtype=torch.int32, device=matrix.device)
    return once, planes, fresh(zeros) if scheme.shifted else None


def side_by_side(matrices, precision):
    """The shapes of the planes of FP32 matrices (..., R, K) with those of a row one after the other, and of ranges or None."""
    scheme, (*batch, r, k) = SCHEMES[precision], matrices.shape
    return (*batch, r, scheme.planes * padded(k)), (*batch, 3, r) if scheme.shifted else None


def apart(planes, precision):
    """Planes side by side (batch, R, planes K) as those of `room`, with other strides."""
    return planes.unflatten(-1, (SCHEMES[precision].planes, -1)).permute(2, 0, 1, 3)


def of_batch(matrix, planes, ranges):
    """Both of the whole batch, expanded."""
    every = matrix.shape[0]
    return planes.expand(-1, every, -1, -1), None if ranges is None else ranges.expand(every, -1, -1)
