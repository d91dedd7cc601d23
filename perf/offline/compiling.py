"""Compile a Triton or Gluon launch for an absent GPU, and read registers, spills and shared memory off the machine code.

Needs kernels decorated for a GPU: run with TRITONKERNELS_BACKEND=gpu.
"""

import torch

from . import sass


def compile_launch(launch, target):
    """The triton.CompiledKernel that this launch would run on `target`, specialised as Triton's JIT would specialise it."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    if launch.kernel.is_gluon():
        from triton.experimental.gluon._runtime import GluonASTSource as Source
    else:
        Source = ASTSource
    source = Source(launch.kernel, *specialised(launch))
    machine = ("hip", target.gfx) if target.vendor == "amd" else ("cuda", target.arch)
    return triton.compile(source, target=GPUTarget(*machine, target.warp_size), options=launch.options)


def specialised(launch):
    """What Triton makes of the arguments: types, constants, and which of the others are multiples of 16."""
    signature, constants, aligned = {}, {}, {}
    for position, (name, value) in enumerate(launch.values.items()):
        if isinstance(value, torch.Tensor):
            signature[name] = "*" + _triton_type(value.dtype)
            multiple_of_16 = value.data_ptr() % 16 == 0
        elif hasattr(value, "block_shape"):  # a TMA descriptor
            signature[name], multiple_of_16 = f"tensordesc<{_triton_type(value.base.dtype)}{list(value.block_shape)}>", False
        elif isinstance(value, float):
            signature[name], multiple_of_16 = "fp32", False
        elif (
            isinstance(value, int)
            and not isinstance(value, bool)
            and value != 1
            and not launch.kernel.params[position].is_constexpr
        ):
            signature[name] = "i32" if abs(value) < 2**31 else "i64"
            multiple_of_16 = value % 16 == 0
        else:
            signature[name], constants[name], multiple_of_16 = "constexpr", value, False
        if multiple_of_16:
            aligned[(position,)] = [["tt.divisibility", 16]]
    return signature, constants, aligned


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
