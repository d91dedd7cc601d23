"""The trace of accesses: kernels of known counts, races with both lines, a tiled GEMM against tritonkernels.analysis."""

import dataclasses
from pathlib import Path

import pytest
import torch

from cuda_reference.launch import LIBRARY, CudaLaunch, Source
from cuda_reference.trace import trace
from tritonkernels.analysis import banks, sectors
from tritonkernels.errors import DeviceError, LaunchError
from tritonkernels.gemm import prepare

SOURCE = Path(__file__).parent / "kernels/trace.cuh"


def floats(n):
    return torch.zeros(n)


def ints(n):
    return torch.ones(n, dtype=torch.int32)


def launch(name, block, *arguments, grid=(1,), shared=0):
    return CudaLaunch(Source(str(SOURCE), ()), f"trace::{name}", grid, (block, 1, 1), arguments, shared)


LAUNCHES = {
    **{f"strided<{n}>": launch(f"strided<{n}>", 64, floats(64 * 32), floats(64)) for n in (0, 1, 2, 8, 32)},
    "offset": launch("strided<1>", 32, floats(64)[1:], floats(32)),
    **{f"copy<{t}>": launch(f"copy<{t}>", 64, floats(1024), floats(1024), grid=(2,)) for t in ("char", "double", "float4")},
    "lower_half": launch("lower_half", 64, floats(64), floats(64)),
    **{f"column<{n}>": launch(f"column<{n}>", 32, floats(32), 5) for n in (32, 33)},
    **{f"quads<{n}>": launch(f"quads<{n}>", 32, floats(128), shared=512 * n) for n in (1, 2, 8)},
    **{
        f"{name}<{barrier}>": launch(f"{name}<{barrier}>", 64, ints(64))
        for name in ("neighbour", "lane", "rounds")
        for barrier in ("true", "false")
    },
    "histogram": launch("histogram", 64, ints(64), ints(1)),
    "past_registers": launch("past_registers", 32, floats(128), ints(32)),
    "same": launch("same", 2, ints(2), grid=(2,)),
}


@pytest.fixture(scope="module")
def traces():
    return dict(zip(LAUNCHES, trace(*LAUNCHES.values())))


def line(comment):
    """As the trace names it."""
    (number,) = (i for i, text in enumerate(SOURCE.read_text().splitlines(), 1) if text.endswith(f"// {comment}"))
    return f"{SOURCE}:{number}"


def at(traced, comment, kind, space=None):
    (access,) = (a for a in traced.accesses if a.lines[0] == line(comment) and a.kind == kind and space in (None, a.space))
    return access


@pytest.mark.parametrize("stride, expected", [(0, 1), (1, 4), (2, 8), (8, 32), (32, 32)])
def test_sectors_of_strided_loads(traces, stride, expected):
    access = at(traces[f"strided<{stride}>"], "strided", "read")
    assert (access.space, access.array, access.width) == ("global", "argument 0", 4)
    assert (access.instructions, access.requests, access.units, access.worst_units) == (2, 2, 2 * expected, expected)
    assert access.ideal_units == 2 * (4 if stride else 1)


def test_a_load_off_a_sectors_edge_takes_one_more(traces):
    assert at(traces["offset"], "strided", "read").units == 5


@pytest.mark.parametrize("kind", ["read", "write"])
@pytest.mark.parametrize("t, width, phases", [("char", 1, 1), ("double", 8, 2), ("float4", 16, 4)])
def test_a_vector_is_one_access_in_phases(traces, t, width, phases, kind):
    access = at(traces[f"copy<{t}>"], "copy", kind)
    assert (access.width, access.instructions, access.requests) == (width, 4, 4 * phases)
    assert access.units == access.ideal_units == 4 * sum(sectors.sectors(lambda lane: lane * width, width))


def test_inactive_lanes(traces):
    access = at(traces["lower_half"], "lower half", "read")
    assert (access.instructions, access.units, access.ideal_units) == (2, 4, 4)


@pytest.mark.parametrize("pitch, ways", [(32, 32), (33, 1)])
def test_bank_conflicts_of_a_column(traces, pitch, ways):
    access = at(traces[f"column<{pitch}>"], "column", "read")
    assert (access.space, access.array) == ("shared", "tile")
    assert (access.requests, access.units, access.ideal_units, access.worst_units) == (5, 5 * ways, 5, ways)


@pytest.mark.parametrize("step", [1, 2, 8])
def test_bank_conflicts_of_quads(traces, step):
    access = at(traces[f"quads<{step}>"], "quads", "read", "shared")
    degrees = banks.degrees(lambda lane: 16 * step * lane, 16)
    assert (access.array, access.width, access.instructions) == ("dynamic_shared_memory", 16, 1)
    assert (access.requests, access.units, access.worst_units) == (4, sum(degrees), max(degrees))


@pytest.mark.parametrize(
    "name, first, second",
    [("neighbour", "put", "take"), ("lane", "lane puts", "lane takes"), ("rounds", "overwrite", "reread")],
)
def test_a_missing_barrier_is_a_race_of_two_lines(traces, name, first, second):
    assert traces[f"{name}<true>"].races == ()
    (race,) = traces[f"{name}<false>"].races
    assert (race.first[0], race.second[0], race.kinds) == (line(first), line(second), ("write", "read"))
    assert (race.space, race.array, race.places) == ("shared", "tile", 128 if name == "rounds" else 64)
    assert line(first) in str(race) and line(second) in str(race)


def test_atomics_do_not_race(traces):
    assert traces["histogram"].races == ()
    access = at(traces["histogram"], "add", "atomic")
    assert (access.space, access.array, access.units) == ("shared", "count", 2)


def test_a_race_in_global_memory(traces):
    (race,) = traces["same"].races
    assert (race.space, race.kinds, race.places) == ("global", ("write", "write"), 2)
    assert race.first[0] == race.second[0] == line("same")


def test_a_copy_without_registers(traces):
    copies = [a for a in traces["past_registers"].accesses if a.lines[0] == line("past registers")]
    widths = {(a.space, a.kind, a.width): (a.requests, a.units) for a in copies}
    assert widths == {("global", "read", 8): (2, 16), ("global", "read", 4): (1, 16), ("shared", "write", 16): (4, 4)}


def test_what_cannot_be_traced():
    kernel = LAUNCHES["lower_half"]
    with pytest.raises(DeviceError, match="a traced launch: got meta; allowed: tensors on the CPU"):
        trace(dataclasses.replace(kernel, arguments=(floats(64), floats(64).to("meta"))))


def test_a_fault_is_an_error_and_the_recorder_survives_it(traces):
    kernel = LAUNCHES["same"]
    good = [*LAUNCHES.values(), kernel]
    with pytest.raises(LaunchError, match=r"trace::same, traced, .*cudaErrorInvalidConfiguration"):
        trace(*good, dataclasses.replace(kernel, block=(2000, 1, 1)))
    assert trace(*good)[-1] == traces["same"]


def test_gemm_tiled_as_its_index_formulas_say():
    config = {"BM": 128, "BN": 128, "BK": 8, "TM": 8, "TN": 8}
    call = prepare(torch.randn(128, 64), torch.randn(64, 128))
    (design,) = (d for d in LIBRARY.designs("gemm") if d.name == "tiled")
    (tensors,) = call.parts
    (traced,) = trace(*design.launches(call.problem, config, *tensors))
    assert traced.races == ()

    slices, warps = 64 // 8, 8
    a_sectors = sum(sectors.sectors(lambda lane: 4 * (lane // 8 * 64 + lane % 8)))
    a_store = banks.wavefronts(lambda lane: 4 * (lane % 8 * 128 + lane // 8))
    b_fragment = banks.wavefronts(lambda lane: 4 * (lane % 16 * 8))
    # (array, kind): warp-level accesses, and units of each
    expected = {
        ("argument 0", "read"): (slices * warps * 4, a_sectors),
        ("a_tile", "write"): (slices * warps * 4, a_store),
        ("argument 1", "read"): (slices * warps * 4, 4),
        ("b_tile", "write"): (slices * warps * 4, 1),
        ("a_tile", "read"): (64 * warps * 8, 1),
        ("b_tile", "read"): (64 * warps * 8, b_fragment),
        ("argument 3", "write"): (warps * 64, 32),
    }
    found = {}
    for access in traced.accesses:
        assert access.units == access.requests * access.worst_units and access.width == 4
        assert access.lines[-1].startswith("gemm/tiled.cuh:")
        found[access.array, access.kind] = access.requests, access.worst_units
    assert found == expected and (a_sectors, b_fragment) == (4, 4)
