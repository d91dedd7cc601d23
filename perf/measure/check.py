"""Checks that a contender computes the right result and writes nothing else.

The result starts as poison between two bands of poison, which shows elements that were not written and writes outside.
Afterwards the operands are compared with a copy, from which the float64 reference is computed.
"""

import math
from dataclasses import dataclass

import torch

from tritonkernels import numerics

BAND = 1024  # elements; keeps the result as aligned as the allocation


class Output:
    """A tensor to write, shaped and strided like `like`, in the middle of poison."""

    def __init__(self, like):
        self._poison = math.nan if like.dtype.is_floating_point else torch.iinfo(like.dtype).min
        self._buffer = torch.full((like.numel() + 2 * BAND,), self._poison, dtype=like.dtype, device=like.device)
        self.tensor = self._buffer.as_strided(like.shape, like.stride(), BAND)

    def poison(self):
        self._buffer.fill_(self._poison)

    def left(self, values):
        """How many values are still poison."""
        return int((values.isnan() if values.dtype.is_floating_point else values == self._poison).sum())

    def escaped(self):
        """How many elements were written before and after the result."""
        bands = torch.cat((self._buffer[:BAND], self._buffer[-BAND:]))
        return bands.numel() - self.left(bands)


@dataclass(frozen=True)
class Finding:
    verdict: numerics.Verdict
    fault: str | None  # what is wrong, in words; None for a correct result

    @property
    def ok(self):
        return self.fault is None


class Checker:
    """Judges results of one call; keeps a copy of its operands."""

    def __init__(self, args, kwargs):
        self._args, self._kwargs = args, kwargs
        self._pristine = [a.clone() for a in args]

    def judge(self, problem, output, computed, writes_out=True, transform=None):
        """The Finding on `computed`, which a contender returned for out=output.tensor."""
        verdict = numerics.judge(problem, computed, *self._pristine, transform=transform, **self._kwargs)
        return Finding(verdict, self._fault(verdict, output, computed, writes_out))

    def restore(self):
        """Restore operands that a contender changed; returns whether there were any."""
        changed = [(a, b) for a, b in zip(self._args, self._pristine) if not torch.equal(a, b)]
        for operand, pristine in changed:
            operand.copy_(pristine)
        return bool(changed)

    def _fault(self, verdict, output, computed, writes_out):
        if self.restore():
            return "it changed an operand"
        if escaped := output.escaped():
            return f"it wrote {escaped} elements outside the result"
        if writes_out and computed.data_ptr() != output.tensor.data_ptr():
            return "it returned a tensor other than out"
        if left := output.left(computed):
            return f"{left} of {computed.numel()} elements were not written, or are NaN"
        return None if verdict.ok else "the error exceeds its bound"
