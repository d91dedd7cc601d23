"""TMA descriptors of matrices, which round fp32 to tf32 on the way where that is asked for.

TMA's tensor maps have a type that rounds to nearest, and Triton's TensorDescriptor has had a field that asks for it since 3.7.
In Triton 3.6 the type of a tensor map is in the metadata of the compiled kernel, of which its launcher makes the maps: there it
is set before the first launch.
"""

import dataclasses
import functools

from triton.tools.tensor_descriptor import TensorDescriptor

from .. import backend
from ..errors import LaunchError

FIELD = "round_f32_to_tf32"
TF32 = 11  # of CUtensorMapDataType


def describe(t, block_shape, to_tf32=False):
    """The descriptor of a tensor. `to_tf32` only if `can_round`; all launches of a kernel ask for the same."""
    descriptor = TensorDescriptor(t, t.shape, t.stride(), block_shape)
    setattr(descriptor, FIELD, to_tf32)
    return descriptor


def rounds(value):
    """Whether an argument of a kernel is a descriptor that rounds."""
    return isinstance(value, TensorDescriptor) and getattr(value, FIELD, False)


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
    maps, descriptors = metadata.tensordesc_meta, [value for value in values if isinstance(value, TensorDescriptor)]
    if len(maps or ()) != len(descriptors):
        raise LaunchError(f"Triton made {len(maps or ())} tensor maps of {len(descriptors)} descriptors, so none can round")
    for own, descriptor in zip(maps, descriptors):
        if rounds(descriptor):
            own["elem_type"] = TF32
