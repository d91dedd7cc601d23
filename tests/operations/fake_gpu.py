"""python -m tests.operations.fake_gpu [native]: compares launches of repeated Triton calls with Triton's own, without a GPU.

Triton runs with a fake driver: its binder, its look-up of kernels and JITFunction.run are real, but a compiled kernel is a
stand-in that records its launches. Prints, as JSON, the number of calls compared and the differences.
"""

import functools
import importlib
import itertools
import json
import os
import sys
import types

os.environ["TRITONKERNELS_BACKEND"] = "gpu"
os.environ.pop("TRITON_INTERPRET", None)  # the parent process may use the interpreter

import torch
import triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

import tritonkernels
from tritonkernels import native, plans
from tritonkernels.language.descriptor import is_descriptor
from tritonkernels.launch import LIBRARY
from tritonkernels.plans import span_of
from tritonkernels.target import Target

launched = []  # the arguments of every launch


class Kernel(triton.compiler.CompiledKernel):
    handles = itertools.count(1)

    def __init__(self, source):
        self.src, self.name, self.module = source, "stand-in", None
        self.function, self.packed_metadata = next(self.handles), (next(self.handles),)
        self.metadata = types.SimpleNamespace(global_scratch_size=0, profile_scratch_size=0)
        self._run = lambda *arguments: launched.append(arguments)

    def _init_handles(self):
        pass


class Driver:
    stream = 7
    launcher_cls = staticmethod(lambda source, metadata: None)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return self.stream

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)


def install():
    triton.compiler.compile = lambda source, target, options, **_: Kernel(source)
    driver.set_active(Driver())
    plans.stream_of = lambda device: driver.active.stream
    LIBRARY.target = lambda device: Target.named("h200")
    LIBRARY.runs_on = lambda tensor: None


class Places:
    """Addresses as places in the tensors of a call; temporaries are numbered in order of appearance."""

    def __init__(self, tensors):
        self._tensors, self._others = tensors, {}

    def of(self, address):
        for i, t in enumerate(self._tensors):
            if 0 <= address - t.data_ptr() < span_of(t):
                return i, address - t.data_ptr()
        return "temporary", self._others.setdefault(address, len(self._others))


def same_argument(ours, triton_s, our_places, triton_places):
    if is_descriptor(triton_s):
        fields = [{k: v for k, v in vars(d).items() if k != "base"} for d in (ours, triton_s)]
        return fields[0] == fields[1] and same_argument(ours.base, triton_s.base, our_places, triton_places)
    if isinstance(triton_s, tuple):  # a struct: any tuple to the launcher
        pairs = zip(ours, triton_s, strict=True)
        return isinstance(ours, tuple) and all(same_argument(a, b, our_places, triton_places) for a, b in pairs)
    if not isinstance(triton_s, torch.Tensor):
        return type(ours) is type(triton_s) and ours == triton_s
    ours = ours.data_ptr() if isinstance(ours, torch.Tensor) else ours
    address = triton_s.data_ptr()
    return ours == 0 if address == 0 else ours % 16 == address % 16 and our_places.of(ours) == triton_places.of(address)


def run(call, tensors):
    launched.clear()
    result = call()
    return list(launched), Places([*tensors, result])


def the_whole_way(op, *args, design=None, **options):
    prepare = importlib.import_module(f"tritonkernels.{op}").prepare
    return LIBRARY.run(prepare(*args, **options), design)


def difference(ours, triton_s):
    """How our launches differ; None if they do not."""
    (ours, our_places), (triton_s, triton_places) = ours, triton_s
    if len(ours) != len(triton_s):
        return f"{len(ours)} launches, not {len(triton_s)}"
    for mine, its in zip(ours, triton_s):
        if mine[:6] != its[:6]:
            return f"grid, stream, function or metadata {mine[:6]}, not {its[:6]}"
        if len(mine) != len(its):
            return f"{len(mine)} arguments, not {len(its)}"
        for i, (a, b) in enumerate(zip(mine[9:], its[9:])):
            if not same_argument(a, b, our_places, triton_places):
                return f"argument {i}"
    return None


def was_repeated(launches):
    return all(arguments[6:9] == (None, None, None) for arguments in launches[0])


def tensor(*shape, dtype=torch.float32, shift=0, pitch=0):
    """Rows that are `pitch` elements longer than their length, starting `shift` elements after a multiple of 64 bytes."""
    *outer, length = shape
    count = torch.Size(outer).numel() * (length + pitch)
    buffer = torch.empty(count + shift + 64, dtype=dtype)
    first = -buffer.data_ptr() % 64 // dtype.itemsize + shift
    return buffer[first : first + count].view(*outer, length + pitch)[..., :length]


def changes():
    """(what is changed, operation, arguments, options) of calls that must not share a plan."""
    half, bf16, double, int8 = torch.float16, torch.bfloat16, torch.float64, torch.int8
    for dtype in (torch.float32, half, bf16):
        yield f"{dtype}", "gemv", (tensor(96, 64, dtype=dtype), tensor(64, dtype=dtype)), {}
        for shift in (1, 2, 4, 8):
            yield f"{dtype}, a {shift} on", "gemv", (tensor(96, 64, dtype=dtype, shift=shift), tensor(64, dtype=dtype)), {}
            yield f"{dtype}, x {shift} on", "gemv", (tensor(96, 64, dtype=dtype), tensor(64, dtype=dtype, shift=shift)), {}
        yield f"{dtype}, transposed", "gemv", (tensor(64, 96, dtype=dtype).t(), tensor(64, dtype=dtype)), {}
    a, x, y = tensor(96, 64), tensor(64), tensor(96)
    yield "pitch", "gemv", (tensor(96, 64, pitch=4), x), {}
    yield "odd pitch", "gemv", (tensor(96, 64, pitch=1), x), {}
    yield "strided x", "gemv", (a, tensor(128)[::2]), {}
    yield "expanded x", "gemv", (a, tensor(1).expand(64)), {}
    yield "y", "gemv", (a, x, y), {"beta": 2.0}
    yield "y, unused", "gemv", (a, x, y), {}
    for alpha in (0.5, 0, 0.0, -0.0, 1, 1.0):
        yield f"alpha {alpha!r}", "gemv", (a, x), {"alpha": alpha}
    yield "out", "gemv", (a, x), {"out": tensor(96)}
    yield "odd out", "gemv", (a, x), {"out": tensor(96, shift=1)}
    yield "int8", "gemv", (tensor(96, 64, dtype=int8), x), {"scale": y}
    yield "batch", "gemv", (tensor(3, 96, 64), tensor(3, 64)), {}
    yield "shared a", "gemv", (tensor(96, 64), tensor(3, 64)), {}
    yield "parts", "gemv", (tensor(2, 1, 96, 64), tensor(1, 3, 64)), {}
    yield "no rows", "gemv", (a[:0], x), {}
    yield "no columns", "gemv", (a[:, :0], x[:0]), {}
    for design in LIBRARY.names("gemv"):
        yield design, "gemv", (a, x), {"design": design}
    yield "few long rows", "gemv", (tensor(3, 50_000), tensor(50_000)), {}
    yield "counters of another number", "gemv", (tensor(5, 50_000), tensor(50_000)), {}
    for design in ("naive", "double_buffered", "split_k", "stream_k"):
        yield design, "gemm", (tensor(96, 128), tensor(128, 160)), {"design": design}
    yield "c", "gemm", (tensor(96, 64), tensor(64, 32), tensor(32)), {"beta": 0.5}
    for design in ("pipelined", "persistent", "warp_specialized", "split_k"):
        yield design, "matmul", (tensor(96, 128, dtype=half), tensor(128, 160, dtype=half)), {"design": design}
    for b in (tensor(128, 160), tensor(160, 128).t(), tensor(160, 128, shift=1).t()):
        yield f"cuda_cores {b.stride()} {b.storage_offset()}", "matmul", (tensor(96, 128), b), {"design": "cuda_cores"}
    yield "dmma", "matmul", (tensor(96, 128, dtype=double), tensor(128, 160, dtype=double)), {"design": "dmma"}
    yield "packed", "matmul", (tensor(96, 128, dtype=half, shift=1), tensor(128, 160, dtype=half)), {"design": "persistent"}
    square = tensor(64, 64, dtype=half)
    yield "by itself", "matmul", (square, square), {}
    yield "by its transpose", "matmul", (square, square.t()), {}
    for precision in ("highest", "high"):
        torch.set_float32_matmul_precision(precision)
        yield precision, "matmul", (tensor(96, 64), tensor(64, 96)), {"precision": "torch"}
    yield "conv2d", "conv2d", (tensor(1, 6, 20, 24), tensor(6, 6, 3, 3)), {"padding": 1}
    yield "conv2d, same", "conv2d", (tensor(1, 6, 20, 24), tensor(6, 6, 3, 3)), {"padding": "same"}
    image = tensor(1, 6, 20, 24).contiguous(memory_format=torch.channels_last)
    yield "conv2d, channels last", "conv2d", (image, tensor(6, 6, 3, 3)), {}
    deep = tensor(1, 512, 7, 7, dtype=half).contiguous(memory_format=torch.channels_last)
    for taps, design in ((3, "implicit_gemm"), (1, "implicit_gemm"), (1, "matmul.split_k")):
        options = {"padding": taps // 2, "design": design}
        yield f"{design} {taps}", "conv2d", (deep, tensor(64, 512, taps, taps, dtype=half)), options
    for precision in ("ieee", "tf32"):
        torch.backends.cudnn.conv.fp32_precision = precision
        options = {"precision": "torch", "design": "implicit_gemm"}
        yield precision, "conv2d", (tensor(2, 64, 14, 14), tensor(64, 64, 3, 3)), options
    yield "winograd", "conv2d", (image, tensor(6, 6, 3, 3)), {"design": "winograd"}  # four launches on a workspace


def main(native_too):
    install()
    wrong, compared = [], 0
    if native_too:
        LIBRARY.native, driver.active.stream = native.load().Repeats(), 0  # which is that of the CPU tensors of here
    for again in (False, True):  # the second time all plans exist and the tensors are new
        for what, op, args, options in changes():
            function = functools.partial(getattr(tritonkernels, op), *args, **options)
            tensors = [t for t in (*args, *options.values()) if isinstance(t, torch.Tensor)]
            if not again:
                function(), function()  # seen, watched
                if native_too:
                    function()  # learnt
            driver.active.stream += not native_too
            ours = run(function, tensors)
            triton_s = run(functools.partial(the_whole_way, op, *args, **options), tensors)
            found = difference(ours, triton_s) or (None if was_repeated(ours) else "not repeated")
            if native_too and not is_native(op, args, options) and "out" not in options and options.get("precision") != "torch":
                found = found or "not native"
            compared += 1
            if found:
                wrong.append(f"{op} {what}{', again' if again else ''}: {found}")
    wrong += hooks()
    print(json.dumps({"compared": compared, "wrong": wrong}))


def is_native(op, args, options):
    """Whether native/repeat.cpp repeats the call."""
    answers, repeats = [], LIBRARY.native

    class Watched:
        cleared = repeats.cleared

        def call(self, *values):
            answers.append(repeats.call(*values))
            return answers[-1]

    LIBRARY.native = Watched()
    getattr(tritonkernels, op)(*args, **options)
    LIBRARY.native = repeats
    return answers[-1:] != [NotImplemented] and bool(answers)


def hooks():
    """A launch hook sees all launches; without it, calls are repeated from plans again."""
    a, x, seen = tensor(96, 64), tensor(64), []
    enter = knobs.runtime.launch_enter_hook
    knobs.runtime.launch_enter_hook = seen.append
    hooked = run(lambda: tritonkernels.gemv(a, x), [a, x])[0]
    knobs.runtime.launch_enter_hook = enter
    repeated = was_repeated(run(lambda: tritonkernels.gemv(a, x), [a, x]))
    return [] if hooked[0][7] == seen.append and repeated else ["a hook into launches is passed over"]


if __name__ == "__main__":
    main(native_too="native" in sys.argv)
