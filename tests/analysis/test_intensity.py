"""Intensity and the roofline, checked with the figures of the GEMM seed."""

import pytest
import torch

from tritonkernels.analysis.intensity import intensity, required_bandwidth
from tritonkernels.analysis.occupancy import SCHEDULERS, occupancy
from tritonkernels.analysis.roofline import limits, slowest
from tritonkernels.problem import GemmProblem
from tritonkernels.target import Target

RTX_2080 = Target.named("rtx_2080")
TITAN_V = Target.named("titan_v")


def gemm(m, n, k, dtype=torch.float32, precision="ieee"):
    return GemmProblem(dtype, dtype, precision, False, m, n, k, 1.0, 0.0, "row", "row")


def test_a_naive_warp_is_bound_by_l2():
    naive = intensity(1, 32)
    assert naive == 64 / 132 and round(naive, 2) == 0.48


def test_block_tiles_and_the_bandwidth_they_need():
    assert intensity(64, 64) == 16 and intensity(128, 128) == 32
    assert intensity(128, 64) == 128 * 64 / (2 * (128 + 64)) == intensity(64, 128)
    assert intensity(128, 128, itemsize=2) == 64
    assert required_bandwidth(RTX_2080.peaks["ieee"], intensity(64, 64)) == 631.25e9


def test_128_registers_a_thread_leave_4_warps_a_scheduler():
    half = occupancy(RTX_2080, threads=256, registers=128)
    assert half.fraction == 0.5 and half.warps / SCHEDULERS == 4


@pytest.mark.parametrize("size, bound", ((16, "memory"), (4096, "compute")))
def test_limits_of_a_problem(size, bound):
    problem = gemm(size, size, size)
    facts = limits(problem, RTX_2080)
    assert facts["compute_s"] == pytest.approx((2 * size**3 + size**2) / 10.1e12)
    assert facts["memory_s"] == pytest.approx(12 * size**2 / 448e9)
    assert facts["bound_by"] == bound == max(("compute", "memory"), key=lambda name: facts[f"{name}_s"])
    bend = RTX_2080.peaks["ieee"] / RTX_2080.dram_bandwidth
    assert bend == pytest.approx(22.545, abs=1e-3)
    assert (problem.intensity > bend) == (bound == "compute")


def test_unknown_rates_give_no_times():
    assert limits(gemm(8, 8, 8), Target.named("interpreter")) == {"memory_s": None, "compute_s": None, "bound_by": None}
    int8_on_volta = limits(gemm(8, 8, 8, precision="int8"), TITAN_V)
    assert int8_on_volta["compute_s"] is None and int8_on_volta["bound_by"] == "memory"
    assert slowest({"a": 1, "b": 3, "c": None, "d": 2}) == "b"
