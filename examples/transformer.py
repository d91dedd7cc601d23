"""Trains a small transformer by tritonkernels.nn and by torch.nn, from the same weights on the same tokens, to the same loss.

    PYTHONPATH=. python examples/transformer.py [--steps 300] [--device cpu|cuda] [--package tritonkernels|cuda_reference]

Each sequence counts on by a step of its own, modulo the number of tokens: to predict the next token, the model has to look at
the two before it. On a CPU the model is tiny, as every thread of a GPU is emulated: it takes about a minute.
"""

import functools

import torch
from against_torch import compare, options
from torch import nn
from torch.nn import functional

TOKENS, LENGTH, HEADS, LAYERS = 8, 12, 2, 2


class Layer(nn.Module):
    """Attention and a perceptron, each added to what comes in."""

    def __init__(self, width):
        super().__init__()
        self.before_attention, self.before_perceptron = nn.LayerNorm(width), nn.LayerNorm(width)
        self.to_heads, self.from_heads = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        heads = self.to_heads(self.before_attention(x)).unflatten(-1, (3, HEADS, -1)).movedim(2, 0).transpose(2, 3)
        seen = functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.from_heads(seen.transpose(1, 2).flatten(2))
        return x + self.perceptron(self.before_perceptron(x))


class Transformer(nn.Module):
    """The logits of the next token at each position. The last Linear and the embedding have one weight."""

    def __init__(self, width):
        super().__init__()
        self.embedding, self.positions = nn.Embedding(TOKENS, width), nn.Parameter(0.1 * torch.randn(LENGTH, width))
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.layers = nn.Sequential(*(Layer(width) for _ in range(LAYERS)), nn.LayerNorm(width))
        self.logits = nn.Linear(width, TOKENS, bias=False)
        self.logits.weight = self.embedding.weight

    def forward(self, tokens):
        return self.logits(self.layers(self.embedding(tokens) + self.positions))


def sequences(number, device, generator):
    """(number, LENGTH + 1) tokens."""
    first, step = (torch.randint(TOKENS, (number, 1), generator=generator) for _ in range(2))
    return ((first + step * torch.arange(LENGTH + 1)) % TOKENS).to(device)


def loss(model, tokens):
    return functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


def main():
    given = options(__doc__.splitlines()[0], steps=300)
    width, number = (128, 64) if given.device == "cuda" else (16, 8)
    torch.manual_seed(0)
    make_optimizer = functools.partial(torch.optim.AdamW, lr=1e-3 if given.device == "cuda" else 3e-3)
    compare(given, Transformer(width), make_optimizer, loss, functools.partial(sequences, number, given.device))


if __name__ == "__main__":
    main()
