"""python -m perf torch: the host time of calls, and the times of whole models, next to torch's, on this GPU.

Host: what a repeated call of small operands takes of the CPU until it returns, as it is, while its gradients are recorded, and
in a function that torch.compile has compiled. Models: those of examples/, larger, forward alone and with backward, with torch's
modules, with ours where nn.replace measures them to be faster (for each of the two, within --budget), and with ours throughout;
call by call, and as a CUDA graph, which leaves out the host. All that is compared takes turns.

Exit status: 2 without a GPU.
"""

import copy
import functools
import importlib
import itertools
import sys
from dataclasses import dataclass, field
from typing import Any

import torch

from tritonkernels.choice.clock import GpuClock

from .. import ROOT
from ..arguments import positive, writable
from ..show import table
from . import contenders, records
from .environment import add_commit, environment
from .turns import WARM_UPS, build_native, in_turns, warm

SIZE = 64  # of the operands of host times, whose kernels take less than their launch
CALLS = 300  # in a row; the GPU's queue holds them all
ROUNDS = 15  # of host times
SECONDS = 2.0  # of a model's times, at least ROUNDS
HEADINGS = ("what", "of", "modules or operator", "swapped", "median us", "p20-p80")


@dataclass
class Time:
    """Microseconds of a call or a model's step."""

    what: str  # "host" or the model's name and type
    of: str
    name: str
    swapped: str = ""  # modules, of how many
    median_us: float | None = None
    p20_us: float | None = None
    p80_us: float | None = None
    environment: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def cells(self):
        return [self.what, self.of, self.name, self.swapped, f"{self.median_us:.1f}", f"{self.p20_us:.1f}-{self.p80_us:.1f}"]


def add_arguments(parser):
    parser.add_argument(
        "--budget", type=positive("seconds"), default=60.0, metavar="SECONDS", help="of an nn.replace; default: %(default)g"
    )
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
    for time in itertools.chain(host_times(device, clock), model_times(device, clock, options.budget)):
        time.environment = origin
        found.append(time)
        if options.json:  # what was found so far
            records.write_json(options.json, found)
    table.print_table(HEADINGS, [time.cells for time in found])
    return 0


# Host times.
def host_times(device, clock):
    for (op, mode), contestants in calls(device).items():
        runs = {name: functools.partial(_host_us, call, clock) for name, call in contestants.items()}
        torch._dynamo.reset()  # compiled functions count as one, which has a limit of variants
        for call in contestants.values():
            for _ in range(WARM_UPS):
                call()
        for name, times in in_turns(runs, ROUNDS).items():
            yield Time("host", f"{op}, {mode}", name, **times)


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
    return found


def _compiled(function):
    return torch.compile(lambda first, second: function(first, second), fullgraph=True)


# Models.
def model_times(device, clock, budget):
    torch.manual_seed(0)
    for name, model, batch in models(device):
        for what in ("forward", "forward and backward"):
            steps, swapped = {}, {}
            for modules, changed, count in variants(model, batch, what, budget):
                steps[modules], swapped[modules] = functools.partial(step, changed, batch, what), count
            warm(steps)
            for of, runs in ((what, steps), (f"{what}, CUDA graph", {name: clock.replay(run) for name, run in steps.items()})):
                timed = {name: functools.partial(_step_us, run, clock) for name, run in runs.items() if run}
                begun = clock.now()
                for run in timed.values():
                    run()
                rounds = max(ROUNDS, min(100, int(SECONDS / max(1e-3, clock.now() - begun))))
                for modules, times in in_turns(timed, rounds).items():
                    yield Time(name, of, modules, swapped[modules], **times)


def models(device):
    """(name, model, (inputs, classes)): those of examples/, as large as people have them."""
    resnet, transformer = (_example(name) for name in ("resnet", "transformer"))
    for dtype, title in ((torch.float32, "fp32"), (torch.bfloat16, "bf16")):
        images = torch.randn(32, 3, 224, 224, device=device, dtype=dtype).to(memory_format=torch.channels_last)
        model = resnet.resnet(64).to(device, dtype, memory_format=torch.channels_last)
        yield f"ResNet, {title}", model, (images, torch.randint(resnet.CLASSES, (32,), device=device))
        tokens = torch.randint(transformer.TOKENS, (512, transformer.LENGTH), device=device)
        model = transformer.Transformer(1024).to(device, dtype)
        yield f"transformer, {title}", model, (tokens, tokens)


def _example(name):
    folder = str(ROOT / "examples")
    if folder not in sys.path:  # where it finds what the examples share
        sys.path.append(folder)
    return importlib.import_module(name)


def variants(model, batch, what, budget):
    """(whose modules, the model with them, how many were swapped), where they are faster at `what`."""
    yield "torch", model, ""
    for package in contenders.PACKAGES.values():
        nn = importlib.import_module(f"{package}.nn")
        throughout, faster = copy.deepcopy(model), copy.deepcopy(model)
        rows = nn.replace(throughout, "torch", only_where_faster=False)
        step(throughout, batch, what)  # builds what the budget is not for
        with torch.set_grad_enabled(what != "forward"):
            chosen = nn.replace(faster, "torch", inputs=batch[0], budget=budget)
        for modules, changed, own in ((f"{package}, where faster", faster, chosen), (package, throughout, rows)):
            yield modules, changed, f"{sum(row.swapped for row in own)} of {len(own)}"


def step(model, batch, what):
    inputs, classes = batch
    if what == "forward":
        with torch.no_grad():
            return model(inputs)
    logits = model(inputs).flatten(0, -2)
    loss = torch.nn.functional.cross_entropy(logits.float(), classes.flatten())
    return torch.autograd.grad(loss, list(model.parameters()))


def _step_us(run, clock):
    clock.synchronize()
    begun = clock.now()
    run()
    clock.synchronize()
    return (clock.now() - begun) * 1e6
