"""Triton's interpreter, made as strict as a GPU, and faster.

A kernel that is wrong on a GPU should fail here too, so that tests notice it without one. So, unlike in Triton's:

- A store through a tensor descriptor (TMA) writes whole chunks of 16 bytes, up to 15 bytes past a row of another length.
- An access outside of the memory of the launch's tensors is an error.
- So is an integer division by zero of scalars, or in all lanes of a block (in some lanes it may be masked).
- So is an empty grid.

Imported only after Triton is set to interpret (backend.py).
"""

import bisect
import copy
import sys

import numpy
from triton.runtime import interpreter
from triton.runtime.errors import InterpreterError
from triton.tools.tensor_descriptor import TensorDescriptor

CHUNK = 16  # bytes


class _Memory:
    """The memory of a launch's tensors, as sorted ranges of addresses; a view may begin within its rows, so whole storages."""

    def __init__(self, arguments):
        sizes = {storage.data_ptr(): storage.nbytes() for storage in _storages(arguments)}
        self.starts = sorted(sizes)
        self.ends = [start + sizes[start] for start in self.starts]

    def check(self, access, pointers, mask):
        """Raise if an unmasked lane accesses anything else."""
        size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        addresses = pointers.data
        if self._in_one_range(addresses, size):
            return
        unmasked = numpy.asarray(mask.data) != 0  # a descriptor's mask is an array already
        addresses = addresses[numpy.broadcast_to(unmasked, addresses.shape)]
        if not addresses.size or self._in_one_range(addresses, size):
            return
        ranges = numpy.searchsorted(numpy.array(self.starts, numpy.uint64), addresses, side="right")
        outside = addresses + numpy.uint64(size) > numpy.array([0, *self.ends], numpy.uint64)[ranges]
        if outside.any():
            raise IndexError(f"{access} outside of every tensor of the launch, in {outside.sum()} of {outside.size} lanes")

    def _in_one_range(self, addresses, size):
        at = bisect.bisect(self.starts, int(addresses.min())) - 1
        return at >= 0 and int(addresses.max()) + size <= self.ends[at]


def _storages(arguments):
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from _storages(argument)
        elif isinstance(argument, TensorDescriptor):
            yield argument.base.untyped_storage()
        elif hasattr(argument, "data_ptr"):
            yield interpreter._unwrap_tensor(argument).untyped_storage()


class _HarshBuilder(interpreter.InterpreterBuilder):
    memory = _Memory(())  # of the running launch

    def create_masked_load(self, pointers, mask, *others, **options):
        self.memory.check("a load", pointers, mask)
        return super().create_masked_load(pointers, mask, *others, **options)

    def create_masked_store(self, pointers, value, mask, *others, **options):
        self.memory.check("a store", pointers, mask)
        return super().create_masked_store(pointers, value, mask, *others, **options)

    def create_atomic_rmw(self, operation, pointers, value, mask, *others):
        self.memory.check("an atomic", pointers, mask)
        return super().create_atomic_rmw(operation, pointers, value, mask, *others)

    def create_atomic_cas(self, pointers, *others):
        self.memory.check("an atomic", pointers, interpreter.TensorHandle(numpy.True_, interpreter.tl.int1))
        return super().create_atomic_cas(pointers, *others)

    def create_descriptor_store(self, descriptor, *others):
        return super().create_descriptor_store(_in_whole_chunks(descriptor), *others)

    def create_idiv(self, left, right):
        return super().create_idiv(left, _not_zero(right))

    def create_srem(self, left, right):
        return super().create_srem(left, _not_zero(right))

    def create_urem(self, left, right):
        return super().create_urem(left, _not_zero(right))


def _in_whole_chunks(descriptor):
    """The descriptor with its rows rounded up to whole chunks, which is what a store writes."""
    *outer, columns = descriptor.shape
    chunk = CHUNK * 8 // descriptor.base.get_element_ty().primitive_bitwidth
    enlarged = copy.copy(descriptor)
    enlarged.shape = [*outer, interpreter.TensorHandle(-(-columns.data // chunk) * chunk, columns.dtype)]
    return enlarged


def _not_zero(divisor):
    if not divisor.data.any():
        raise ZeroDivisionError("an integer division by zero")
    return divisor


def prepare(triton_was_imported):
    """Called once per process, before any kernel of this library is decorated."""
    if triton_was_imported:
        _interpret_standard_library()
    interpreter.interpreter_builder.__class__ = _HarshBuilder
    _prepare_launches()


def _prepare_launches():
    """Make a launch check its grid and note its tensors, and patch triton.language only once.

    Triton's interpreter patches all of triton.language in every call of a device function, which takes longer than most of
    these functions. Once per launch is enough for functions that see the same modules of it.
    """
    language = interpreter.tl
    patch, execute = interpreter._patch_lang, interpreter.GridExecutor.__call__
    patched = set()  # in the running launch

    def patch_once(function):
        visible = frozenset(m.__name__ for m in function.__globals__.values() if m is language or m is language.core)
        if visible not in patched:
            patched.add(visible)
            return patch(function)

    def execute_prepared(self, *args, **kwargs):
        if not callable(self.grid) and 0 in self.grid:
            raise InterpreterError(f"the grid {self.grid} is empty")
        patched.clear()
        interpreter.interpreter_builder.memory = _Memory((*args, *kwargs.values()))
        return execute(self, *args, **kwargs)

    interpreter._patch_lang, interpreter.GridExecutor.__call__ = patch_once, execute_prepared


def _interpret_standard_library():
    """Triton decorated tl.sum, tl.zeros, ... when it was imported: decorate them again, wherever they are referenced."""
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    decorated = {}
    for module in [m for key, m in sys.modules.items() if key.split(".")[:2] == ["triton", "language"]]:
        for attribute, value in list(vars(module).items()):
            if isinstance(value, JITFunction):
                function = decorated.setdefault(id(value), InterpretedFunction(value.fn))
                setattr(module, attribute, function)
