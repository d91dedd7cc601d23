"""Triton's interpreter, made as strict as a GPU, and faster.

A kernel that is wrong on a GPU should fail here too, so that tests notice it without one. So, unlike in Triton's:

- A store through a tensor descriptor (TMA) writes whole chunks of 16 bytes, up to 15 bytes past a row of another length; a load
  rounds to tf32 where the descriptor asks for it (language/descriptor.py).
- A product of fp32 that does not ask for IEEE arithmetic takes 10 bits of an operand's fraction: it is tf32, cut off.
- An access outside of the memory of the launch's tensors is an error.
- So is one whose addresses break what the kernel has promised of them (multiple_of, max_contiguous): the compiler relies on it.
- So is an integer division by zero of scalars, or in all lanes of a block (in some lanes it may be masked).
- So is an empty grid.

All this holds for this library's kernels alone, whose interpreter is a copy (copy_of_triton.py).
"""

import bisect
import copy
import dataclasses
import functools
import types

import numpy
from triton.runtime.errors import InterpreterError
from triton.tools.tensor_descriptor import TensorDescriptor

from .copy_of_triton import tl, triton
from .language.descriptor import rounds

interpreter = triton.runtime.interpreter

CHUNK = 16  # bytes


class _Memory:
    """The memory of a launch's tensors, as sorted ranges of addresses; a view may begin within its rows, so whole storages."""

    def __init__(self, arguments):
        sizes = {storage.data_ptr(): storage.nbytes() for storage in _storages(arguments)}
        self.to_tf32 = {value.base.data_ptr() for value in arguments if rounds(value)}  # what TMA rounds on the way
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

    def create_addptr(self, pointers, offsets):
        made = super().create_addptr(pointers, offsets)
        made.attr = offsets.attr and offsets.attr | {"offsets": offsets.data}
        return made

    def create_masked_load(self, pointers, mask, *others, **options):
        self.memory.check("a load", pointers, mask)
        _check_promises(pointers, mask)
        return super().create_masked_load(pointers, mask, *others, **options)

    def create_masked_store(self, pointers, value, mask, *others, **options):
        self.memory.check("a store", pointers, mask)
        _check_promises(pointers, mask)
        return super().create_masked_store(pointers, value, mask, *others, **options)

    def create_atomic_rmw(self, operation, pointers, value, mask, *others):
        self.memory.check("an atomic", pointers, mask)
        return super().create_atomic_rmw(operation, pointers, value, mask, *others)

    def create_atomic_cas(self, pointers, *others):
        self.memory.check("an atomic", pointers, interpreter.TensorHandle(numpy.True_, tl.int1))
        return super().create_atomic_cas(pointers, *others)

    def create_dot(self, left, right, addend, precision, *others):
        if precision.name == "TF32" and left.data.dtype == numpy.float32:
            left, right = (interpreter.TensorHandle(_cut_to_tf32(of.data), of.dtype) for of in (left, right))
        return super().create_dot(left, right, addend, precision, *others)

    def create_descriptor_load(self, descriptor, *others):
        loaded = super().create_descriptor_load(descriptor, *others)
        if int(descriptor.base.data.flat[0]) in self.memory.to_tf32:
            loaded.data = _rounded_to_tf32(loaded.data)
        return loaded

    def create_descriptor_store(self, descriptor, *others):
        return super().create_descriptor_store(_in_whole_chunks(descriptor), *others)

    def create_splat(self, block_type, value):
        """A comparison's handle has its operands' type, of which Triton 3.9 makes integers: no load takes such a mask."""
        is_bool = value.data.dtype == numpy.bool_
        return super().create_splat(block_type, interpreter.TensorHandle(value.data, tl.int1) if is_bool else value)

    def create_idiv(self, left, right):
        return super().create_idiv(left, _not_zero(right))

    def create_srem(self, left, right):
        return super().create_srem(left, _not_zero(right))

    def create_urem(self, left, right):
        return super().create_urem(left, _not_zero(right))


def _check_promises(pointers, mask):
    """Raise unless what multiple_of and max_contiguous have said of the offsets holds where a lane is not masked.

    Each counts alone: Triton 3.9 computes one address for a thread's neighbours in a run, whether they are aligned or not.
    """
    if "offsets" not in pointers.attr:
        return
    offsets, one = pointers.attr["offsets"], (1,) * pointers.data.ndim
    runs, multiples = (pointers.attr.get(name, one) for name in ("tt.contiguity", "tt.divisibility"))
    for axis, (run, multiple) in enumerate(zip(runs, multiples)):
        vectors = _cut(offsets, run, axis)
        used = _cut(numpy.broadcast_to(mask.data != 0, offsets.shape), run, axis).any(axis=-1)
        first = vectors[used][:, :1]
        if (vectors[used] != first + numpy.arange(run)).any() or (first % multiple).any():
            promised = f"runs of {run} at multiples of {multiple} along dimension {axis}"
            raise ValueError(f"offsets that are no {promised}, as promised")


def _cut(block, run, axis):
    """The block with this axis last, and that in runs."""
    moved = numpy.moveaxis(block, axis, -1)
    return moved.reshape(*moved.shape[:-1], -1, run)


def _max_constancy(input, values, promise):
    for axis, run in enumerate(values):
        vectors = _cut(input.handle.data, tl.core._unwrap_if_constexpr(run), axis)
        if (vectors != vectors[..., :1]).any():
            raise ValueError(f"values that are not constant in runs of {run} along dimension {axis}, as promised")
    return promise(input, values)


def _in_whole_chunks(descriptor):
    """The descriptor with its rows rounded up to whole chunks, which is what a store writes."""
    *outer, columns = descriptor.shape
    chunk = CHUNK * 8 // descriptor.base.get_element_ty().primitive_bitwidth
    enlarged = copy.copy(descriptor)
    enlarged.shape = [*outer, interpreter.TensorHandle(-(-columns.data // chunk) * chunk, columns.dtype)]
    return enlarged


def _rounded_to_tf32(numbers):
    """Numbers rounded to nearest, ties away from zero, as language/dot.py does; infinities and NaN stay."""
    bits = numbers.view(numpy.uint32)
    return numpy.where(numpy.isfinite(numbers), (bits + 0x1000) & 0xFFFFE000, bits).astype(numpy.uint32).view(numpy.float32)


def _cut_to_tf32(numbers):
    """Towards 0; a NaN stays one, whose payload may be in the bits that are cut off."""
    return numpy.where(numpy.isnan(numbers), numbers, (numbers.view(numpy.uint32) & 0xFFFFE000).view(numpy.float32))


def _not_zero(divisor):
    if not divisor.data.any():
        raise ZeroDivisionError("an integer division by zero")
    return divisor


def _prepare_language():
    """Replace the functions of the copied triton.language by interpreted ones, once and for all.

    Triton's interpreter does so in every launch and every call of a device function, which takes longer than most of these
    functions.
    """
    interpreter._patch_lang(types.SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    tl.max_constancy = tl.core.max_constancy = functools.partial(_max_constancy, promise=tl.max_constancy)
    nothing_to_restore = interpreter._LangPatchScope()
    interpreter._patch_lang = lambda function: nothing_to_restore


def _omit_what_is_dropped():
    """Compute no overflow checks, for which half of the time went: each of int32 is done in int64 and compared with both
    limits, and the outcome is dropped unless the builder is debugging."""
    builder = interpreter.interpreter_builder
    builder.options = dataclasses.replace(builder.options, sanitize_overflow=builder.options.debug)


def _remember_types():
    """Derive once what depends on a type and a shape alone: they are few, and took longer than the arithmetic on blocks."""
    numpy_type = functools.cache(interpreter._get_np_dtype)
    interpreter._get_np_dtype = lambda type: numpy_type(tl.uint64 if type.scalar.is_ptr() else type.scalar)

    new_block_type, new_tensor = tl.core.block_type.__init__, tl.core.tensor.__init__
    of_block_types, of_scalars = {}, {}  # their attributes

    def init_block_type(self, element_ty, shape):
        sizes = tuple([size.value if isinstance(size, tl.constexpr) else size for size in shape])
        key = element_ty.name, sizes
        if key in of_block_types:
            vars(self).update(of_block_types[key])
            return
        new_block_type(self, element_ty, [*sizes])
        self.sizes, self.of_tensors = sizes, {}  # plain integers, and the attributes of tensors of that shape
        if not element_ty.is_ptr():  # whose name does not say all
            of_block_types[key] = vars(self).copy()

    def init_tensor(self, handle, type):
        known = vars(type).get("of_tensors", of_scalars)
        if known:
            vars(self).update(known, handle=handle, type=type, dtype=type.scalar)
            return
        new_tensor(self, handle, type)
        known.update({name: value for name, value in vars(self).items() if name not in ("handle", "type", "dtype")})

    tl.core.block_type.__init__, tl.core.tensor.__init__ = init_block_type, init_tensor
    tl.core.block_type.with_element_ty = lambda self, element_ty: tl.core.block_type(element_ty, self.sizes)
    _compare_itself_first(tl.core.dtype)


def _compare_itself_first(kind):
    compare = kind.__eq__
    kind.__eq__ = lambda self, other: self is other or compare(self, other)


class _Semantic(type(interpreter.interpreter_semantic)):
    """What two operands become before they are combined, without Triton's search where they are alike."""

    def binary_op_type_checking_impl(self, left, right, *allowed, **others):
        of_tensors = type(left) is type(right) is self.tensor and left.dtype is right.dtype and not left.dtype.is_ptr()
        if of_tensors and len(allowed) < 4 and not others:  # a division may need a wider type
            return self.broadcast_impl_value(left, right)
        return super().binary_op_type_checking_impl(left, right, *allowed, **others)

    def broadcast_impl_value(self, left, right):
        shapes = _sizes(left.type), _sizes(right.type)
        if shapes[0] == shapes[1]:
            return left, right
        common = _common(*shapes)
        return self._of_sizes(left, shapes[0], common), self._of_sizes(right, shapes[1], common)

    def _of_sizes(self, value, sizes, wanted):
        if sizes == wanted:
            return value
        type = tl.core.block_type(value.dtype, wanted)
        create = self.builder.create_broadcast
        return self.tensor(create(value.handle, wanted) if sizes else self.builder.create_splat(type, value.handle), type)


def _sizes(type):
    return type.sizes if type.is_block() else ()


_common = functools.cache(numpy.broadcast_shapes)


class _GridExecutor(interpreter.GridExecutor):
    def __call__(self, *args, **kwargs):
        if not callable(self.grid) and 0 in self.grid:
            raise InterpreterError(f"the grid {self.grid} is empty")
        interpreter.interpreter_builder.memory = _Memory((*args, *kwargs.values()))
        return super().__call__(*args, **kwargs)


_prepare_language()
_omit_what_is_dropped()
_remember_types()
interpreter.interpreter_builder.__class__ = _HarshBuilder
interpreter.interpreter_semantic.__class__ = _Semantic
interpreter.GridExecutor = _GridExecutor
