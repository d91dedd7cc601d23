"""Bank conflicts of gemm's Gluon lessons, counted from their layouts: which lane accesses what, and where it lies."""

import importlib
import itertools

import pytest
import torch
from triton.experimental.gluon import language as gl

from tests.designs.gluon.operands import DESIGNS
from tritonkernels.analysis.banks import degrees

LESSONS = [design for design in DESIGNS if design != "async_copy"]
CONFLICT_FREE = LESSONS[LESSONS.index("conflict_free") :]


def place(layout, lane):
    """Where the first element of a lane lies in a tile."""
    fast, slow = layout.order
    lanes = layout.threads_per_warp[fast]
    at = {fast: lane % lanes, slow: lane // lanes}
    return [at[dim] * layout.size_per_thread[dim] for dim in (0, 1)]


def found(design, a_along_k, b_along_k, quads):
    """The accesses to shared memory with bank conflicts, as tests/designs/gluon/compiled.py names them."""
    module = importlib.import_module(f"tritonkernels.gemm.{design}")
    acc, shared = module.ACC.value, module.SHARED.value
    pitch = 128 + (shared.interval_padding_pairs[0][1] if isinstance(shared, gl.PaddedSharedLayout) else 0)
    matrix = (torch.empty(64, 64) if quads else torch.empty(64, 65)[:, 1:],) if design != "warp_tiled" else ()
    accesses = {}
    for name, along_k, dim in (("A", a_along_k, 0), ("B", b_along_k, 1)):
        load = module.load_layout(*matrix, along_k)
        starts = [place(load, lane) for lane in range(32)]
        accesses[f"store {name}"] = [4 * (k * pitch + at) for k, at in starts], 4 * load.size_per_thread[1]
        accesses[f"load {name}"] = [4 * place(acc, lane)[dim] for lane in range(32)], 16
    return [name for name, (addresses, width) in accesses.items() if max(degrees(addresses.__getitem__, width)) > 1]


@pytest.mark.parametrize("a_along_k, b_along_k, quads", [*itertools.product((True, False), repeat=3)])
def test_bank_conflicts_end_with_conflict_free(a_along_k, b_along_k, quads):
    expected = ["store A"] * a_along_k + ["store B"] * b_along_k + ["load B"]
    for design in ("warp_tiled", "vectorized"):
        assert sorted(found(design, a_along_k, b_along_k, quads)) == sorted(expected), design
    for design in CONFLICT_FREE:
        assert found(design, a_along_k, b_along_k, quads) == [], design


@pytest.mark.parametrize("design", LESSONS)
@pytest.mark.parametrize("along_k", (True, False))
def test_every_element_of_a_slice_is_loaded_once(design, along_k):
    """By the threads of 8 warps, in layouts that are repeated to cover 8 x 128; and every sum has one thread."""
    module = importlib.import_module(f"tritonkernels.gemm.{design}")
    tile = module.TILE.kwargs
    for quads in (True, False) if design != "warp_tiled" else (None,):
        matrix = () if quads is None else (torch.empty(64, 64) if quads else torch.empty(64, 65)[:, 1:],)
        load = module.load_layout(*matrix, along_k)
        for layout, shape in ((load, (8, 128)), (module.ACC.value, (tile["BLOCK_M"], tile["BLOCK_N"]))):
            covered = [
                per_thread * lanes * warps
                for per_thread, lanes, warps in zip(layout.size_per_thread, layout.threads_per_warp, layout.warps_per_cta)
            ]
            threads = [lanes * warps for lanes, warps in zip(layout.threads_per_warp, layout.warps_per_cta)]
            assert threads[0] * threads[1] == 32 * module.TILE.num_warps
            assert all(whole % part == 0 for whole, part in zip(shape, covered)), (layout, shape)
