"""Shared by gemv's designs: types and arguments of kernels, the Design of kernels that take a batch as one list of rows, and
that of lessons, which take one matrix."""

import functools

import torch

from tritonkernels.choice.work import KNOWN
from tritonkernels.design import Design
from tritonkernels.lesson import lesson
from tritonkernels.operations.gemv.shapes import streams
from tritonkernels.operations.gemv.vectors import VECTOR_BYTES, full_vector
from tritonkernels.operations.gemv.work import along_rows

from ...launch import ceil_div

TYPES = {
    torch.float32: "float",
    torch.float16: "__half",
    torch.bfloat16: "__nv_bfloat16",
    torch.int8: "int8_t",
    torch.float64: "double",
}


def typed(problem, config):
    """The template's parameters: the config and the types {A} and {X}."""
    return {"A": TYPES[problem.a_dtype], "X": TYPES[problem.dtype], **config}


def shifted(a, x):
    """Whether A's rows and x are contiguous, and of a vector or more, but do not all lie within 16 bytes alike: SHIFTED of a
    kernel (vector_row.cuh)."""
    head = -a.data_ptr() % VECTOR_BYTES // a.itemsize
    steps = (stride * t.itemsize for t in (a, x) for stride, size in zip(t.stride()[:-1], t.shape) if size > 1)
    alike = (x.data_ptr() + head * x.itemsize) % VECTOR_BYTES == 0 and all(step % VECTOR_BYTES == 0 for step in steps)
    if a.shape[-1] * a.itemsize < VECTOR_BYTES:
        return False
    return a.stride(-1) == x.stride(-1) == 1 and not alike


SCALARS = 4  # loads of single elements in flight


def loads(problem, config):
    """(elements of a load, loads in flight) of a kernel that reads rows by vectors where they are contiguous."""
    return (full_vector(problem.a_dtype), config["UNROLL"]) if problem.a_layout == "row" else (1, SCALARS)


def design_of_rows(kernel, threads, lanes):
    """The Design of a kernel with blocks of threads(config) threads, of which lanes(config) walk a row."""

    def rows(config):
        return threads(config) // lanes(config)

    def configs(problem, target):
        return streaming(kernel.space, problem, target)

    def launches(problem, config, a, x, y, scale, out):
        (_, m, n), count = a.shape, rows_of(a)
        numbers = count, m, n, problem.alpha, problem.beta
        arguments = a, x, y, scale, out, *numbers, strides(a, x, y, scale, out), config["STREAMS"]
        instance = typed(problem, config) | {"SHIFTED": shifted(a, x)}
        yield kernel.launch(instance, (ceil_div(count, rows(config)),), threads(config), arguments)

    def work(problem, config, target):
        return (along_rows(problem, threads(config), rows(config), lanes(config), *loads(problem, config)),)

    return Design(configs=configs, launches=launches, work=work)


def lesson_of_rows(kernel, threads, rows):
    """The lesson with blocks of threads(config) threads, which take rows(config) rows."""

    def launches(problem, config, a, x, y, scale, out):
        steps = ((0 if t is None else t.stride(1),) for t in (x, y, out))
        arguments = a, x, y, out, *a.shape[1:], problem.alpha, problem.beta, a.stride()[1:], *steps
        yield kernel.launch(config, (ceil_div(problem.m, rows(config)),), threads(config), arguments)

    return lesson(lambda problem, target: kernel.space, launches, types=((torch.float32, torch.float32),))


def streaming(space, problem, target):
    """The configs, extended by STREAMS: whether L2 may evict A first (`shapes.streams`)."""
    return _extended(tuple(space), streams(problem, target))


@functools.lru_cache(KNOWN)
def _extended(space, streams):
    return [config | {"STREAMS": streams} for config in space]


def rows_of(a):
    """The number of rows in all matrices of the batch."""
    return a.shape[0] * a.shape[1]


def strides(a, x, y, scale, out):
    """The members of Strides (row.cuh); 0 for a tensor that is not given."""
    of_y = (0, 0) if y is None else y.stride()
    of_scale = (0,) if scale is None else scale.stride()
    return *a.stride(), *x.stride(), *of_y, *of_scale, *out.stride()
