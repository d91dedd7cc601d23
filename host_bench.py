"""Host time of nn.Linear, ours and torch's: forward and a training step, in 20 alternating rounds. Needs a GPU."""

import statistics
import time

import torch

import tritonkernels
from tritonkernels.launch import LIBRARY

ROUNDS, CALLS, WARM = 20, 500, 30

layers = {
    "torch": torch.nn.Linear(1024, 1024, device="cuda", dtype=torch.bfloat16),
    "ours": tritonkernels.nn.Linear(1024, 1024, device="cuda", dtype=torch.bfloat16),
}


def forward(layer, x, grad):
    with torch.no_grad():
        layer(x)


def step(layer, x, grad):
    layer(x).backward(grad)


def host(call, *args):
    """us a call; the GPU has nothing to do before, and its queue never is full."""
    torch.cuda.synchronize()
    before = time.perf_counter()
    for _ in range(CALLS):
        call(*args)
    taken = time.perf_counter() - before
    torch.cuda.synchronize()
    return taken / CALLS * 1e6


for shape in ((64, 1024), (4, 16, 1024)):
    x = torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    grad = torch.randn(shape, device="cuda", dtype=torch.bfloat16)
    for layer in layers.values():
        for _ in range(WARM):
            forward(layer, x, grad), step(layer, x, grad)
    until = time.monotonic() + 60
    while LIBRARY.native is None and time.monotonic() < until:
        time.sleep(0.5)
    for layer in layers.values():
        for _ in range(WARM):
            forward(layer, x, grad), step(layer, x, grad)
    launches = LIBRARY.native.counts() if LIBRARY.native else None
    print(f"x {shape}; native module: {LIBRARY.native is not None}; launches (all, by the driver): {launches}", flush=True)
    for call in (forward, step):
        times = {name: [] for name in layers}
        for _ in range(ROUNDS):
            for name, layer in layers.items():
                times[name].append(host(call, layer, x, grad))
        found = {
            name: (round(statistics.median(own), 1), round(min(own), 1), round(max(own), 1)) for name, own in times.items()
        }
        print(f"  {call.__name__:8} us (median, least, most): {found}", flush=True)
