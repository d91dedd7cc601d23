"""Which design and config a matmul gets, and which operands are packed: also for GPUs that are not present."""

import pytest
import torch

import cuda_reference
import tritonkernels
from tests.harness import prepare
from tritonkernels.design import as_dict
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
        (square(8192), ("persistent", "warp_specialized")),
        (square(8192, torch.float32, precision="tf32"), ("persistent", "warp_specialized")),
        (product(256, 256, 65536), ("split_k", "persistent", "warp_specialized")),
        (product(4096, 1, 1024), ("gemv.vectorized", "gemv.rows_per_warp", "gemv.block_per_row")),
    ],
    ids=str,
)
def test_the_designs_that_are_made_for_a_shape_get_it(problem, designs):
    """By a factor of two and more, so that no fit to other records changes it."""
    design, config = LIBRARY.choose(problem, Target.named("h200"))
    assert design.name in designs
    assert problem.k < 65536 or as_dict(config).get("SPLIT_K", 2) > 1, "persistent, too, must split K"


def test_a_gpu_without_tma_gets_another_design():
    assert LIBRARY.choose(square(8192), Target.named("a100"))[0].name not in ("persistent", "warp_specialized")


def kernels(package, *args, **kwargs):
    return package.explain("matmul", *args, target="h200", **kwargs)["kernels"]


def test_explain_shows_what_is_packed_first():
    int8, half, unaligned = empty(4096, 4096, dtype=torch.int8), empty(4096, 4096), empty(4096, 4097)
    persistent = {"design": "persistent"}
    assert kernels(tritonkernels, int8, int8, **persistent) == ["pack", "persistent"], "B does not lie along K"
    assert kernels(tritonkernels, int8, int8.t(), **persistent) == ["persistent"]
    assert kernels(tritonkernels, half, half, **persistent) == ["persistent"]
    assert kernels(tritonkernels, unaligned, empty(4097, 4096), **persistent) == ["pack", "persistent"], "B is aligned"
    assert kernels(cuda_reference, unaligned, empty(4097, 4096), **persistent) == ["align", "persistent"]
    tf32 = empty(4096, 4096, dtype=torch.float32)
    assert kernels(tritonkernels, tf32, tf32, precision="tf32", **persistent) == ["pack", "persistent"], "TMA rounds A"
    for packs in (True, False):
        config = {"PACK_A": False, "PACK_B": packs}
        assert len(kernels(tritonkernels, int8[:64], int8, design="pipelined", config=config)) == 1 + packs


def test_a_second_kernel_adds_the_sums_of_many_splits():
    a, b = empty(64, 65536), empty(65536, 64)
    counts = [
        len(kernels(tritonkernels, a, b, design="split_k", config={"SPLIT_K": splits, "BLOCK_M": 64, "BLOCK_N": 64}))
        for splits in (4, 64)
    ]
    assert counts == [1, 2]


@pytest.mark.parametrize("design", ["pipelined", "persistent", "split_k"])
def test_an_fp8_slice_is_no_longer_than_the_bound_says(design):
    from tritonkernels.numerics import FP8_SLICE

    chosen = {d.name: d for d in LIBRARY.designs("matmul")}[design]
    problem = square(4096, torch.float8_e4m3fn)
    assert FP8_SLICE == 128, "language/dot.py says 128"
    assert min(config.kwargs["BLOCK_K"] for config in chosen.configs(problem, Target.named("h200"))) >= 32
    assert "sm_80" in chosen.refuses(problem, Target.named("a100"))
