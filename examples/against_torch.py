"""What the examples that train share: a model trained twice from the same weights on the same data, by torch and by us.

The losses of both runs, in the mean of the last steps, must agree within TOLERANCE: ten times what runs of torch alone, one in
float32 and one in float64, differ by. Single steps differ more, as training amplifies roundings.
"""

import argparse
import copy
import importlib
import sys
import time

import torch

TOLERANCE, LAST = 0.02, 20  # of the mean loss of the last steps


def options(description, steps):
    """The command line of an example."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--steps", type=int, default=steps, help="default: %(default)s")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument(
        "--package",
        choices=("tritonkernels", "cuda_reference"),
        help="default: tritonkernels on a GPU; on a CPU cuda_reference, whose emulation is faster than Triton's interpreter",
    )
    given = parser.parse_args()
    given.package = given.package or ("tritonkernels" if given.device == "cuda" else "cuda_reference")
    return given


def train(model, make_optimizer, loss, batch, steps):
    """(the losses of all steps, seconds); loss(model, batch(generator)) is minimised."""
    optimizer, generator, losses, begun = make_optimizer(model.parameters()), torch.Generator().manual_seed(1), [], time.time()
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss(model, batch(generator))
        value.backward()
        optimizer.step()
        losses.append(value.detach())
    return torch.stack(losses).tolist(), time.time() - begun


def compare(given, model, make_optimizer, loss, batch):
    """Train both models, print what was swapped and both runs' losses; the exit status is 1 if these disagree."""
    torch.backends.cudnn.conv.fp32_precision = "ieee"  # pyright: ignore  # torch convolves in TF32 on a GPU, where ours is IEEE
    torch.set_num_threads(1 if given.device == "cpu" else torch.get_num_threads())  # for tiny operands more only wait
    model = model.to(given.device)
    ours = copy.deepcopy(model)
    print(importlib.import_module(f"{given.package}.nn").replace(ours, only_where_faster=False))
    runs = {
        name: train(trained, make_optimizer, loss, batch, given.steps)
        for name, trained in (("torch", model), (given.package, ours))
    }
    for step in (*range(0, given.steps - 1, max(1, given.steps // 10)), given.steps - 1):
        print(f"step {step + 1:4}: loss", ", ".join(f"{losses[step]:.4f} ({name})" for name, (losses, _) in runs.items()))
    print(", ".join(f"{name}: {seconds:.1f} s" for name, (_, seconds) in runs.items()))
    torchs, own = (sum(losses[-LAST:]) / len(losses[-LAST:]) for losses, _ in runs.values())
    print(f"mean loss of the last steps: {own:.4f}, torch's {torchs:.4f}, off by {abs(own - torchs):.1e}, allowed {TOLERANCE}")
    sys.exit(abs(own - torchs) > TOLERANCE)
