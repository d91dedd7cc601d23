"""Checks that a contender computes the right result and writes nothing else.

The result starts as poison between two bands of poison, which shows elements that were not written and writes outside.
Afterwards the operands are compared with a copy, from which the float64 reference is computed.
"""

import copy
import dataclasses
import math
from dataclasses import dataclass

import torch

from tritonkernels import numerics
from tritonkernels.problem import Problem, dtype_name

from .baselines import SPLIT, switched

BAND = 1024  # elements; keeps the result as aligned as the allocation
COARSER = {"fp64": "ieee"} | dict.fromkeys(("ieee", *SPLIT), "tf32")  # the next smaller precision
SUMMED = {"gemm": (0, (-1,)), "gemv": (0, (-1,)), "matmul": (0, (-1,)), "conv2d": (1, (1, 2, 3))}  # operand, summed dimensions


class Output:
    """A tensor to write, shaped and strided like `like`, in the middle of poison."""

    def __init__(self, like):
        self._poison = math.nan if like.dtype.is_floating_point else torch.iinfo(like.dtype).min
        self._over(torch.full((like.numel() + 2 * BAND,), self._poison, dtype=like.dtype, device=like.device), like)

    def _over(self, buffer, like):
        self._buffer = buffer
        self.tensor = buffer.as_strided(like.shape, like.stride(), BAND)

    def poison(self, *others):
        for tensor in (self._buffer, *others):
            tensor.fill_(self._poison)

    def copy(self):
        """What is there now, on the current stream."""
        copied = copy.copy(self)
        copied._over(self._buffer.clone(), self.tensor)
        return copied

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
    inexact: bool = False  # nothing but the error is wrong, and not every element is 0
    smaller: tuple[Problem, numerics.Verdict] | None = None  # of an inexact result: the precision whose bound it keeps

    @property
    def ok(self):
        return self.fault is None


class Checker:
    """Judges results of one call; keeps a copy of its operands."""

    def __init__(self, args, kwargs):
        self._operands = [t for t in (*args, *kwargs.values()) if isinstance(t, torch.Tensor)]
        self._pristine = [t.clone() for t in self._operands]
        kept = iter(self._pristine)
        self._args = [next(kept) if isinstance(t, torch.Tensor) else t for t in args]
        self._kwargs = {name: next(kept) if isinstance(t, torch.Tensor) else t for name, t in kwargs.items()}
        self._asked, self._expected = None, None  # the last call's: most contenders are judged alike, and float64 takes long

    def judge(self, problem, output, computed, writes_out=True, **options):
        """The Finding on `computed`, which a contender returned for out=output.tensor. `options` are numerics.judge's."""
        if deferred(computed):
            lack = "plain tensor: its work may be left to its reader" if isinstance(computed, torch.Tensor) else "tensor"
            fault = f"it returned a {type(computed).__name__}, no {lack}"
            return Finding(numerics.Verdict(math.inf, 0.0, False), fault)
        if (got := _form(computed)) != (wanted := _form(output.tensor)):
            return Finding(numerics.Verdict(math.inf, 0.0, False), f"it returned {got}, not {wanted}")
        verdict = self.verdict(problem, computed, **options)
        fault = self._fault(output, computed, writes_out)
        return Finding(verdict, fault) if fault or verdict.ok else self._excess(verdict, problem, computed, options)

    def verdict(self, problem, computed, **options):
        """The verdict of the result alone."""
        if self._asked != (problem, options):
            with switched(((torch.backends.cudnn, "benchmark", False),)):  # a search would run all of float64's algorithms
                self._expected = numerics.Expected(problem, *self._args, **self._kwargs, **options)
            self._asked = problem, options
        return self._expected.judge(computed)

    def restore(self):
        """Restore operands that a contender changed; returns whether there were any."""
        changed = [(a, b) for a, b in zip(self._operands, self._pristine) if not torch.equal(a, b)]
        for operand, pristine in changed:
            operand.copy_(pristine)
        return bool(changed)

    def _fault(self, output, computed, writes_out):
        if self.restore():
            return "it changed an operand"
        if escaped := output.escaped():
            return f"it wrote {escaped} elements outside the result"
        if writes_out and computed.data_ptr() != output.tensor.data_ptr():
            return "it returned a tensor other than out"
        if left := output.left(computed):
            return f"{left} of {computed.numel()} elements were not written, or are NaN"
        return None

    def _excess(self, verdict, problem, computed, options):
        if not computed.any():
            return Finding(verdict, "the error exceeds its bound: every element is 0")
        smaller = problem
        while precision := COARSER.get(smaller.precision):
            smaller = dataclasses.replace(smaller, precision=precision)
            if (kept := self.verdict(smaller, computed, **options)).ok:
                fault = f"the error exceeds its bound: it is that of a smaller precision than {problem.precision}"
                return Finding(verdict, fault, True, (smaller, kept))
        return Finding(verdict, "the error exceeds its bound", True)


def deferred(computed):
    """Whether a result may not be computed yet: a subclass can do that when it is read."""
    return type(computed) is not torch.Tensor


def _form(tensor):
    return f"{dtype_name(tensor.dtype)} {tuple(tensor.shape)} on {tensor.device}"


def thin_out(op, args):
    """Zero an operand but for one line, so that each element of the result is a single product.

    Rounding errors of long sums hide those of operands: at K = 4096 fp32's bound admits what TF32 computes of random numbers.
    Without a sum nothing hides them.
    """
    index, dims = SUMMED[op]
    operand = args[index]
    line = [slice(None)] * operand.ndim
    for dim in dims:
        middle = operand.shape[dim] // 2
        line[dim] = slice(middle, middle + 1)
    kept = operand[tuple(line)].clone()
    operand.zero_()
    operand[tuple(line)] = kept
