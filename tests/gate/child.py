"""Makes the calls of calls.py, on the GPU if there is one. Prints a line before each call, and one for each that went wrong.

python -m tests.gate.child PACKAGE [--operations op ...] [--designs op/design ...] [--problems ragged ...] [--kinds float32 ...]
    [--new] [--share 1/4]

Results are judged against float64, operands and what surrounds `out` compared, all on the CPU: under compute-sanitizer every
kernel of torch's would be instrumented too. Under Triton's GSan (TRITON_INSTRUMENTATION_MODE=gsan) tensors are in its memory.
"""

import argparse
import contextlib
import os
import sys
import zlib

import torch

from tests.gate.calls import calls, designs
from tests.harness import LIBRARIES, bits, moved, poisoned, prepare, sentinel
from tritonkernels import OPS, backend, numerics
from tritonkernels.design import as_dict

PROGRAM = "tests.gate.child"


def fault(library, call, device):
    """What the call did wrong, or None."""
    torch.manual_seed(zlib.crc32(str(call).encode()))
    args, kwargs = call.make()
    given, named = on(device, args), dict(zip(kwargs, on(device, kwargs.values())))
    prepared = prepare(call.op, *given, **named)
    result = prepared.result
    there, back = ((0, 2, 3, 1), (0, 3, 1, 2)) if _is_channels_last(result) else (range(result.ndim),) * 2
    if call.out:
        out, buffer, where = poisoned(result.permute(*there).shape, result.dtype, device, aligned=True)
        prepared = prepare(call.op, *given, out=out.permute(*back), **named)
    else:
        buffer, where = result.permute(*there).fill_(sentinel(result.dtype)), ...
    chosen, config = library.choose(prepared.problem, library.target(device), call.design)
    library.run(prepared, call.design)
    buffer = buffer.cpu()  # all of it, as it lies: torch copies a part by a kernel
    computed = buffer[where].permute(*back)
    transform = chosen.transform(as_dict(config))
    verdict = numerics.judge(chosen.as_rounded(prepared.problem), computed, *args, transform=transform, **kwargs)
    if not verdict.ok:
        return f"error {verdict.error:.3g} above the bound {verdict.bound:.3g}"
    changed = [pair for pair in zip((*given, *named.values()), (*args, *kwargs.values())) if not _same(*pair)]
    if changed:
        return f"{len(changed)} of its operands changed"
    buffer[where] = sentinel(result.dtype)
    untouched = torch.full_like(buffer, sentinel(result.dtype))
    return None if _same(buffer, untouched) else "memory outside of out was written"


def on(device, values):
    """The values, with tensors copied to the device."""
    return [moved(v, device, copy=True) if isinstance(v, torch.Tensor) else v for v in values]


def _is_channels_last(t):
    return t.ndim == 4 and t.stride(1) == 1 and not t.is_contiguous()


def _same(value, expected):
    return not isinstance(value, torch.Tensor) or torch.equal(bits(value.cpu()), bits(expected))


def groups(library, wanted, target, ops=OPS):
    """The calls, grouped by design and kind, which share kernels."""
    found = {}
    for op in ops:
        for design in designs(library, op):
            if not wanted or f"{op}/{design}" in wanted:
                for call in calls(library, op, design, target):
                    found.setdefault((op, design, call.kind), []).append(call)
    return list(found.values())


def lost(device):
    """Whether a kernel's fault destroyed the CUDA context, after which nothing can run in this process."""
    if device.type == "cuda":
        try:
            torch.cuda.synchronize(device)
        except RuntimeError:
            return True
    return False


def memory():
    """Where tensors are allocated meanwhile: GSan sees only accesses to its own pool."""
    if os.environ.get("TRITON_INSTRUMENTATION_MODE") != "gsan":
        return contextlib.nullcontext()
    from triton.experimental import gsan

    return torch.cuda.use_mem_pool(gsan.create_mem_pool())


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m tests.gate.child")
    parser.add_argument("package", choices=[library.package for library in LIBRARIES])
    parser.add_argument("--operations", nargs="*", choices=OPS, default=OPS)
    parser.add_argument("--designs", nargs="*", default=())
    parser.add_argument("--problems", nargs="*", default=())
    parser.add_argument("--kinds", nargs="*", default=())
    parser.add_argument("--new", action="store_true", help="only calls without `out`")
    parser.add_argument("--go-on", action="store_true", help="in a new process, after one that lost its CUDA context")
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="N", help="without the first N calls")
    parser.add_argument("--share", default="1/1", metavar="I/N", help="every N-th group of calls from the I-th on")
    options = parser.parse_args(argv)
    share, shares = map(int, options.share.split("/"))
    device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    library = next(library for library in LIBRARIES if library.package == options.package)
    backend.name()  # before Triton is imported
    every = groups(library, options.designs, library.target(device), options.operations)
    mine = [call for group in every[share - 1 :: shares] for call in group]
    mine = [call for call in mine if not options.problems or call.problem in options.problems]
    mine = [call for call in mine if not (options.kinds and call.kind not in options.kinds)]
    mine = [call for call in mine if not (options.new and call.out)]
    wrong = 0
    with memory():
        for number, call in enumerate(mine[options.first :], options.first + 1):
            print(f"RUN {call}", flush=True)
            try:
                why = fault(library, call, device)
            except Exception as error:  # whatever it is, the next call is to run too
                why = f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"
            if why:
                wrong += 1
                print(f"WRONG {call}: {why}", flush=True)
                if lost(device):
                    print(f"LOST the CUDA context; {len(mine) - number} calls are left", flush=True)
                    if not options.go_on:
                        return 1
                    os.execv(sys.executable, [sys.executable, "-m", PROGRAM, *argv, "--from", str(number)])
    print(f"DONE {len(mine)} calls, {wrong} wrong", flush=True)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
