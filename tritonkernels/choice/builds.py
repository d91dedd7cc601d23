"""What a tuning builds in processes that do not open the GPU (builders.py), and finds in the caches then."""

import functools
import importlib

import torch

from ..errors import BuildError
from . import builders


def run(library, target, call, candidates, soon, late):
    """{candidate: None, or why its build failed} of those whose builds ended in time: `soon` and `late` as in builders.run."""
    job = functools.partial(prepare, library.package, target, call.problem, outlines(call))
    try:
        outcomes = builders.run(job, [(c.design.name, c.numbers) for c in candidates], soon, late)
    except builders.NotStartedError:
        raise BuildError("the process that builds kernels ended before it began. What it wrote to stderr says why.") from None
    return {candidates[number]: failure for number, failure in outcomes.items()}


def seconds(library, call, candidates):
    """How long the first build of these is expected to take, at the least."""
    parts = outlines(call)
    first = (launches(c.design, c.config, call.problem, parts) for c in candidates[: builders.cores()])
    return min((sum(map(library.build_seconds, each)) for each in first), default=0.0)


def outlines(call):
    return [list(map(outline, tensors)) for tensors in call.parts]


def outline(tensor):
    """All of a tensor that its launches depend on, to be pickled: it has neither memory nor a device."""
    if tensor is None:
        return None
    room = tensor.untyped_storage().nbytes() // tensor.element_size() - tensor.storage_offset()
    shift = tensor.data_ptr() % 16 // tensor.element_size()
    return tensor.dtype, shift + room, (tensor.shape, tensor.stride(), shift)


def outlined(outline):
    """A tensor without memory, with the same shape, strides, alignment and room behind it."""
    if outline is None:
        return None
    dtype, elements, view = outline
    return torch.empty(elements, dtype=dtype, device="meta").as_strided(*view)


def prepare(package, target, problem, parts):
    """build((design's name, config's numbers)) of a call for a target, which builds what its launches run."""
    importlib.import_module(package)
    library = importlib.import_module(f"{package}.launch").LIBRARY
    library.build_for(target)
    library.designs(problem.op)

    def build(task):
        for launch in launches(*library.choose(problem, target, *task), problem, parts):
            launch.build()

    return build


def launches(design, config, problem, parts):
    """The launches of a call of which there are outlines."""
    for outlines in parts:
        yield from design.launches(problem, config, *map(outlined, outlines))
