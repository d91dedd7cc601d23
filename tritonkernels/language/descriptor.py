"""TMA descriptors of matrices, which round fp32 to tf32 on the way where that is asked for.

TMA's tensor maps have a type that rounds to nearest, and Triton's TensorDescriptor has had a field that asks for it since 3.7.
In Triton 3.6 the type of a tensor map is in the metadata of the compiled kernel, of which its launcher makes the maps: there it
is set before the first launch.
"""

import dataclasses
import functools

from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor as GluonDescriptor
from triton.tools.tensor_descriptor import TensorDescriptor

from .. import backend
from ..errors import LaunchError

FIELD = "round_f32_to_tf32"
TF32 = 11  # of CUtensorMapDataType
OF_BYTES = {1: gl.int8, 2: gl.float16, 4: gl.float32}  # any type of that size


def as_tma_reads(t):
    """Whether TMA can read (BATCH, rows, columns): unit stride along columns; base, pitch and batches in units of 16 bytes."""
    batch, row, col = (stride * t.element_size() for stride in t.stride())
    apart = row >= t.shape[2] * col and batch >= 0
    return col == t.element_size() and apart and not (t.data_ptr() % 16 or row % 16 or batch % 16)


def describe(t, block_shape, to_tf32=False):
    """The descriptor of a tensor. `to_tf32` only if `can_round`; all launches of a kernel ask for the same."""
    descriptor = TensorDescriptor(t, t.shape, t.stride(), block_shape)
    setattr(descriptor, FIELD, to_tf32)
    return descriptor


def describe_for_gluon(t, block_shape, to_tf32=False):
    """The same for a Gluon kernel, with the layout of its boxes in shared memory that wgmma reads."""
    layout = gl.NVMMASharedLayout.get_default_for(block_shape, OF_BYTES[t.element_size()])
    descriptor = GluonDescriptor(t, list(t.shape), list(t.stride()), block_shape, layout)
    setattr(descriptor, FIELD, to_tf32)
    return descriptor


def is_descriptor(value):
    """Whether an argument of a kernel is a descriptor, of either language."""
    return isinstance(value, (TensorDescriptor, GluonDescriptor))


def rounds(value):
    """Whether an argument of a kernel is a descriptor that rounds."""
    return is_descriptor(value) and getattr(value, FIELD, False)


@functools.cache
def has_field():
    """Whether Triton reads what `describe` asks for."""
    return FIELD in {field.name for field in dataclasses.fields(TensorDescriptor)}


@functools.cache
def can_round():
    """Whether descriptors can: in the interpreter, in Triton 3.7 and in 3.6 for NVIDIA, as it is known."""
    return backend.name() != "gpu" or has_field() or _host_types().get(TF32) == TF32


def _host_types():
    """Triton's table of the types of tensor maps, by those in its metadata."""
    try:
        from triton.backends.nvidia import driver
    except ImportError:  # a Triton without NVIDIA's backend
        return {}
    return getattr(driver, "TMA_DTYPE_DEVICE_TO_HOST", {})


def set_types(metadata, values):
    """Let Triton 3.6 make tensor maps that round for the descriptors among a kernel's arguments that ask for it."""
    maps, descriptors = metadata.tensordesc_meta, list(filter(is_descriptor, values))
    if len(maps or ()) != len(descriptors):
        raise LaunchError(f"Triton made {len(maps or ())} tensor maps of {len(descriptors)} descriptors, so none can round")
    for own, descriptor in zip(maps, descriptors):
        if rounds(descriptor):
            own["elem_type"] = TF32
