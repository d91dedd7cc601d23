"""Tiles of the CUDA designs that multiply by wgmma: what `legal` counts, and which tiles `candidates` makes."""

import dataclasses

import pytest
import torch

from cuda_reference.launch import config_of
from cuda_reference.matmul.parts.wgmma_tiles import IN_CLUSTERS, LARGE, candidates, legal, sums
from tests.harness import prepare
from tritonkernels.target import Target

H200 = Target.named("h200")


def problem(dtype=torch.float16, n=1024, **options):
    a, b = (torch.empty(rows, 1024, dtype=dtype, device="meta") for rows in (1024, n))
    return prepare("matmul", a, b.t(), **options).problem


def tile(bm, bn, consumers, stages=3, **others):
    return config_of(BM=bm, BN=bn, CONSUMERS=consumers, STAGES=stages, GROUP=8, **others)


BIAS, EIGHTH = {"bias": torch.empty(1024, dtype=torch.float16, device="meta")}, torch.float8_e4m3fn
C = {"c": torch.empty(1024, 1024, dtype=torch.float16, device="meta"), "beta": 0.5}


@pytest.mark.parametrize(
    "config, asked, expected",
    [
        (tile(256, 192, 2), {}, True),  # 192 sums
        (tile(256, 192, 2), BIAS, True),  # and what follows them in 16 bits
        (tile(256, 192, 2), BIAS | {"activation": "gelu"}, True),
        (tile(256, 192, 2), {"activation": "gelu", "n": 1020}, False),  # written without TMA
        (tile(256, 192, 2), {"activation": "relu", "out_dtype": torch.float32}, False),
        (tile(256, 192, 2), C, False),
        (tile(128, 320, 2), BIAS, True),
        (tile(256, 256, 2), {}, False),
        (tile(192, 192, 3), {}, True),
        (tile(192, 256, 3, 2), {}, False),  # of 160 registers
        (tile(192, 192, 3), {"dtype": EIGHTH, "accumulate": "fast"}, False),
        (tile(128, 128, 2), {"dtype": EIGHTH}, True),
        (tile(128, 192, 2), {"dtype": EIGHTH}, False),  # three sets of sums
        (tile(128, 256, 2), {"dtype": EIGHTH, "accumulate": "fast"}, True),
        (tile(128, 192, 2, IN_TURN=True), {}, True),  # a consumer's are 192
        (tile(128, 192, 2, IN_TURN=True), BIAS, True),
        (tile(128, 192, 2, IN_TURN=True), C, False),
        (tile(128, 256, 2, 4), {}, True),
        (tile(128, 256, 2, 5), {}, False),  # 240 KB of slices
    ],
    ids=str,
)
def test_registers_and_shared_memory_are_counted(config, asked, expected):
    assert legal(config, problem(**asked), H200) == expected


def test_a_gpu_with_less_shared_memory_has_smaller_tiles():
    smaller = dataclasses.replace(H200, shared_per_block=160 * 1024)
    assert not legal(tile(128, 256, 2, 4), problem(), smaller) and legal(tile(128, 64, 2, 4), problem(), smaller)


def test_large_tiles_are_near_squares_that_a_kernel_holds():
    """A tile of 256 x 128 without clusters, in pairs and in fours; of 192 columns no four has whole boxes."""
    held = {(c["BM"], c["BN"]) for c in LARGE if legal(c, problem(), H200)}
    assert held == {
        *((128, columns) for columns in (64, 128, 192, 256, 320)),
        *((256, columns) for columns in (128, 192)),
        *((192, columns) for columns in (128, 192)),
    }
    fours = {(c["BM"], c["BN"]) for c in IN_CLUSTERS if c["CLUSTER"] == 4 and legal(c, problem(), H200)}
    assert fours == {(128, 128), (128, 256), (256, 128)}


def test_no_candidate_comes_twice():
    for asked in ({}, {"dtype": torch.float32, "precision": "tf32"}, {"dtype": EIGHTH}):
        found = list(candidates(problem(**asked), H200))
        assert len(found) == len(set(found)) and max(map(sums, found)) > 160
