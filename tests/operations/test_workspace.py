"""Counters on a fake GPU: each stream has its own and keeps them; graphs get theirs, zeroed before the capture.

On a GPU: graphs whose counters come from several allocations.
"""

import gc
import types
import weakref

import pytest
import torch

from tests.harness import LIBRARIES, available_on, prepare
from tritonkernels import workspace

OUT = types.SimpleNamespace(device=torch.device("cuda", 0))
COUNT = 16384  # split rows, one counter each


@pytest.fixture
def unused(monkeypatch):
    """As in a new process, which has no counters."""
    for name, value in (("_free", {}), ("_of_stream", {}), ("_allocated", [])):
        monkeypatch.setattr(workspace, name, value)


@pytest.fixture
def gpu(unused, monkeypatch):
    """The current stream, whether it is being captured, and the tensors that a kernel set to zero, and their sizes."""
    gpu = types.SimpleNamespace(stream=0, capturing=False, zeroed=[], made=[])
    zeros = torch.zeros

    def zeroing(count, dtype, device):
        gpu.zeroed.append(count)
        made = zeros(count, dtype=dtype)
        gpu.made.append(weakref.ref(made))
        return made

    monkeypatch.setattr(workspace, "stream_of", lambda device: gpu.stream)
    monkeypatch.setattr(torch, "zeros", zeroing)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: gpu.capturing)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    return gpu


def places(counters):
    return range(counters.data_ptr(), counters.data_ptr() + counters.nbytes)


def test_calls_of_a_stream_share_counters_with_no_other_stream(gpu):
    first = workspace.counters(COUNT, OUT)
    assert first.data_ptr() == workspace.counters(COUNT - 3, OUT).data_ptr()
    gpu.stream = 1
    other = workspace.counters(COUNT + 1, OUT)
    gpu.capturing = True
    graphs = [workspace.counters(size, OUT) for size in (1, COUNT, 3)]
    owners = [places(counters) for counters in (first, other, *graphs)]
    assert len(set().union(*owners)) == sum(map(len, owners))
    assert all(not counters.any() and counters.data_ptr() % 16 == 0 for counters in (first, other, *graphs))


def test_graphs_zero_nothing_where_calls_like_theirs_ran_before(gpu):
    for _ in range(20):  # captures of twenty calls, each after a call
        gpu.capturing = False
        workspace.counters(COUNT, OUT)
        gpu.capturing, before = True, len(gpu.zeroed)
        for _ in range(20):
            workspace.counters(COUNT, OUT)
        assert len(gpu.zeroed) == before
    assert sum(gpu.zeroed) <= 20 * 20 * COUNT + 20 * workspace.AT_ONCE


def test_a_graph_zeroes_counters_that_are_not_ready(gpu):
    gpu.capturing = True
    assert len(workspace.counters(COUNT, OUT)) == COUNT and gpu.zeroed == [COUNT]


def test_more_counters_than_are_allocated_at_once(gpu):
    assert len(workspace.counters(3 * workspace.AT_ONCE, OUT)) == 3 * workspace.AT_ONCE


def test_counters_of_a_graph_stay_allocated(gpu):
    """It knows their address only. They were freed once others took their place, and replays wrote to whatever came there."""
    for _ in range(4):
        gpu.capturing = False
        workspace.counters(1, OUT)  # tops up the free ones
        gpu.capturing, made = True, len(gpu.made)
        workspace.counters(workspace.AT_ONCE // 2, OUT)
        assert len(gpu.made) == made, "the graph was to get free ones"
    gc.collect()
    assert len(gpu.made) >= 3 and all(counters() is not None for counters in gpu.made)


@pytest.mark.gpu
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_graphs_replay_after_others_took_the_free_counters(library, unused, monkeypatch):
    """gemv's split_n takes a counter a row, the most of all designs: five captures take more than one allocation has. Were one
    freed, what is allocated next would be in its place: counters that never come to zero, and memory that replays write to."""
    available_on(library, "cuda")
    zeroed, made = workspace._zeroed, []
    monkeypatch.setattr(workspace, "_zeroed", lambda *args: made.append(args) or zeroed(*args))
    a, x = torch.randn(workspace.AT_ONCE // 4, 16, device="cuda"), torch.randn(16, device="cuda")
    graphs = []
    for _ in range(5):
        library.run(prepare("gemv", a, x), "split_n")  # compiles the kernel, and tops up the free counters
        call = prepare("gemv", a, x, out=torch.empty(len(a), device="cuda"))
        with torch.cuda.graph(graph := torch.cuda.CUDAGraph()):
            library.run(call, "split_n")
        graphs.append((graph, call))
    library.run(prepare("gemv", a, x), "split_n")
    assert len(made) == 3, "the graphs were to get counters of two allocations, and a third to replace them"
    reserved, others = torch.cuda.memory_reserved(), []
    while torch.cuda.memory_reserved() == reserved:  # what is free is taken first
        others.append(torch.full((workspace.AT_ONCE,), -1, dtype=torch.int32, device="cuda"))
    for operand in (a, x):
        operand.normal_()
    for graph, call in graphs:
        call.result.fill_(torch.nan)
        graph.replay()
        verdict = library.judge(call, "split_n", None, a, x)
        assert verdict.ok, verdict
    assert all(bool((other == -1).all()) for other in others)


def test_no_counters_before_any(gpu):
    """The first call of a process may need none."""
    assert len(workspace.counters(0, OUT)) == 0 and len(workspace.counters(COUNT, OUT)) == COUNT
