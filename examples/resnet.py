"""Trains a small ResNet by tritonkernels.nn and by torch.nn, from the same weights on the same images, to the same loss.

    PYTHONPATH=. python examples/resnet.py [--steps 300] [--device cpu|cuda] [--package tritonkernels|cuda_reference]

The images are of 32 x 32 pixels: stripes in one of four directions under noise; the class is the direction. On a CPU the
model is tiny, as every thread of a GPU is emulated: it takes about a minute.
"""

import functools
import math

import torch
from against_torch import compare, options
from torch import nn
from torch.nn import functional

CLASSES, SIZE = 4, 32


class Block(nn.Module):
    """Two convolutions and a shortcut."""

    def __init__(self, channels, wider, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, wider, 3, stride, 1, bias=False),
            nn.BatchNorm2d(wider),
            nn.ReLU(),
            nn.Conv2d(wider, wider, 3, padding="same", bias=False),
            nn.BatchNorm2d(wider),
        )
        self.shortcut = nn.Conv2d(channels, wider, 1, stride)

    def forward(self, x):
        return functional.relu(self.body(x) + self.shortcut(x))


def resnet(width):
    return nn.Sequential(
        nn.Conv2d(3, width, 3, 2, 1, padding_mode="reflect"),
        Block(width, width, 1),
        Block(width, 2 * width, 2),
        Block(2 * width, 4 * width, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4 * width, CLASSES),
    )


def images(number, noise, device, generator):
    """(images, classes): stripes of any phase and colour, with noise."""
    classes = torch.randint(CLASSES, (number,), generator=generator)
    angles = math.pi * classes / CLASSES
    line = torch.arange(SIZE) * (2 * math.pi / 8)
    along = torch.cos(angles)[:, None, None] * line + torch.sin(angles)[:, None, None] * line[:, None]
    phases = torch.rand(number, 3, 1, 1, generator=generator) * 2 * math.pi
    grain = noise * torch.randn(number, 3, SIZE, SIZE, generator=generator)
    return (torch.sin(along[:, None] + phases) + grain).to(device), classes.to(device)


def loss(model, batch):
    pictures, classes = batch
    return functional.cross_entropy(model(pictures), classes)


def main():
    given = options(__doc__.splitlines()[0], steps=300)
    width, number, noise = (32, 64, 3.0) if given.device == "cuda" else (4, 4, 1.0)
    torch.manual_seed(0)
    make_optimizer = functools.partial(torch.optim.SGD, lr=0.01, momentum=0.9)
    compare(given, resnet(width), make_optimizer, loss, functools.partial(images, number, noise, given.device))


if __name__ == "__main__":
    main()
