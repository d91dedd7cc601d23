"""Which design and config a matmul gets, and what is packed for it: pure functions, so for GPUs that are not here."""

import pytest
import torch

import tritonkernels
from tritonkernels.matmul import prefer
from tritonkernels.target import Target

from .harness import prepare


def empty(*shape, dtype=torch.float16):
    return torch.empty(shape, dtype=dtype, device="meta")


def square(size, dtype=torch.float16, **options):
    return prepare("matmul", empty(size, size, dtype=dtype), empty(size, size, dtype=dtype), **options).problem


@pytest.mark.parametrize(
    "problem, target, wanted",
    [
        (square(8192), "h200", "persistent"),
        (square(8192), "b200", "persistent"),
        (square(8192), "a100", "tensor_core"),
        (square(4095), "h200", "persistent"),  # packed, and re-used enough for that
        (prepare("matmul", empty(256, 4095), empty(4095, 8192)).problem, "h200", "tensor_core"),
        (prepare("matmul", empty(256, 65536), empty(65536, 256)).problem, "h200", "split_k"),
        (prepare("matmul", empty(12 * 128, 4096), empty(4096, 12 * 128)).problem, "h200", "stream_k"),
        (square(8192, torch.float64), "h200", "tensor_core"),
        (square(8192, torch.float32, precision="tf32"), "h200", "persistent"),
        (square(8192), "interpreter", "tensor_core"),
    ],
)
def test_the_preferred_design(problem, target, wanted):
    assert prefer(problem, Target.named(target)) == wanted


def grids(*args, **kwargs):
    return tritonkernels.explain("matmul", *args, target="h200", **kwargs)["grid"]


def test_explain_shows_what_is_packed_first():
    int8 = empty(4096, 4096, dtype=torch.int8)
    assert len(grids(int8, int8)) == 2 and len(grids(int8, int8.t())) == 1
    assert len(grids(empty(4096, 4096), empty(4096, 4096))) == 1
    assert len(grids(empty(4096, 4097), empty(4097, 4096))) == 2, "A is unaligned, B is not"
    tf32 = empty(4096, 4096, dtype=torch.float32)
    assert len(grids(tf32, tf32, precision="tf32")) == 3
    assert len(grids(int8[:64], int8, design="tensor_core")) == 1, "64 rows do not pay for packing B"


@pytest.mark.parametrize("design", ["tensor_core", "persistent", "split_k", "stream_k"])
def test_an_fp8_slice_is_no_longer_than_the_bound_says(design):
    from tritonkernels.launch import LIBRARY
    from tritonkernels.numerics import FP8_SLICE

    chosen = {d.name: d for d in LIBRARY.designs("matmul")}[design]
    problem = square(4096, torch.float8_e4m3fn)
    assert FP8_SLICE == 128, "language/dot.py says 128"
    assert min(config.kwargs["BLOCK_K"] for config in chosen.configs(problem, Target.named("h200"))) >= 32
    assert "sm_80" in chosen.refuses(problem, Target.named("a100"))
