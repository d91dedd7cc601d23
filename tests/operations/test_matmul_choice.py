"""Which design and config a matmul gets, and which operands are packed: also for GPUs that are not present."""

import pytest
import torch

import cuda_reference
import tritonkernels
from tests.harness import prepare
from tritonkernels.launch import LIBRARY
from tritonkernels.target import Target


def empty(*shape, dtype=torch.float16):
    return torch.empty(shape, dtype=dtype, device="meta")


def product(m, n, k, dtype=torch.float16, **options):
    return prepare("matmul", empty(m, k, dtype=dtype), empty(k, n, dtype=dtype), **options).problem


def square(size, dtype=torch.float16, **options):
    return product(size, size, size, dtype, **options)


@pytest.mark.parametrize(
    "problem, target, wanted",
    [
        (square(8192), "h200", "persistent"),
        (square(8192), "b200", "persistent"),
        (square(8192), "a100", "pipelined"),
        (square(4095), "h200", "persistent"),  # packed: large enough for the copy to pay off
        (product(4096, 333, 4096), "h200", "persistent"),
        (product(192, 8192, 4095), "h200", "pipelined"),
        (product(256, 256, 65536), "h200", "split_k"),
        (product(16, 4096, 4096), "h200", "split_k"),
        (product(4096, 1, 1024), "h200", "gemv.vectorized"),
        (product(16, 14336, 4096), "h200", "pipelined"),
        (product(256, 4096, 4096), "h200", "persistent"),
        (product(1536, 1536, 4096), "h200", "persistent"),
        (product(333, 4096, 333), "h200", "persistent"),
        (square(512), "h200", "pipelined"),
        (square(1024), "h200", "persistent"),
        (square(8192, torch.float64), "h200", "pipelined"),
        (square(8192, torch.float32, precision="tf32"), "h200", "persistent"),
        (square(8192), "interpreter", "pipelined"),
    ],
)
def test_the_preferred_design(problem, target, wanted):
    assert LIBRARY.choose(problem, Target.named(target))[0].name == wanted


@pytest.mark.parametrize(
    "sizes, tile",
    [
        ((256, 256, 256), (16, 64)),
        ((512, 512, 512), (64, 64)),
        ((1024, 1024, 1024), (64, 128)),
        ((2048, 2048, 2048), (128, 256)),
        ((4096, 333, 4096), (128, 128)),
        ((1536, 1536, 4096), (128, 256)),
        ((16, 4096, 4096), (16, 64, 4)),
        ((16, 1024, 1024), (16, 64, 2)),
        ((64, 4096, 16384), (64, 64, 2)),
        ((4096, 16, 4096), (64, 16, 4)),
        ((256, 1024, 4096), (64, 64, 2)),
        ((256, 256, 65536), (64, 128, 16)),
    ],
)
def test_the_tile_and_splits_that_were_measured_fastest(sizes, tile):
    config = tritonkernels.explain("matmul", empty(sizes[0], sizes[2]), empty(sizes[2], sizes[1]), target="h200")["config"]
    assert tuple(config[name] for name in ("BLOCK_M", "BLOCK_N", "SPLIT_K") if name in config) == tile


def grids(*args, **kwargs):
    return tritonkernels.explain("matmul", *args, target="h200", **kwargs)["grid"]


def test_explain_shows_what_is_packed_first():
    int8 = empty(4096, 4096, dtype=torch.int8)
    assert len(grids(int8, int8)) == 2 and len(grids(int8, int8.t())) == 1
    assert len(grids(empty(4096, 4096), empty(4096, 4096))) == 1
    unaligned = tritonkernels.explain("matmul", empty(4096, 4097), empty(4097, 4096), target="h200")
    assert unaligned["kernels"] == ["pack", "persistent"], "A is unaligned, B is not"
    on_cuda = cuda_reference.explain("matmul", empty(4096, 4097), empty(4097, 4096), target="h200")
    assert on_cuda["kernels"] == ["align", "persistent"]
    tf32 = empty(4096, 4096, dtype=torch.float32)
    assert len(grids(tf32, tf32, precision="tf32")) == 3
    assert len(grids(int8[:64], int8, design="pipelined")) == 1, "packing B does not pay off for 64 rows"
    few, many = grids(empty(16, 4096), empty(4096, 64)), grids(empty(64, 65536), empty(65536, 64))
    assert (len(few), len(many)) == (1, 2), "a second kernel adds the sums of many splits"


@pytest.mark.parametrize("design", ["pipelined", "persistent", "split_k", "stream_k"])
def test_an_fp8_slice_is_no_longer_than_the_bound_says(design):
    from tritonkernels.numerics import FP8_SLICE

    chosen = {d.name: d for d in LIBRARY.designs("matmul")}[design]
    problem = square(4096, torch.float8_e4m3fn)
    assert FP8_SLICE == 128, "language/dot.py says 128"
    assert min(config.kwargs["BLOCK_K"] for config in chosen.configs(problem, Target.named("h200"))) >= 32
    assert "sm_80" in chosen.refuses(problem, Target.named("a100"))
