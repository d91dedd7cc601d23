"""All analyses of the seed's product: 4096^3 on an RTX 2080 in tiles of 128 x 128 x 8."""

import pytest
import torch

from tritonkernels.analysis.l2 import wave_hit_rate
from tritonkernels.analysis.tile import tile_facts
from tritonkernels.problem import GemmProblem, MatmulProblem
from tritonkernels.report import Report
from tritonkernels.target import Target

RTX_2080 = Target.named("rtx_2080")
H200 = Target.named("h200")
SEED = {"BM": 128, "BN": 128, "BK": 8, "threads": 256}


def gemm(m, n, k):
    return GemmProblem(torch.float32, torch.float32, "ieee", False, m, n, k, 1.0, 0.0, "row", "row")


def half(batch, m, n, k):
    plain = {"aligned": True, "accumulate": "fp32", "alpha": 1.0, "beta": 0.0, "bias": False, "activation": None}
    return MatmulProblem(torch.float16, torch.float16, "fp16", False, batch, m, n, k, False, False, "row", "row", **plain)


def test_the_seed_s_product():
    facts = tile_facts(gemm(4096, 4096, 4096), SEED, RTX_2080, registers=128)
    assert facts["blocks"] == 1024 and facts["intensity"] == 32 and facts["needed_bandwidth"] == 10.1e12 / 32
    assert facts["registers"] == 128 and facts["shared_bytes"] == 2 * 128 * 8 * 4 and facts["estimated"] == "shared_bytes"
    assert facts["occupancy"] == {"blocks_per_sm": 2, "warps_per_scheduler": 4, "fraction": 0.5, "limited_by": "registers"}
    assert facts["waves"] == {"size": 92, "full": 11, "last": 12, "efficiency": 1024 / 1104}
    assert facts["tile_fill"] == 1
    assert facts["l2_hit"] == wave_hit_rate(128, 128, rows=3, cols=32, blocks=92)  # 32 tiles wide: the wave wraps
    assert facts["effective_bandwidth"] is None  # nobody knows this card's L2 bandwidth


def test_the_seed_s_flat_wave():
    assert round(100 * tile_facts(gemm(4096, 92 * 128, 8), SEED, RTX_2080, registers=128)["l2_hit"], 2) == 49.46


def test_the_bandwidth_is_between_l2_s_and_dram_s():
    titan_v = Target.named("titan_v")
    facts = tile_facts(gemm(4096, 4096, 4096), {"BM": 16, "BN": 16, "BK": 16, "threads": 256}, titan_v)
    hit = facts["l2_hit"]
    assert facts["effective_bandwidth"] == pytest.approx(hit * 1.9e12 + (1 - hit) * 0.653e12)


def test_grouping_raises_the_hit_rate():
    flat, grouped = (tile_facts(gemm(8192, 65536, 64), SEED | {"GROUP_M": g}, H200, registers=128)["l2_hit"] for g in (1, 16))
    assert flat == wave_hit_rate(128, 128, 1, 264) and grouped == wave_hit_rate(128, 128, 16, 17, blocks=264)


def test_edges_of_tiles_are_computed_for_nothing():
    facts = tile_facts(gemm(129, 128, 8), SEED, H200, registers=128)
    assert facts["blocks"] == 2 and facts["tile_fill"] == 129 / 256 and facts["waves"]["efficiency"] == 2 / 264


def test_halves_and_batches():
    tile = {"BM": 64, "BN": 256, "BK": 64, "threads": 128, "stages": 3}
    facts = tile_facts(half(10, 128, 512, 512), tile, H200)
    assert facts["blocks"] == 40 and facts["intensity"] == 64 * 256 / 320
    assert facts["shared_bytes"] == (64 + 256) * 64 * 2 * 3 and facts["occupancy"]["limited_by"] == "shared memory"
    assert facts["registers"] == 128 and facts["estimated"] == "registers, shared_bytes"
    assert facts["l2_hit"] == wave_hit_rate(64, 256, 2, 2)  # within a matrix
    assert tile_facts(half(1, 128, 512, 512), tile, H200, registers=200, shared_bytes=1024)["estimated"] == "none"


def test_unknown_facts_are_left_out():
    product = gemm(100, 100, 100)
    assert tile_facts(product, SEED, Target.named("interpreter")) == {"blocks": 1, "intensity": 32}
    assert tile_facts(gemm(0, 100, 100), SEED, H200) == {"blocks": 0, "intensity": 32}
    too_big = tile_facts(product, SEED, RTX_2080, shared_bytes=65 * 1024)
    assert too_big["occupancy"]["blocks_per_sm"] == 0 and "waves" not in too_big
    int8_on_volta = GemmProblem(torch.int8, torch.int32, "int8", False, 256, 256, 256, 1.0, 0.0, "row", "row")
    facts = tile_facts(int8_on_volta, SEED, Target.named("titan_v"))
    assert facts["needed_bandwidth"] is None and facts["waves"]
    new = Target("new", arch=130, sms=1, shared_per_sm=1 << 17, shared_per_block=1 << 16, threads_per_sm=2048)
    bare = tile_facts(product, SEED, new)
    assert bare["occupancy"]["blocks_per_sm"] and bare["effective_bandwidth"] is None


def test_it_prints_and_is_json():
    import json

    facts = tile_facts(gemm(4096, 4096, 4096), SEED, H200)
    assert json.loads(json.dumps(facts)) == facts
    assert "limited_by" in str(Report(predicted=facts))
