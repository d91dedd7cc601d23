"""Compile a Triton or Gluon launch for an absent GPU, and read registers, spills and shared memory off the machine code.

Needs kernels decorated for a GPU: run with TRITONKERNELS_BACKEND=gpu.

    TRITONKERNELS_BACKEND=gpu python -m perf.offline gemm tiled sm_90 sm_80      one JSON object per config and target
    TRITONKERNELS_BACKEND=gpu python -m perf.offline gemm tiled sm_90 sm_80:1    of sm_80 the first for each ordinary call
"""

import importlib
import itertools
import json
import sys

import torch

from tritonkernels.launch import LIBRARY
from tritonkernels.target import Target
from tritonkernels.tuning.choose import as_dict

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
    source = Source(launch.kernel, *_specialised(launch))
    machine = ("hip", target.gfx) if target.vendor == "amd" else ("cuda", target.arch)
    return triton.compile(source, target=GPUTarget(*machine, target.warp_size), options=launch.options)


def _specialised(launch):
    """What Triton makes of the arguments: types, constants, and which of the others are multiples of 16."""
    signature, constants, aligned = {}, {}, {}
    for position, (name, value) in enumerate(launch.values.items()):
        fields = value if isinstance(value, tuple) else (value,)
        types = []
        for field, inner in enumerate(fields):
            path = (position, field) if isinstance(value, tuple) else (position,)
            kind, multiple_of_16 = _specialised_as(inner, launch.kernel.params[position].is_constexpr)
            types.append(kind)
            if kind == "constexpr":
                constants[path] = getattr(inner, "value", inner)
            elif multiple_of_16:
                aligned[path] = [["tt.divisibility", 16]]
        signature[name] = type(value)(*types) if isinstance(value, tuple) else types[0]
    return signature, constants, aligned


def _specialised_as(value, is_constexpr):
    """(type, is it a multiple of 16) of an argument or of a struct's field."""
    if isinstance(value, torch.Tensor):
        return "*" + _triton_type(value.dtype), value.data_ptr() % 16 == 0
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


def representative_calls(op):
    """Calls (on meta tensors, so of any size) that between them reach every path a kernel can be compiled into."""

    def empty(*shape, dtype=torch.float32):
        return torch.empty(shape, dtype=dtype, device="meta")

    prepare = importlib.import_module(f"tritonkernels.{op}").prepare
    wide = 40_000  # squared, 2^30.6 elements: with the margin of a tile it needs 64-bit offsets
    if op == "gemm":
        yield prepare(empty(4096, 4096), empty(4096, 4096), empty(4096, 4096), alpha=1.5, beta=0.5)
        yield prepare(empty(wide, 2 * wide).t(), empty(wide, 333))
    elif op == "gemv":
        for n in (16, 128, 16384):
            yield prepare(empty(16384, n), empty(n), empty(16384), beta=0.5)
        yield prepare(empty(2 * wide, wide + 1), empty(wide + 1))
        half, scale = torch.float16, empty(4096)
        yield prepare(empty(8, 4096, 4096, dtype=half).mT, empty(8, 4096, dtype=half))
        yield prepare(empty(4096, 4096, dtype=torch.int8), empty(4096, dtype=torch.bfloat16), scale=scale)
    elif op == "conv2d":
        yield prepare(empty(1, 6, 768, 512), empty(6, 6, 6, 6))
        yield prepare(empty(32, 64, 56, 56), empty(64, 64, 3, 3), empty(64), padding=1)
        yield prepare(empty(1024, 64, 256, 256), empty(64, 4, 5, 3), padding=(2, 1), stride=2, dilation=3, groups=16)
        yield prepare(empty(1024, 64, 256, 256).to(memory_format=torch.channels_last), empty(64, 4, 3, 3), groups=16)
        image = empty(32, 128, 28, 28, dtype=torch.float16).to(memory_format=torch.channels_last)
        for taps in (3, 1):
            yield prepare(image, empty(128, 128, taps, taps, dtype=torch.float16), padding=taps // 2)
    elif op == "conv2d_input":
        yield prepare((32, 64, 56, 56), empty(64, 64, 3, 3), empty(32, 64, 28, 28), padding=1, stride=2)
    elif op == "conv2d_weight":
        yield prepare(empty(1, 3, 1080, 1920), (3, 3, 3, 3), empty(1, 3, 1080, 1920), padding=1)
        yield prepare(empty(32, 64, 56, 56), (64, 64, 3, 3), empty(32, 64, 56, 56), padding=1)
        yield prepare(empty(32, 96, 56, 56), (96, 1, 3, 3), empty(32, 96, 28, 28), padding=1, stride=2, groups=96)
        yield prepare(
            empty(1024, 64, 256, 256), (64, 4, 5, 3), empty(1024, 64, 124, 126), padding=(2, 1), stride=2, dilation=3, groups=16
        )
    elif op == "conv2d_bias":
        yield prepare(empty(32, 64, 56, 56))
        yield prepare(empty(1024, 64, 256, 256).contiguous(memory_format=torch.channels_last))
    else:
        for dtype in (torch.float16, torch.float32, torch.int8):
            yield prepare(empty(4096, 4096, dtype=dtype), empty(4096, 4096, dtype=dtype))
        for precision in ("tf32", "fp16x3", "tf32x3", "bf16x6", "bf16x9"):
            yield prepare(empty(4096, 4096), empty(4096, 4096), precision=precision)
        yield prepare(empty(wide, 2 * wide, dtype=torch.float16).t(), empty(wide, 333, dtype=torch.float16))
        yield prepare(empty(wide, 2 * wide).t(), empty(wide, 333), precision="fp16x3")


def unusual_calls(op):
    """Calls of other types, and of matmul's epilogue: their kernels differ from the above in the loop's body or its end."""

    def empty(*shape, dtype=torch.float16):
        return torch.empty(shape, dtype=dtype, device="meta")

    prepare = importlib.import_module(f"tritonkernels.{op}").prepare
    if op == "conv2d":
        for dtype in (torch.float16, torch.float64):
            yield prepare(empty(1, 6, 768, 512, dtype=dtype), empty(6, 6, 6, 6, dtype=dtype), padding=1)
            yield prepare(empty(8, 64, 56, 56, dtype=dtype), empty(64, 64, 3, 3, dtype=dtype), empty(64, dtype=dtype))
        stem = empty(32, 3, 224, 224).to(memory_format=torch.channels_last)
        yield prepare(stem, empty(64, 3, 7, 7), padding=3, stride=2)
        yield prepare(empty(1, 512, 7, 7, dtype=torch.bfloat16), empty(512, 512, 3, 3, dtype=torch.bfloat16), padding=1)
        yield prepare(empty(32, 128, 28, 28, dtype=torch.float32), empty(128, 128, 3, 3, dtype=torch.float32), precision="tf32")
        channels = empty(32, 96, 56, 56, dtype=torch.float32).to(memory_format=torch.channels_last)
        yield prepare(channels, empty(96, 1, 3, 3, dtype=torch.float32), padding=1, groups=96)
    if op == "conv2d_weight":
        for dtype in (torch.float16, torch.bfloat16, torch.float64):
            for k in (3, 64):
                yield prepare(empty(8, k, 56, 56, dtype=dtype), (k, k, 3, 3), empty(8, k, 56, 56, dtype=dtype), padding=1)
            images = empty(8, 64, 56, 56, dtype=dtype).contiguous(memory_format=torch.channels_last)
            yield prepare(images, (64, 64, 3, 3), images, padding=1)
        images = empty(8, 64, 56, 56, dtype=torch.float32)
        yield prepare(images, (64, 64, 3, 3), images, padding=1, precision="tf32")
    if op != "matmul":
        return
    for dtype in (torch.bfloat16, torch.float64, torch.float8_e4m3fn, torch.float8_e5m2):
        yield prepare(empty(4096, 4096, dtype=dtype), empty(4096, 4096, dtype=dtype))
    for precision in ("uint8", "int4", "b1_xor"):
        bytes_ = empty(4096, 4096, dtype=torch.uint8)
        yield prepare(bytes_, bytes_, precision=precision)
    yield prepare(empty(4096, 4096), empty(4096, 4096), accumulate="fp16")
    c, bias = empty(4096, 4096), empty(4096)
    yield prepare(empty(4096, 4096), empty(4096, 4096), alpha=1.5, beta=0.5, c=c, bias=bias, activation="gelu")
    a, b, c, bias = (empty(*shape, dtype=torch.float32) for shape in ((4096, 4096), (4096, 4096), (4096, 4096), (4096,)))
    yield prepare(a, b, alpha=1.5, beta=0.5, c=c, bias=bias, activation="gelu", precision="fp16x3")


def survey(op, design, target, most=None):
    """The resources of the configs of a design over the representative calls that it does not refuse.

    Of all of them, and of the first for each unusual call, which has the biggest tile there; or of the first few alone.
    """
    chosen = {d.name: d for d in LIBRARY.designs(op)}[design]
    seen, asked = set(), set()  # configs that differ in the launch alone compile to the same code
    calls = [(call, most) for call in representative_calls(op)]
    calls += [(call, 1) for call in unusual_calls(op) if most is None]
    for call, count in calls:
        if chosen.refuses(call.problem, target) is None:
            for config in itertools.islice(chosen.configs(call.problem, target), count):
                for launch in chosen.launches(call.problem, config, *call.parts[0]):
                    wanted = repr((launch.kernel, _specialised(launch), launch.options))
                    if wanted in asked:
                        continue
                    asked.add(wanted)
                    kernel = compile_launch(launch, target)
                    if kernel.hash not in seen:
                        seen.add(kernel.hash)
                        facts = resources(kernel)
                        yield {"target": target.name, "problem": call.problem.describe(), "config": as_dict(config), **facts}


def main(op, design, *targets):
    """Print the survey of each target: of all configs, "sm_90", or of the first for each ordinary call, "sm_90:1"."""
    for wanted in targets:
        architecture, _, most = wanted.partition(":")
        for row in survey(op, design, Target.named(architecture), int(most) if most else None):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
