"""Gluon on the CPU: a thread for each partition of a program, numpy for its tiles, and adversarial timing.

Only one thread runs at a time. At each operation on a barrier a seeded choice says who goes on. A copy by TMA makes its place
NaN at once and arrives at some later choice; one by cp.async at some time until its thread waits for it. A product by wgmma
reads its operands when a wait makes it end, and no earlier, and of fp32 no more than tf32. So a missing wait, or a place that
is given back too early, is a wrong result, and a wait for nothing is an error. What is promised to the compiler (multiple_of,
max_contiguous) is checked, and that mma.sync gets tf32 that has been rounded.
What warps of a partition owe each other (barrier, fences) is not modelled.
"""

import random
import threading
import types
from typing import Any, NamedTuple

import numpy

from tritonkernels.language.descriptor import rounds

LAYOUTS = "NVMMADistributedLayout", "NVMMASharedLayout", "BlockedLayout", "SliceLayout", "DotOperandLayout"
PATIENCE = 20000  # choices in which nothing happens


class Stuck(Exception):
    """All threads wait for something that does not come."""


class Tensor(numpy.ndarray):
    """A tile in registers."""

    type = types.SimpleNamespace(layout=None)

    def permute(self, order):
        return self.transpose(order)

    def split(self):
        return self[..., 0], self[..., 1]

    def to(self, dtype):
        return self.astype(dtype)


def tensor(values):
    return numpy.asarray(values).view(Tensor)


class Pointers(NamedTuple):
    """Addresses of elements of a matrix: `base` is a flat view of its memory."""

    base: Any
    offsets: Any = 0

    @property
    def dtype(self):
        return types.SimpleNamespace(element_ty=self.base.dtype)

    def __add__(self, offsets):
        return self._replace(offsets=self.offsets + offsets)


class Shared(NamedTuple):
    """Places in shared memory, or one of them."""

    values: Any

    def index(self, place):
        assert 0 <= place < len(self.values), "no such place"
        return Shared(self.values[int(place)])

    def reinterpret(self, dtype, shape, layout):
        """Parts of boxes' rows, or of their columns; or matrices of the columns of several boxes that follow each other: as
        boxes of 128 bytes of columns lie."""
        if shape[-1] == self.values.shape[-1]:
            return Shared(self.values.reshape(shape))
        if shape[-1] < self.values.shape[-1]:
            assert shape[-1] * self.values.itemsize % 128 == 0, "a part of 128 bytes"
            boxes = self.values.reshape(len(self.values), shape[1], -1, shape[-1]).swapaxes(1, 2)
            return Shared([part for box in boxes for part in box])
        count = len(self.values) // shape[0]
        return Shared([Joined(self.values[i * count : (i + 1) * count]) for i in range(shape[0])])

    def permute(self, order):
        return Shared(self.values.transpose(order))

    def reshape(self, shape):
        return Shared(self.values.reshape(shape))

    @property
    def shape(self):
        return self.values.shape

    def slice(self, first, count, dim=0):
        assert 0 <= first <= first + count <= self.shape[dim], "outside of the slice"
        return Shared(self.values[(slice(None),) * dim + (slice(first, first + count),)])

    def store(self, tile):
        self.values[...] = tile

    def load(self, layout):
        return tensor(self.values.copy())


class Joined(NamedTuple):
    """A matrix of boxes side by side, or its transpose, read when it is needed."""

    boxes: Any
    transposed: bool = False

    @property
    def shape(self):
        count, rows, columns = self.boxes.shape
        return (count * columns, rows) if self.transposed else (rows, count * columns)

    def transpose(self, order):
        return self._replace(transposed=not self.transposed)

    @property
    def dtype(self):
        return self.boxes.dtype

    def astype(self, dtype):
        matrix = numpy.concatenate(list(self.boxes), axis=1).astype(dtype)
        return matrix.T if self.transposed else matrix


class Barrier:
    """An mbarrier: its phase ends when all have arrived, and all bytes."""

    def __init__(self):
        self.count, self.pending, self.bytes, self.phase = None, 0, 0, 0

    def change(self, arrivals, nbytes):
        self.pending -= arrivals
        self.bytes += nbytes
        assert self.pending >= 0, "more arrivals than the barrier expects"
        if self.pending == 0 and self.bytes == 0:
            self.phase, self.pending = self.phase + 1, self.count


TF32 = numpy.uint32(0xFFFFE000)  # the bits of an fp32 that it has


def round_to_tf32(values):
    """To nearest; NaN stays what it is."""
    bits = numpy.ascontiguousarray(values).view(numpy.uint32)
    rounded = ((bits + numpy.uint32(0x1000)) & TF32).view(numpy.float32)
    return tensor(numpy.where(numpy.isnan(values), values, rounded))


def as_tensor_cores_read(matrix):
    """An operand in fp32, which has the low bits of a tf32 cut off."""
    wide = numpy.ascontiguousarray(matrix.astype(numpy.float32))
    return wide if matrix.dtype != numpy.float32 else (wide.view(numpy.uint32) & TF32).view(numpy.float32)


def multiply_by_mma(a, b, acc, input_precision):
    """mma.sync's product of operands in registers. These must be rounded to tf32, as it would cut off their low bits."""
    assert input_precision == "tf32"
    for operand in (a, b):
        assert numpy.array_equal(as_tensor_cores_read(operand), operand, equal_nan=True), "an operand that is not rounded"
    return tensor(acc + a @ b)


class Sum(NamedTuple):
    """A product that is under way."""

    acc: Any
    a: Any
    b: Any
    result: list

    def end(self):
        acc = self.acc.result[0] if isinstance(self.acc, Sum) else self.acc
        self.result.append(tensor(acc + as_tensor_cores_read(self.a) @ as_tensor_cores_read(self.b)))


class Program:
    """One program of a kernel."""

    def __init__(self, number, programs, warps, seed):
        self.number, self.programs, self.warps, self.random = number, programs, warps, random.Random(seed)
        self.copies, self.errors, self.idle = [], [], 0
        self.turn, self.alive, self.me = threading.Condition(), [0], 0
        self.own = threading.local()

    # Who runs

    def switch(self):
        """Let a copy arrive, or somebody else go on."""
        self.idle += 1
        if self.errors or self.idle > PATIENCE:
            raise Stuck
        if self.copies and self.random.random() < 0.4:
            self.idle = 0
            place, box, barrier = self.copies.pop(self.random.randrange(len(self.copies)))
            place[...] = box
            barrier.change(0, -box.nbytes)
        self.give_to(self.random.choice(self.alive))

    def give_to(self, other):
        mine = self.own.number
        with self.turn:
            self.me = other
            self.turn.notify_all()
            self.turn.wait_for(lambda: self.me == mine or mine not in self.alive)

    def part(self, number, function, arguments):
        self.own.number = number
        with self.turn:
            self.turn.wait_for(lambda: self.me == number)
        try:
            function(*arguments)
            assert not self.pending(), "a product that nobody waits for"
        except BaseException as error:  # of a thread: the test raises it
            self.errors.append(error)
        finally:
            self.alive.remove(number)
            with self.turn:
                self.me = self.random.choice(self.alive) if self.alive else None
                self.turn.notify_all()

    def warp_specialize(self, parts, warps, registers):
        assert len(parts) == len(warps) + 1 == len(registers) + 1
        self.alive = list(range(len(parts)))
        threads = [threading.Thread(target=self.part, args=(i, *part)) for i, part in enumerate(parts)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for error in sorted(self.errors, key=lambda error: isinstance(error, Stuck)):
            raise error

    def pending(self):
        self.own.products = getattr(self.own, "products", [])
        return self.own.products

    # What kernels call

    def wait(self, barrier, phase, pred=True):
        while barrier.values.phase & 1 == phase:
            self.switch()
        self.idle = 0

    def arrive(self, barrier, pred=True):
        if pred:
            self.idle = 0
            barrier.values.change(1, 0)
        self.switch()

    def expect(self, barrier, nbytes, pred=True):
        if pred:
            barrier.values.change(0, nbytes)
            barrier.values.change(1, 0)

    def init(self, barrier, count):
        barrier.values.count = barrier.values.pending = count

    def load_box(self, boxes, corner, barrier, place, pred=True):
        if pred:
            place.values[...] = numpy.nan
            box = numpy.zeros(boxes.shape, boxes.dtype)
            inside = boxes.values[tuple(slice(first, first + size) for first, size in zip(corner, boxes.shape))]
            box[tuple(map(slice, inside.shape))] = round_to_tf32(inside) if boxes.rounds else inside
            self.copies.append((place.values, box, barrier.values))

    def copy(self, place, pointers, mask=True):
        assert place.values.shape == numpy.broadcast_shapes(pointers.offsets.shape, numpy.shape(mask))
        place.values[...] = numpy.nan
        self.requests().append(lambda: place.store(load(pointers, mask, 0)))
        if self.random.random() < 0.5:
            self.requests().pop()()

    def commit(self):
        self.groups().append(self.requests())
        self.own.requests = []

    def wait_groups(self, pending):
        while len(self.groups()) > pending:
            for arrive in self.groups().pop(0):
                arrive()

    def requests(self):
        self.own.requests = getattr(self.own, "requests", [])
        return self.own.requests

    def groups(self):
        self.own.groups = getattr(self.own, "groups", [])
        return self.own.groups

    def multiply(self, a, b, acc, is_async=False):
        assert a.shape[1] == b.shape[0]
        self.pending().append(Sum(acc, getattr(a, "values", a), b.values, []))
        return self.pending()[-1] if is_async else self.products_end(0, (self.pending()[-1],))

    def products_end(self, pendings, deps):
        while len(self.pending()) > pendings:
            self.pending().pop(0).end()
        found = tuple(dep.result[0] if isinstance(dep, Sum) and not pendings else dep for dep in deps)
        return found if len(found) > 1 else found[0]

    def allocate(self, dtype, shape, layout):
        if layout == "barriers":
            values = numpy.empty(shape[0], object)
            values[:] = [Barrier() for _ in values]
            return Shared(values)
        return Shared(numpy.full(shape, numpy.nan, dtype))


class Boxes(NamedTuple):
    """A TMA descriptor."""

    values: Any
    shape: Any
    rounds: Any
    layout: Any = None

    @property
    def dtype(self):
        return self.values.dtype

    @property
    def block_type(self):
        size = self.dtype.itemsize
        return types.SimpleNamespace(shape=list(self.shape), nbytes=int(numpy.prod(self.shape)) * size)


def load(pointers, mask=True, other=0, cache_modifier=""):
    offsets, mask = numpy.broadcast_arrays(pointers.offsets, mask)
    values = numpy.full(mask.shape, other, pointers.base.dtype)
    assert (offsets[mask] >= 0).all()
    values[mask] = pointers.base[offsets[mask]]
    return tensor(values)


def store(pointers, values, mask=True):
    offsets, mask, values = numpy.broadcast_arrays(pointers.offsets, mask, values)
    pointers.base[offsets[mask]] = values[mask]


def where(condition, a, b):
    return tensor(numpy.where(condition, a, b))


def multiple_of(values, number):
    numbers = number if isinstance(number, (list, tuple)) else [number]
    first = numpy.asarray(values)[tuple(slice(None, None, step) for step in numbers)]
    assert (first % max(numbers) == 0).all(), f"runs that begin at no multiple of {number}"
    return values


def max_contiguous(values, number):
    runs = _runs(values, number)
    assert (runs == runs[:, :1] + numpy.arange(runs.shape[1])).all(), f"no runs of {number}"
    return values


def max_constancy(values, number):
    runs = _runs(values, number)
    assert (runs == runs[:, :1]).all(), f"no runs of {number} that are the same"
    return values


def _runs(values, number):
    """The runs of that length, along the first of two dimensions if the number is of both and is 1 for the last."""
    *_, first, last = (1, number) if isinstance(number, int) else (1, *number)
    values = numpy.asarray(values)
    return values.T.reshape(-1, first) if last == 1 else values.reshape(-1, last)


def atomic_add(pointer, number, **_):
    before = int(pointer.base[pointer.offsets])
    pointer.base[pointer.offsets] += number
    return before


def atomic_xchg(pointer, number, **_):
    pointer.base[pointer.offsets] = number


def _fakes(program):
    """What the names of a kernel's module stand for here."""
    numbers = dict(
        cdiv=lambda a, b: -(-a // b),
        where=where,
        cast=lambda number, dtype: tensor(numpy.asarray(number).astype(dtype)),
        minimum=lambda a, b: tensor(numpy.minimum(a, b)),
        **{name: getattr(numpy, name) for name in ("int32", "int64", "uint32")},
    )
    gl = types.SimpleNamespace(
        program_id=lambda axis: program.number,
        num_programs=lambda axis: program.programs,
        arange=lambda first, end, layout: tensor(numpy.arange(first, end)),
        zeros=lambda shape, dtype, layout: tensor(numpy.zeros(shape, numpy.float32)),
        static_range=range,
        load=load,
        store=store,
        float32=numpy.float32,
        float64=numpy.float64,
        maximum=max,
        multiple_of=multiple_of,
        max_contiguous=max_contiguous,
        max_constancy=max_constancy,
        convert_layout=lambda values, _: values,
        num_warps=lambda: program.warps,
        dot_fma=lambda a, b, acc: tensor(acc + a @ b),
        constexpr=None,
        **numbers,
        allocate_shared_memory=program.allocate,
        warp_specialize=program.warp_specialize,
        **dict.fromkeys(LAYOUTS, lambda *_, **__: None),
    )
    methods = {name: getattr(program, name) for name in ("wait", "arrive", "expect", "init")}
    mbarrier = types.SimpleNamespace(MBarrierLayout=lambda: "barriers", **methods)
    products = {"warpgroup_mma": program.multiply, "warpgroup_mma_wait": program.products_end, "mma_v2": multiply_by_mma}
    nothing = dict.fromkeys(("barrier", "fence_async_shared", "wait_for_earlier_kernels"), lambda: None)
    async_copy = types.SimpleNamespace(commit_group=program.commit, wait_group=program.wait_groups)
    copies = {
        "load_box": program.load_box,
        "copy_async": program.copy,
        "async_copy": async_copy,
        "reinterpret": Shared.reinterpret,
        "round_to_tf32": round_to_tf32,
    }
    atomics = dict(debug_barrier=lambda: None, atomic_add=atomic_add, atomic_xchg=atomic_xchg)
    tl = types.SimpleNamespace(**numbers, **atomics, load=load, static_range=range)
    return {"gl": gl, "tl": tl, "mbarrier": mbarrier, **copies, **products, **nothing}


def _in_python(function, fakes):
    """A function of Triton or Gluon as one of Python, with those that it calls."""
    code, names = function.fn.__code__, dict(function.fn.__globals__) | fakes
    for name in set(code.co_names) & set(names):
        if name not in fakes and hasattr(names[name], "fn"):
            called = names[name]
            names[name] = _in_python(called, fakes) if called is not function else None
    made = types.FunctionType(code, names, function.fn.__name__, function.fn.__defaults__)
    names[function.fn.__name__] = made  # it may call itself
    return made


def _argument(value):
    """A kernel's argument, with memory instead of tensors, and numbers instead of constants."""
    if hasattr(value, "block_shape"):
        return Boxes(value.base.numpy(), tuple(value.block_shape), rounds(value))
    if isinstance(value, tuple):
        return type(value)(*map(_argument, value))
    if hasattr(value, "untyped_storage"):
        flat = value.as_strided((value.untyped_storage().size() // value.itemsize - value.storage_offset(),), (1,))
        return Pointers(flat.numpy())
    return getattr(value, "value", value)


def call(function, *arguments, warps=4, fakes=None):
    """What a device function returns in a program that is alone, and has no partitions. `fakes` stand for what it calls."""
    program = Program(0, 1, warps, seed=0)
    result = _in_python(function, _fakes(program) | (fakes or {}))(*map(_argument, arguments))
    assert not any((*program.groups(), program.requests())), "a copy that nobody waits for"
    return result


def run(launch, seed=0):
    """All programs of a launch, one after the other."""
    for number in range(launch.grid[0]):
        program = Program(number, launch.grid[0], launch.config.num_warps, seed + number)
        kernel = _in_python(launch.kernel, _fakes(program))
        program.own.number = 0
        kernel(*map(_argument, launch.values.values()))
        assert not program.copies and not any((*program.groups(), program.requests())), "a copy that nobody waits for"
