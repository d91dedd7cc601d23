"""python -m perf torch: the host time of calls, next to torch's, on this GPU.

What a repeated call of small operands takes of the CPU until it returns: as it is, while its gradients are recorded, and in a
function that torch.compile has compiled; and what a module takes forward and backward. All that is compared takes turns.

Exit status: 2 without a GPU.
"""

import functools
import importlib
import sys
from dataclasses import dataclass, field
from typing import Any

import torch

from tritonkernels.choice.clock import GpuClock

from ..arguments import writable
from ..show import table
from . import contenders, records
from .environment import add_commit, environment
from .turns import WARM_UPS, build_native, in_turns

SIZE = 64  # of the operands of host times, whose kernels take less than their launch
CALLS = 300  # in a row; the GPU's queue holds them all
ROUNDS = 15
HEADINGS = ("call", "whose", "median us", "p20-p80")


@dataclass
class Time:
    """Microseconds of a call."""

    of: str
    name: str
    median_us: float | None = None
    p20_us: float | None = None
    p80_us: float | None = None
    environment: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def cells(self):
        return [self.of, self.name, f"{self.median_us:.1f}", f"{self.p20_us:.1f}-{self.p80_us:.1f}"]


def add_arguments(parser):
    parser.add_argument("--json", type=writable, metavar="FILE", help="write the times there")
    add_commit(parser)


def main(options, parser):
    device = contenders.device()
    if device.type != "cuda":
        print("torch needs a GPU and torch sees none: times without one say nothing", file=sys.stderr)
        return 2
    found, origin = [], environment(device, options.commit)
    clock = GpuClock(device)
    build_native(device)
    for time in host_times(device, clock):
        time.environment = origin
        found.append(time)
        if options.json:  # what was found so far
            records.write_json(options.json, found)
    table.print_table(HEADINGS, [time.cells for time in found])
    return 0


def host_times(device, clock):
    for (op, mode), contestants in calls(device).items():
        runs = {name: functools.partial(_host_us, call, clock) for name, call in contestants.items()}
        torch._dynamo.reset()  # compiled functions count as one, which has a limit of variants
        for call in contestants.values():
            for _ in range(WARM_UPS):
                call()
        for name, times in in_turns(runs, ROUNDS).items():
            yield Time(f"{op}, {mode}", name, **times)


def _host_us(call, clock):
    clock.synchronize()
    begun = clock.now()
    for _ in range(CALLS):
        call()
    return (clock.now() - begun) / CALLS * 1e6


def calls(device):
    """{(operation, how): {whose: the call}}."""

    def draw(*shape, dtype=torch.float32):
        return torch.randn(shape, device=device).to(dtype)

    ours = {package: importlib.import_module(package) for package in contenders.PACKAGES.values()}
    a, b, x, half = draw(SIZE, SIZE), draw(SIZE, SIZE), draw(SIZE), torch.float16
    operands = {"gemm": (a, b), "gemv": (a, x), "matmul, fp16": (a.to(half), b.to(half))}
    torchs, found = {"gemm": torch.mm, "gemv": torch.mv, "matmul, fp16": torch.mm}, {}
    for title, (first, second) in operands.items():
        op = title.partition(",")[0]
        functions = {"torch": torchs[title]} | {name: getattr(package, op) for name, package in ours.items()}
        learnt = first.clone().requires_grad_()
        found[title, "plain"] = {name: functools.partial(f, first, second) for name, f in functions.items()}
        found[title, "recorded"] = {name: functools.partial(f, learnt, second) for name, f in functions.items()}
        found[title, "compiled"] = {name: functools.partial(_compiled(f), first, second) for name, f in functions.items()}
    for dtype, title in ((torch.float32, "fp32"), (torch.float16, "fp16")):
        linear = torch.nn.Linear(SIZE, SIZE, device=device, dtype=dtype)
        modules = {"torch": linear}
        modules |= {name: importlib.import_module(f"{name}.nn").Linear.from_torch(linear) for name in ours}
        batch, gradient = draw(SIZE, SIZE, dtype=dtype).requires_grad_(), draw(SIZE, SIZE, dtype=dtype)
        steps = {name: functools.partial(_step, module, batch, gradient) for name, module in modules.items()}
        found[f"nn.Linear, {title}", "forward and backward"] = steps
    return found


def _step(module, batch, gradient):
    return torch.autograd.grad(module(batch), (batch, *module.parameters()), gradient)


def _compiled(function):
    return torch.compile(lambda first, second: function(first, second), fullgraph=True)
