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
    "problem, designs",
    [
        (square(8192), ("persistent",)),
        (square(8192, torch.float32, precision="tf32"), ("persistent",)),
        (product(256, 256, 65536), ("split_k", "stream_k")),
        (product(4096, 1, 1024), ("gemv.vectorized", "gemv.rows_per_warp", "gemv.block_per_row", "gemv.warp_per_row")),
    ],
    ids=str,
)
def test_the_designs_that_are_made_for_a_shape_get_it(problem, designs):
    """By a factor of two and more, so that no fit to other records changes it."""
    assert LIBRARY.choose(problem, Target.named("h200"))[0].name in designs


def test_a_gpu_without_tma_gets_another_design():
    assert LIBRARY.choose(square(8192), Target.named("a100"))[0].name != "persistent"


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
