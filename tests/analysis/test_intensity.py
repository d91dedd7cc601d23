"""Intensity, latency and the roofline, checked with the figures of the GEMM seed."""

import pytest
import torch

from tritonkernels.analysis.intensity import best_split, intensity, operand_loads, required_bandwidth
from tritonkernels.analysis.latency import bytes_in_flight, hidden_cycles
from tritonkernels.analysis.occupancy import SCHEDULERS, occupancy
from tritonkernels.analysis.roofline import attainable, limits, slowest
from tritonkernels.problem import GemmProblem
from tritonkernels.target import Target

RTX_2080 = Target.named("rtx_2080")
TITAN_V = Target.named("titan_v")


def gemm(m, n, k, dtype=torch.float32, precision="ieee"):
    return GemmProblem(dtype, dtype, precision, False, m, n, k, 1.0, 0.0, "row", "row")


def test_a_naive_warp_is_bound_by_l2():
    naive = intensity(1, 32)
    assert naive == 64 / 132 and round(naive, 2) == 0.48
    # the seed goes on with the rounded figure
    assert attainable(0.48, TITAN_V.peaks["ieee"], TITAN_V.l2_bandwidth) == pytest.approx(0.912e12)


def test_block_tiles_and_the_bandwidth_they_need():
    assert intensity(64, 64) == 16 and intensity(128, 128) == 32
    assert intensity(128, 64) == 128 * 64 / (2 * (128 + 64)) == intensity(64, 128)
    assert intensity(128, 128, itemsize=2) == 64
    assert required_bandwidth(RTX_2080.peaks["ieee"], intensity(64, 64)) == 631.25e9


def test_registers_turn_2_tm_tn_loads_into_tm_plus_tn():
    assert operand_loads(8, 8) == 16 and operand_loads(2, 6) == 8


def test_a_warp_s_lanes_split_best_4_by_8():
    rows, cols = best_split(8, 8)
    assert (rows, cols) == (4, 8) and (8 * rows, 8 * cols) == (32, 64) and operand_loads(32, 64) == 96
    assert best_split(16, 4) == (2, 16)  # a tall thread tile wants a wide grid
    assert best_split(4, 4, lanes=1) == (1, 1)


def test_latency_and_the_two_parallelisms():
    assert bytes_in_flight(4.3e12, 600e-9) == pytest.approx(2.58e6)

    half = occupancy(RTX_2080, threads=256, registers=128)
    warps = half.warps / SCHEDULERS
    assert half.fraction == 0.5 and warps == 4 and hidden_cycles(warps) == 4
    assert hidden_cycles(warps, ilp=64) == 256


def test_the_roofline_bends_at_the_ridge():
    assert [attainable(intensity, peak=10.0, bandwidth=2.0) for intensity in (0, 1, 5, 6)] == [0, 2, 10, 10]


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
