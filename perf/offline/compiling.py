"""Compile a Triton or Gluon launch for a GPU that is not present, and read registers, spills and shared memory from the machine
code.

Needs kernels decorated for a GPU: run with TRITONKERNELS_BACKEND=gpu.
"""

from unittest import mock

import torch

from tritonkernels.launch import OVERLAPS

from . import sass


def compile_launch(launch, target):
    """The triton.CompiledKernel that this launch would run on `target`, specialised as Triton's JIT would specialise it."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.language import target_info

    if launch.kernel.is_gluon():
        from triton.experimental.gluon._runtime import GluonASTSource as Source
    else:
        Source = ASTSource
    source = Source(launch.kernel, *specialised(launch))
    machine = ("hip", target.gfx) if target.vendor == "amd" else ("cuda", target.arch)
    options = {name: value for name, value in launch.options.items() if name not in OVERLAPS}  # those are of the present GPU
    if launch.overlaps and target.vendor == "nvidia" and target.arch >= 90:
        options |= OVERLAPS
    gpu = GPUTarget(*machine, target.warp_size)
    asked = mock.Mock(return_value=gpu, __triton_builtin__=True)  # by kernels that have code for some GPUs
    with mock.patch.object(target_info, "current_target", asked):
        return triton.compile(source, target=gpu, options=options)


def specialised(launch):
    """Triton's specialisation of the arguments: types, constants, and which of the others are multiples of 16."""
    signature, constants, aligned = {}, {}, {}
    for position, (name, value) in enumerate(launch.values.items()):
        is_struct = isinstance(value, tuple)
        kinds = []
        for field, inner in enumerate(value if is_struct else (value,)):
            path = (position, field) if is_struct else (position,)
            kind, multiple_of_16 = _specialised_as(inner, launch.kernel.params[position].is_constexpr)
            kinds.append(kind)
            if kind == "constexpr":
                constants[path] = getattr(inner, "value", inner)
            elif multiple_of_16:
                aligned[path] = [["tt.divisibility", 16]]
        signature[name] = type(value)(*kinds) if is_struct else kinds[0]
    return signature, constants, aligned


def _specialised_as(value, is_constexpr):
    """(type, is it a multiple of 16) of an argument or of a struct's field."""
    if isinstance(value, torch.Tensor):
        return "*" + _triton_type(value.dtype), value.data_ptr() % 16 == 0
    if hasattr(value, "layout") and hasattr(value, "block_shape"):  # Gluon's
        return f"tensordesc<{_triton_type(value.base.dtype)}{list(value.block_shape)},{value.layout!r}>", False
    if hasattr(value, "block_shape"):  # a TMA descriptor
        return f"tensordesc<{_triton_type(value.base.dtype)}{list(value.block_shape)}>", False
    if isinstance(value, float):
        return "fp32", False
    if isinstance(value, int) and not isinstance(value, bool) and value != 1 and not is_constexpr:
        return "i32" if abs(value) < 2**31 else "i64", value % 16 == 0
    return "constexpr", False


def _triton_type(dtype):
    from triton._utils import canonicalize_dtype

    return canonicalize_dtype(str(dtype).removeprefix("torch."))


def resources(kernel):
    """Registers and bytes of stack per thread, spill instructions in the hot loop, bytes of shared memory."""
    cubin, spills = kernel.asm["cubin"], 0
    ((registers, stack_bytes, _),) = sass.resource_usage(cubin).values()
    if stack_bytes:
        (code,) = sass.read(cubin).values()
        spills = sass.count(code.hot_loop(), sass.LOCAL)
    return {
        "registers": registers,
        "stack_bytes": stack_bytes,
        "hot_loop_spills": spills,
        "shared_bytes": kernel.metadata.shared,
    }
