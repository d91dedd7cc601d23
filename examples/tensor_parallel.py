"""A tensor-parallel MLP, trained next to the same MLP on one process: each process has a share of the hidden layer.

    PYTHONPATH=. torchrun --nproc-per-node 4 examples/tensor_parallel.py [--steps 5]

The first layer is sharded by columns, so its result is too. The second is sharded by rows, so each process has a partial sum of
the result, and DTensor adds them up: one all-reduce a step. torch's own parallelize_module shards the layers; the operators of
tritonkernels tell it what they can do with shards. On GPUs, one a process, it uses nccl; without a GPU it uses gloo, and the
kernels run in Triton's interpreter.
"""

import argparse
import os

import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn import functional

import tritonkernels as tk

TOKENS, WIDTH, HIDDEN = 32, 16, 64


class Linear(nn.Linear):
    """torch's, by a kernel of tritonkernels."""

    def forward(self, input):
        return tk.matmul(input, self.weight.mT, bias=self.bias)


class MLP(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.up, self.down = layer(WIDTH, HIDDEN), layer(HIDDEN, WIDTH)

    def forward(self, x):
        return self.down(functional.gelu(self.up(x)))


def losses(model, x, wanted, steps):
    """The loss at each step of plain gradient descent."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(steps):
        loss = functional.mse_loss(model(x), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=5)
    steps = parser.parse_args().steps
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group("nccl" if device == "cuda" else "gloo")
    rank, processes = distributed.get_rank(), distributed.get_world_size()

    torch.manual_seed(0)  # the same numbers in every process
    whole = MLP(nn.Linear).to(device)
    ours = MLP(Linear).to(device)
    ours.load_state_dict(whole.state_dict())
    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    sharded = parallelize_module(ours, init_device_mesh(device, (processes,)), plan)
    x, wanted = torch.randn(2, TOKENS, WIDTH, device=device)

    for step, (one, many) in enumerate(zip(losses(whole, x, wanted, steps), losses(sharded, x, wanted, steps))):
        if rank == 0:
            print(f"step {step}: loss {many:.6f} on {processes} processes, {one:.6f} on one with torch's own layers")
        if abs(many - one) > 1e-4 * one:
            raise SystemExit("the losses differ")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
