"""The CUDA lessons of Hopper, wgmma to in_turn: several tiles and rounds of the ring in any order of threads, blocks and
copies, and their machine code. Sums of small integers are exact, so results must be equal."""

import importlib
import multiprocessing

import pytest
import torch

from perf.offline import sass
from tests import nvcc
from tests.designs.matmul import exact
from tests.designs.matmul.exact import integers, with_wgmma
from tests.harness import DEVICES, prepare, short, thorough, transposed
from tests.memory.guarded import guarded
from tritonkernels.target import Target

LADDER = "wgmma", "tma", "specialized", "tile_loop", "multicast", "in_turn"
WALKS = {"tile_loop": {"BLOCKS": 2}, "multicast": {"BLOCKS": 2}, "in_turn": {"BLOCKS": 2}}  # several tiles a block
ON = pytest.mark.parametrize("device", DEVICES)
OF_ALL = pytest.mark.parametrize("name", LADDER)


def design(name):
    return importlib.import_module(f"cuda_reference.matmul.{name}").DESIGN


def configs(name, target="simt"):
    a = torch.empty(8, 8, dtype=torch.float16)
    return [
        config | WALKS.get(name, {}) for config in design(name).configs(prepare("matmul", a, a).problem, Target.named(target))
    ]


def check(name, m, n, k, device="cpu", config=None, **options):
    a, b = integers(m, k, device=device), transposed(integers(k, n, device=device))
    launch, result = exact.computed(design(name), config or configs(name)[0], a, b, out_dtype=torch.float32, **options)
    assert launch.name == name
    assert torch.equal(result.double(), a.double() @ b.double())


@OF_ALL
@short(lambda order: order in ("", "1"))
@pytest.mark.parametrize("order", ["", "1", "2", "3"])
def test_several_tiles_and_rounds_of_the_ring(monkeypatch, name, order):
    """In an order of its own about half of the copies land at once, so that one requested too early overwrites a slice that is
    still read; else they land as late as they may. Of a pair the second tile lies outside."""
    monkeypatch.setenv("SIMT_ORDER", order)
    check(name, 136, 264, 456)


@OF_ALL
def test_no_thread_uses_a_barrier_before_it_is_made(monkeypatch, name):
    for order in range(1, 9):
        monkeypatch.setenv("SIMT_ORDER", str(order))
        check(name, 8, 8, 64)


@ON
@OF_ALL
@short(lambda sizes: sizes in ((130, 258, 65), (5, 3, 0)))
@pytest.mark.parametrize(
    "sizes", [(130, 258, 65), (5, 3, 0), (257, 255, 63), (128, 256, 64), (1, 1, 1), (300, 300, 1000)], ids=str
)
def test_any_size(device, name, sizes):
    with_wgmma(device)
    check(name, *sizes, device)


@ON
def test_a_wider_tile_in_turn(device):
    with_wgmma(device)
    check("in_turn", 130, 400, 136, device, configs("in_turn")[1])


@ON
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("first", [16, 5], ids=["in pairs", "by elements"])
def test_nothing_outside_of_the_result_is_written(device, dtype, first):
    """The result is a part of a larger matrix of NaN, by rows, by columns and with gaps."""
    with_wgmma(device)
    a, b, c = (integers(*shape, device=device) for shape in ((70, 72), (72, 135), (70, 135)))
    expected = (1.5 * (a.double() @ b.double()) - 0.5 * c.double()).to(dtype)
    for layout in (lambda t: t, transposed, lambda t: torch.cat((t, t), 1)[:, ::2]):
        buffer = layout(torch.full((80, 160), torch.nan, device=device, dtype=dtype))
        out = buffer[2:72, first : first + 135]
        exact.computed(design("tma"), configs("tma")[0], a, b, c=c.to(dtype), alpha=1.5, beta=-0.5, out=out, out_dtype=dtype)
        assert torch.equal(out, expected)
        out.fill_(torch.nan)
        assert buffer.isnan().all(), "something outside of out was written"


def add_c_that_ends_with_its_memory():
    a, b, c = integers(70, 72), integers(72, 135), guarded(integers(70, 135), "end", read_only=True)
    exact.computed(design("tma"), configs("tma")[0], a, b, c=c, beta=1.0)


def test_c_is_not_read_beyond_its_edges():
    """A fault ends the child process."""
    child = multiprocessing.get_context("fork").Process(target=add_c_that_ends_with_its_memory)
    child.start()
    child.join()
    assert child.exitcode == 0


def test_what_lies_along_k_is_read_where_it_is():
    """All else is packed first: what lies across K, rows that begin within 16 bytes, a last chunk that is not all there."""

    def launches(a, b):
        call = prepare("matmul", a, b)
        return [launch.name for launch in design("tma").launches(call.problem, configs("tma")[0], *call.parts[0])]

    a, b = torch.empty(64, 72, dtype=torch.float16), torch.empty(40, 72, dtype=torch.float16).t()
    assert launches(a, b) == ["tma"]
    assert launches(a[:, :70], b[:70]) == ["tma"]
    assert launches(torch.empty(64 * 72 - 2, dtype=torch.float16).as_strided((64, 70), (72, 1)), b[:70]) == ["align", "tma"]
    assert launches(a, torch.empty(72, 40, dtype=torch.float16)) == ["align", "tma"]
    assert launches(torch.empty(72, 64, dtype=torch.float16).t(), b) == ["align", "tma"]
    assert launches(torch.empty(64, 71, dtype=torch.float16), b[:71]) == ["align", "tma"]


@thorough
@nvcc.needed
@OF_ALL
def test_products_are_not_serialised_and_nothing_is_spilled(name):
    """In bf16 into bf16, for an H200."""
    a = torch.empty(4096, 4096, dtype=torch.bfloat16, device="meta")
    call = prepare("matmul", a, a.t())
    for config in configs(name, "h200"):
        *_, launch = design(name).launches(call.problem, config, *call.parts[0])
        found = nvcc.compiled("90a", [launch.source.header], [launch.expression], "-Xptxas", "-v")
        assert "serialized" not in found.said and " 0 bytes spill stores" in found.said
        (code,) = sass.read(found.cubin).values()
        assert any(text.startswith("HGMMA") for text in code.hot_loop())
