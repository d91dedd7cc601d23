"""Waves, orders and L2: the seed's figures, and the simulator against the closed formula."""

from itertools import islice
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis import repeatable
from tests.analysis.lru import simulate
from tritonkernels.analysis.l2 import covered, effective_bandwidth, wave_hit_rate
from tritonkernels.analysis.order import grouped, row_major, z_order
from tritonkernels.analysis.waves import waves

EVERYTHING = 1 << 60
few = st.integers(1, 9)


def gemm(m, n, k, dtype=torch.float32):
    return SimpleNamespace(m=m, n=n, k=k, dtype=dtype)


def test_waves_and_the_tail():
    assert waves(92, sms=46, blocks_per_sm=2) == (92, 1, 0, 1.0)
    assert waves(93, 46, 2) == (92, 1, 1, 93 / 184)
    assert waves(1024, 46, 2) == (92, 11, 12, 1024 / (12 * 92))  # 4096 x 4096 in tiles of 128 x 128
    assert waves(1, 46, 2) == (92, 0, 1, 1 / 92)
    assert waves(0, 46, 2) == (92, 0, 0, 1.0)


def test_effective_bandwidth():
    assert effective_bandwidth(0, 1.9e12, 0.653e12) == 0.653e12
    assert effective_bandwidth(1, 1.9e12, 0.653e12) == 1.9e12
    assert effective_bandwidth(0.25, 8, 4) == 5


def test_a_flat_wave_of_92_blocks_hits_49_46_percent():
    hit = wave_hit_rate(128, 128, rows=1, cols=92)
    assert round(100 * hit, 2) == 49.46
    assert hit == 1 - (128 + 92 * 128) / (92 * (128 + 128))
    assert wave_hit_rate(128, 64, rows=1, cols=3) == 1 - (128 + 3 * 64) / (3 * 192)
    assert wave_hit_rate(128, 64, rows=3, cols=1) == 1 - (3 * 128 + 64) / (3 * 192)
    assert wave_hit_rate(128, 128, 1, 1) == 0


def test_the_squarer_the_wave_the_better():
    rates = [wave_hit_rate(128, 128, rows, 64 // rows) for rows in (1, 2, 4, 8)]
    assert rates == sorted(rates) and len(set(rates)) == 4


@repeatable
@given(few, few)
def test_every_order_visits_every_tile_once(tiles_m, tiles_n):
    every = sorted(row_major(tiles_m, tiles_n))
    assert len(every) == tiles_m * tiles_n
    for order in (z_order(tiles_m, tiles_n), grouped(tiles_m, tiles_n, 3)):
        assert sorted(order) == every


def test_orders():
    assert list(row_major(2, 3)) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert list(z_order(4, 4))[:6] == [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3)]
    assert list(islice(z_order(4, 4), 8, 10)) == [(2, 0), (2, 1)]
    assert list(grouped(3, 2, 2)) == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1)]
    assert list(grouped(3, 4, 1)) == list(row_major(3, 4))
    assert list(grouped(2, 3, 2)) == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]
    assert list(row_major(0, 3)) == list(z_order(3, 0)) == list(grouped(0, 3, 2)) == []


@repeatable
@given(few, few, few)
def test_grouped_is_the_order_that_our_kernels_walk(tiles_m, tiles_n, group_m):
    from tritonkernels import backend

    backend.name()  # prepares Triton
    from tritonkernels.language.tiles import grouped_tile

    walked = [grouped_tile.fn(program, tiles_m, tiles_n, group_m) for program in range(tiles_m * tiles_n)]
    assert walked == list(grouped(tiles_m, tiles_n, group_m))


@repeatable
@given(few, few, st.sampled_from((16, 32)), st.sampled_from((16, 64)), st.integers(1, 5))
def test_the_simulator_agrees_with_the_formula_on_a_full_wave(rows, cols, bm, bn, steps):
    """Whole tiles, one wave: any cache that holds one step of it hits as the formula says."""
    problem = gemm(rows * bm, cols * bn, steps * 8)
    one_step = (rows * bm + cols * bn) * 8 * 4
    for order in (row_major(rows, cols), z_order(rows, cols)):
        hit = simulate(problem, bm, bn, 8, order, wave=rows * cols, capacity=one_step)
        assert hit == pytest.approx(wave_hit_rate(bm, bn, rows, cols))


@repeatable
@given(few, few, st.integers(1, 20), st.integers(1, 4))
def test_a_launch_hits_at_least_as_its_waves_do(tiles_m, tiles_n, wave, group_m):
    """With room for more than its own steps, a wave may also hit what the previous one left in the cache."""
    problem = gemm(tiles_m * 16, tiles_n * 16, 64)
    order = list(grouped(tiles_m, tiles_n, group_m))
    one_step = (tiles_m + tiles_n) * 16 * 8 * 4
    simulated = simulate(problem, 16, 16, 8, order, wave, capacity=one_step)
    misses = 0
    for first in range(0, len(order), wave):
        blocks = order[first : first + wave]
        misses += len(blocks) * (1 - wave_hit_rate(16, 16, *covered(blocks), len(blocks)))
    assert simulated >= 1 - misses / len(order) - 1e-9
    most = 1 - (tiles_m + tiles_n) / (2 * tiles_m * tiles_n)  # every byte misses once
    assert simulated <= most + 1e-9
    assert simulate(problem, 16, 16, 8, order, wave, EVERYTHING) == pytest.approx(most)


def test_the_seed_s_wave_in_the_simulator():
    """92 blocks side by side, as in the formula: 49.46 %."""
    hit = simulate(gemm(128, 92 * 128, 16), 128, 128, 8, row_major(1, 92), wave=92, capacity=4 << 20)
    assert round(100 * hit, 2) == 49.46


def test_the_least_recently_used_slice_is_evicted():
    """Two consecutive blocks of one tile row, 3 slices of K: the second hits A only if all slices are still cached."""
    problem, slice_bytes = gemm(16, 32, 24), 16 * 8 * 4
    for slices, hit in ((0, 0), (1, 0), (5, 0), (6, 3 / 12), (7, 3 / 12)):
        assert simulate(problem, 16, 16, 8, row_major(1, 2), wave=1, capacity=slices * slice_bytes) == hit, slices
    # K of 2 slices and a half take 2 and a half.
    for rooms, hit in ((4.5, 0), (5, 3 / 12)):
        assert simulate(gemm(16, 32, 20), 16, 16, 8, row_major(1, 2), wave=1, capacity=rooms * slice_bytes) == hit, rooms
    # A row of tiles read again and again stays, although it came first: the column of B that nobody wants goes.
    assert simulate(gemm(16, 64, 8), 16, 16, 8, row_major(1, 4), wave=1, capacity=2 * slice_bytes) == 3 / 8


def test_grouping_helps_where_the_matrix_is_wide_and_the_cache_small():
    problem = gemm(1024, 2048, 128)
    rates = [simulate(problem, 64, 64, 32, grouped(16, 32, group), wave=32, capacity=1 << 19) for group in (1, 2, 4)]
    assert rates == sorted(rates) and rates[0] == pytest.approx(wave_hit_rate(64, 64, 1, 32), abs=0.02)


def test_ragged_and_empty_problems_in_the_simulator():
    """Bytes are counted, not slices: 2 x 1 tiles of which the second has 1 row; B is read twice, A once."""
    problem = gemm(17, 16, 9)
    read, again = (17 + 2 * 16) * 9, 16 * 9
    assert simulate(problem, 16, 16, 8, row_major(2, 1), 2, EVERYTHING) == pytest.approx(again / read)
    assert simulate(problem, 16, 16, 8, row_major(2, 1), 2, 0) == 0
    assert simulate(gemm(0, 16, 8), 16, 16, 8, row_major(0, 1), 2, EVERYTHING) == 0
    assert simulate(gemm(16, 16, 0), 16, 16, 8, row_major(1, 1), 2, EVERYTHING) == 0


def test_half_the_itemsize_makes_a_cache_twice_as_large():
    args = 16, 16, 8, list(row_major(2, 4)), 2
    for capacity in (1 << 10, 1 << 11, 1 << 12):
        assert simulate(gemm(32, 64, 32, torch.float16), *args, capacity) == simulate(gemm(32, 64, 32), *args, 2 * capacity)
