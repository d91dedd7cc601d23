"""The CUDA designs of FP32 GEMM: each at every size around its tiles, and the accesses that the later ones promise."""

import itertools

import pytest
import torch

from cuda_reference.gemm.parts.lessons import in_quads
from cuda_reference.launch import LIBRARY
from tests.harness import prepare, random, run_checked, short
from tritonkernels import numerics
from tritonkernels.target import Target

RUNGS = [rung.name for rung in LIBRARY.operation("gemm").own]
LESSONS = RUNGS[: RUNGS.index("rasterized")]
CONFLICT_FREE = RUNGS[RUNGS.index("conflict_free") :]  # the later ones keep its promise
EDGES = (1, 7, 8, 9, 127, 128, 129)
SQUARES = (1, 2, 3, 4, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 257)  # those of EDGES are among its combinations


def wrong(design, m, n, k):
    a, b, c = random(m, k), random(k, n), random(m, n)
    out = torch.full((m, n), torch.nan)
    result = LIBRARY.run(prepare("gemm", a, b, c, alpha=0.5, beta=-1.5, out=out), design)
    problem = prepare("gemm", a, b, c, alpha=0.5, beta=-1.5).problem
    return not numerics.judge(problem, result, a, b, c, alpha=0.5, beta=-1.5).ok


@pytest.mark.parametrize("design", RUNGS)
def test_squares_of_every_size(design, everything):
    """`make test` has those around the edges of tiles."""
    assert [size for size in (range(1, 261) if everything else SQUARES) if wrong(design, size, size, size)] == []


@pytest.mark.parametrize("design", RUNGS)
def test_all_combinations_of_tile_edges(design, everything):
    """`make test` has a Latin square of them: every two edges meet, in every two of M, N and K."""
    count = len(EDGES)
    square = [(EDGES[i], EDGES[j], EDGES[(i + j) % count]) for i, j in itertools.product(range(count), repeat=2)]
    combinations = itertools.product(EDGES, repeat=3) if everything else square
    assert [sizes for sizes in combinations if wrong(design, *sizes)] == []


def traced(design):
    """Traces of the emulation's config, and for a lesson of the config that a table of the ladder compares."""
    from cuda_reference.trace import trace

    call = prepare("gemm", random(256, 64), random(64, 256), random(256, 256), beta=0.5)
    chosen = {d.name: d for d in LIBRARY.designs("gemm")}[design]
    targets = ("simt", "h200") if design in LESSONS else ("simt",)
    configs = [next(iter(chosen.configs(call.problem, Target.named(target)))) for target in targets]
    traces = [t for config in configs for t in trace(*chosen.launches(call.problem, config, *call.parts[0]))]
    assert not any(t.races for t in traces)
    return [access for t in traces for access in t.accesses]


@short(lambda design: design in ("conflict_free", "async_copy"))
@pytest.mark.parametrize("design", CONFLICT_FREE)
def test_no_bank_conflict_and_128_bit_loads(design):
    shared = [access for access in traced(design) if access.space == "shared"]
    loads = [access for access in shared if access.kind == "read"]
    assert loads and {access.width for access in loads} == {16}
    assert [str(access) for access in shared if access.units != access.ideal_units] == []


def test_vectorized_still_has_conflicts():
    """So the test above can fail."""
    assert any(access.units > access.ideal_units for access in traced("vectorized") if access.space == "shared")


QUADS = {
    "whole and aligned": (lambda: torch.empty(8, 8), True),
    "of rows far apart": (lambda: torch.empty(8, 12)[:, :8], True),
    "every second float": (lambda: torch.empty(8, 16)[:, ::2], False),
    "begun within 16 bytes": (lambda: torch.empty(65)[1:].view(8, 8), False),
    "of rows that end within 16 bytes": (lambda: torch.empty(8, 8)[:, :7], False),
    "of rows that begin within 16 bytes": (lambda: torch.empty(8, 9)[:, :8], False),
}


@pytest.mark.parametrize("which", QUADS)
def test_lessons_take_only_whole_and_aligned_quads_as_vectors(which):
    """The emulation does not fault on others."""
    make, expected = QUADS[which]
    assert in_quads(make()) == expected


@pytest.mark.parametrize("group", (1, 4, 16, 0))
def test_the_last_band_of_tiles_may_be_lower_than_the_others(group):
    """Five rows of tiles: bands of 4 and of 1, or all in one."""
    config = {"BM": 64, "BN": 64, "BK": 16, "TM": 4, "TN": 4, "GROUP": group}
    run_checked(LIBRARY, "gemm", "rasterized", random(290, 9), random(9, 150), config=config)


def test_a_block_of_stream_k_may_end_one_tile_and_begin_the_next():
    """4 blocks share 5 tiles of 5 slices: the second has 4 slices of one tile and 2 of the next."""
    run_checked(LIBRARY, "gemm", "stream_k", random(70, 37), random(37, 580), config={"BM": 128, "BN": 128})


@pytest.mark.parametrize("design", RUNGS)
def test_the_last_chunk_of_the_last_row_may_lie_past_the_memory(design):
    """Rows of 43 elements, 48 apart, in memory that ends with the last one: cp.async would ask for the chunk up to 44."""
    a, b = (torch.randn((rows - 1) * 48 + cols).as_strided((rows, cols), (48, 1)) for rows, cols in ((37, 43), (43, 43)))
    run_checked(LIBRARY, "gemm", design, a, b)
