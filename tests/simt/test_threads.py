"""Threads, barriers, warps, atomics, shared memory of the CPU emulation; the errors it raises instead of hanging."""

from pathlib import Path

import numpy as np
import pytest
import torch

import cuda_reference
from cuda_reference.build import load
from cuda_reference.launch import CudaLaunch, Source
from tests import children
from tritonkernels.errors import LaunchError

HERE = Path(__file__).parent
SHUFFLED = ("int", "unsigned", "long long", "float", "double", "__half", "__nv_bfloat16")
TORCH = {
    "int": torch.int32,
    "unsigned": torch.int32,
    "long long": torch.int64,
    "float": torch.float32,
    "double": torch.float64,
    "__half": torch.float16,
    "__nv_bfloat16": torch.bfloat16,
}
ADDED = ("int", "unsigned", "unsigned long long", "float", "double")
NAMES = [
    "coordinates", "tree_sum", "left_neighbour<true>", "left_neighbour<false>", "left_block", "block_votes", "votes",
    "half_warps", "bits", "atomics", "dynamic", "vectors", "arguments", "wrong",
    *(f"shuffles<{t}>" for t in SHUFFLED),
    *(f"atomic_add<{t}>" for t in ADDED),
    "arrive<true, false>", "arrive<false, false>", "arrive<false, true>", "bounded<64>", "count_in_shared",
]  # fmt: skip


@pytest.fixture(scope="module")
def run():
    kernels = load(HERE / "kernels/threads.cuh", [f"threads::{name}" for name in NAMES], "simt")

    def run(name, grid, block, *args, shared=0):
        values = [arg.data_ptr() if isinstance(arg, torch.Tensor) else arg for arg in args]  # `args` keeps the tensors alive
        grid, block = ((*shape, 1, 1)[:3] for shape in (grid, block))
        kernels[f"threads::{name}"](grid, block, shared, 0, *values)

    return run


def ints(*shape, high=1000):
    return torch.randint(0, high, shape, dtype=torch.int32)


def test_every_thread_of_every_block_runs_once_with_its_coordinates(run):
    out = torch.zeros(3 * 2 * 2 * 4 * 3 * 2, dtype=torch.int32)
    run("coordinates", (3, 2, 2), (4, 3, 2), out)
    expected = [
        int(f"{bz}{by}{bx}{z}{y}{x}")
        for bz in range(2) for by in range(2) for bx in range(3) for z in range(2) for y in range(3) for x in range(4)
    ]  # fmt: skip
    assert out.tolist() == expected


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("order", ["", "1", "2"])
def test_barriers(run, monkeypatch, order, threads):
    monkeypatch.setenv("SIMT_ORDER", order)
    monkeypatch.setenv("SIMT_THREADS", threads)
    values, out = ints(40, 256), torch.zeros(40, dtype=torch.int32)
    run("tree_sum", (40,), (256,), values, out)
    assert torch.equal(out, values.sum(1, dtype=torch.int32))


def test_a_missing_barrier_shows_in_random_order(run, monkeypatch):
    monkeypatch.delenv("SIMT_ORDER", raising=False)
    out, expected = torch.zeros(256, dtype=torch.int32), torch.arange(-1, 255, dtype=torch.int32).clamp(min=0)
    run("left_neighbour<false>", (1,), (256,), out, 1000)
    assert torch.equal(out, expected + 1000), "in thread order the race stays hidden"
    monkeypatch.setenv("SIMT_ORDER", "3")
    run("left_neighbour<true>", (1,), (256,), out, 2000)
    assert torch.equal(out, expected + 2000)
    run("left_neighbour<false>", (1,), (256,), out, 3000)
    assert not torch.equal(out, expected + 3000)


def test_blocks_run_in_random_order_too(run, monkeypatch):
    monkeypatch.setenv("SIMT_THREADS", "1")
    results = []
    for order in ("", "1", "1", "2"):
        monkeypatch.setenv("SIMT_ORDER", order)
        out = torch.zeros(101, dtype=torch.int32)
        run("left_block", (100,), (1,), out)
        results.append(out.tolist())
    assert results[0] == list(range(101))
    assert results[1] == results[2], "a seed gives one order"
    assert len({tuple(result) for result in results}) == 3


def test_block_votes(run):
    values = ints(96, high=2)
    out = torch.zeros(96, 3, dtype=torch.int32)
    run("block_votes", (1,), (96,), values, out)
    assert (out == torch.tensor([values.sum(), 1, 0])).all()


@pytest.mark.parametrize("width", [2, 8, 32])
@pytest.mark.parametrize("type_name", SHUFFLED)
def test_shuffles(run, type_name, width):
    values = torch.arange(100, 164).to(TORCH[type_name])
    lanes = np.arange(64)
    start = lanes - lanes % width
    for amount in (0, 1, 5, 17):
        out = torch.zeros(4, 64, dtype=values.dtype)
        run(f"shuffles<{type_name}>", (1,), (64,), values, out, amount, width)
        up, down, xor = lanes - amount, lanes + amount, lanes ^ amount
        sources = [
            start + amount % width,
            np.where(up < start, lanes, up),
            np.where(down < start + width, down, lanes),
            np.where(xor < start + width, xor, lanes),
        ]
        assert torch.equal(out, values[torch.from_numpy(np.stack(sources))])


def test_votes(run):
    values = ints(32, high=2)
    out = torch.zeros(32, 4, dtype=torch.int32)
    run("votes", (1,), (32,), values, out)
    ballot = sum(int(v) << i for i, v in enumerate(values))
    assert (out[:, 0].numpy().view(np.uint32) == ballot).all()
    assert (out[:, 1] == 1).all() and (out[:, 2] == 0).all()
    assert (out[:, 3].numpy().view(np.uint32) == 1 << np.arange(32, dtype=np.uint32)).all()


def test_halves_of_a_warp_synchronize_by_their_masks(run):
    out = torch.zeros(32, dtype=torch.int32)
    run("half_warps", (1,), (32,), out)
    assert out.tolist() == [sum(range(16))] * 16 + [sum(range(16, 32))] * 16


def test_a_shuffle_from_a_lane_that_the_block_does_not_have_gives_ones(run):
    values, out = torch.arange(40, dtype=torch.int32), torch.zeros(4, 40, dtype=torch.int32)
    run("shuffles<int>", (1,), (40,), values, out, 9, 32)
    assert (out[0, 32:] == -1).all() and (out[0, :32] == 9).all()


def test_bits(run):
    values = torch.tensor([0, 1, -1, 12, -(2**31), 2**30], dtype=torch.int32)
    out = torch.zeros(6, 4, dtype=torch.int32)
    run("bits", (1,), (6,), values, out)
    assert out[:, 0].tolist() == [0, 1, 32, 2, 1, 1]
    assert out[:, 1].tolist() == [0, 1, 1, 3, 32, 31]
    assert out[:, 2].tolist() == [32, 31, 0, 28, 0, 1]
    assert torch.equal(out[:, 3], values)


@pytest.mark.parametrize("type_name", ADDED)
def test_atomic_add(run, monkeypatch, type_name):
    monkeypatch.setenv("SIMT_THREADS", "2")
    total = torch.zeros(1, dtype=TORCH[type_name.replace("unsigned ", "")])
    run(f"atomic_add<{type_name}>", (50,), (128,), total)
    assert total.item() == 50 * sum(range(128))


def test_other_atomics(run, monkeypatch):
    monkeypatch.setenv("SIMT_THREADS", "2")
    out = torch.tensor([0, 0, 0, -1, 0, 0, 0], dtype=torch.int32)
    run("atomics", (4,), (64,), out)
    assert out.tolist() == [255, -255, 2**31 - 1, -(2**31), 7, 1, 5]


def bytes_of(t, less=0):
    """A pointer argument with the length of its tensor."""
    return t.data_ptr(), t.numel() * t.element_size() - less


def test_an_atomic_outside_of_the_tensors_is_an_error(run):
    total, other = torch.zeros(3, dtype=torch.int32), torch.zeros(3, dtype=torch.int32)
    run("atomic_add<int>", (1,), (4,), bytes_of(total))
    assert total.tolist() == [6, 0, 0]
    with pytest.raises(RuntimeError, match="an atomic outside of every tensor of the launch"):
        run("atomic_add<int>", (1,), (4,), bytes_of(total, less=9))
    run("atomic_add<int>", (1,), (4,), total)  # nothing is known of the next launch's
    with pytest.raises(RuntimeError, match="an atomic outside of every tensor of the launch"):
        run("arrive<true, false>", (1,), (4,), bytes_of(other), total, bytes_of(other))


def test_shared_memory_is_a_launch_s_own(run, monkeypatch):
    monkeypatch.setenv("SIMT_THREADS", "2")
    out = torch.zeros(5, dtype=torch.int32)
    run("count_in_shared", (5,), (16,), bytes_of(out), shared=4)
    assert out.tolist() == [32] * 5


def arrive(run, fence, before):
    parts, counter, out = (torch.zeros(n, dtype=torch.int32) for n in (24, 1, 1))
    run(f"arrive<{fence}, {before}>", (3,), (8,), parts, counter, out)
    return out.item()


def test_an_arrival_needs_a_fence_after_the_block_s_writes(run):
    assert arrive(run, fence="true", before="false") == 24
    for before in ("true", "false"):  # a fence before the barrier is of one thread's own writes
        with pytest.raises(RuntimeError, match=r"thread \(0, 0, 0\): uses the result of an atomic without __threadfence\(\)"):
            arrive(run, "false", before)


def test_launch_bounds(run):
    out = torch.zeros(65, dtype=torch.int32)
    run("bounded<64>", (1,), (8, 8), out)
    assert out[:8].tolist() == [64] * 8
    with pytest.raises(RuntimeError, match=r"block \(65, 1, 1\) has more threads .*__launch_bounds__\(64\)"):
        run("bounded<64>", (1,), (65,), out)


def test_dynamic_shared_memory(run):
    n = 227 * 256 - 1  # with the one number that is only read: all that a block can have
    values, out = torch.randn(n), torch.zeros(n + 1)
    run("dynamic", (1,), (128,), values, out, n, shared=(n + 1) * 4)
    assert torch.equal(out[:-1], values.flip(0))
    assert out[-1].isnan(), "shared memory that nobody wrote is a NaN"


def test_what_lies_behind_dynamic_shared_memory(run):
    """After a launch that had all of it."""
    run("dynamic", (1,), (128,), torch.randn(227 * 256 - 1), torch.zeros(227 * 256), 227 * 256 - 1, shared=227 * 1024)
    values, out = torch.randn(63), torch.zeros(64)
    run("dynamic", (1,), (64,), values, out, 63, shared=63 * 4)
    assert torch.equal(out[:-1], values.flip(0)) and out[-1].isnan(), "the last number is read from behind"
    with pytest.raises(RuntimeError, match="byte 248 of dynamic shared memory was written, and the launch asked for 248"):
        run("dynamic", (1,), (64,), values, out, 63, shared=62 * 4)


def test_vectors(run):
    values = torch.randn(32, 4)
    out, halves = torch.zeros(32, 4), torch.zeros(32, 2)
    run("vectors", (1,), (32,), values, out, halves)
    assert torch.equal(out, values * torch.tensor([1.0, 2, 4, 8]))
    assert torch.equal(halves, torch.stack([values[:, :2].amax(1), values[:, 2:].amin(1)], 1))


GOOD = (-(2**31), 2**62, 0.5, True, (3, -4), (5, -(2**40)), 255)


def test_arguments_of_every_kind(run):
    out = torch.zeros(9, dtype=torch.float64)
    run("arguments", (1,), (1,), out, *GOOD)
    assert out.tolist() == [-(2**31), 2**62, 0.5, 1, 3, -4, 5, -(2**40), 255]


@pytest.mark.parametrize(
    ("position", "value", "error"),
    [
        (0, 2**31, OverflowError), (0, 1.0, TypeError), (0, True, TypeError), (1, 2**63, OverflowError),
        (2, "1", TypeError), (3, 1, TypeError), (4, (1, 2, 3), TypeError), (4, (1, 2**31), OverflowError),
        (4, [1, 2], TypeError), (5, (0, 2**63), OverflowError), (6, -1, OverflowError), (6, 256, OverflowError),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit(run, position, value, error):
    bad = list(GOOD)
    bad[position] = value
    with pytest.raises(error, match=f"argument {position + 1}"):
        run("arguments", (1,), (1,), torch.zeros(9, dtype=torch.float64), *bad)


def test_the_number_of_arguments(run):
    with pytest.raises(TypeError, match="takes 1 kernel arguments, not 2"):
        run("coordinates", (1,), (1,), 0, 0)


@pytest.mark.parametrize(
    ("grid", "block", "shared"),
    [
        ((1,), (1025,), 0),
        ((1,), (0,), 0),
        ((1,), (1, 1, 65), 0),
        ((0,), (1,), 0),
        ((1, 65536), (1,), 0),
        ((1,), (1,), 227 * 1024 + 1),
    ],
)
def test_launches_that_every_gpu_refuses(run, grid, block, shared):
    with pytest.raises(RuntimeError, match="cudaErrorInvalidConfiguration"):
        run("coordinates", grid, block, 0, shared=shared)


def test_a_failed_launch_says_what_to_do():
    source = Source(str(HERE / "kernels/tiny.cuh"), ("tiny::fill<1>",))
    launch = CudaLaunch(source, "tiny::fill<1>", (1,), (2000, 1, 1), (torch.zeros(4, dtype=torch.int32),))
    with pytest.raises(LaunchError, match=r"^tiny::fill<1>, grid .*cudaErrorInvalidConfiguration.*\n.*design=.*explain"):
        launch.run()


@pytest.mark.parametrize("order", ["", "5"])
@pytest.mark.parametrize(
    ("which", "text"),
    [
        (0, r" diverged: 24 threads exited: \(1, 0, 0\).*24 threads wait at __syncthreads: \(0, 0, 0\)"),
        (1, r", thread .* arrives at __syncthreads.* while other threads of its block wait: "),
        (2, r" diverged: 17 threads exited.*31 threads wait at __syncwarp with mask 0xffffffff"),
        (3, r", thread \(\d+, 0, 0\): __shfl_sync with a mask that does not name the calling lane"),
        (4, r" diverged: .*1 thread wait at __syncthreads: \(7, 0, 0\); 31 threads wait at __syncwarp"),
        (5, r" diverged: .*31 threads wait at __syncwarp with mask 0xffffffff"),
        (6, r", thread \(2, 0, 0\): __trap\(\)"),
        (7, r", thread \(3, 0, 0\): assertion failed: i != 3 at .*threads.cuh:\d+"),
        (8, "^thrown in a kernel"),
        (9, ", thread .*: a shuffle's width must be a power of two up to 32, not 12"),
        (10, r", thread \(5, 0, 0\): an integer division by zero"),
        (11, r", thread \(5, 0, 0\): an integer division by zero"),
    ],
)
def test_errors_are_raised_and_leave_the_emulation_usable(run, monkeypatch, which, text, order):
    monkeypatch.setenv("SIMT_ORDER", order)
    place = "" if text.startswith("^") else r"block \(1, 0, 0\)"
    with pytest.raises(RuntimeError, match=place + text):
        run("wrong", (4,), (48,), which, torch.zeros(48, dtype=torch.int32))
    test_barriers(run, monkeypatch, "", "2")


def test_launches_from_several_python_threads():
    """Each OS thread has its own shared memory; the GIL is released in a launch."""
    code = f"""
import sys, threading, torch
from cuda_reference.build import load
from cuda_reference.launch import CudaLaunch, Source
from tritonkernels.errors import LaunchError
kernel = load({str(HERE / "kernels/threads.cuh")!r}, {[f"threads::{n}" for n in NAMES]!r}, "simt")["threads::tree_sum"]
wrong = []
def work():
    for _ in range(50):
        values, out = torch.randint(0, 1000, (8, 256), dtype=torch.int32), torch.zeros(8, dtype=torch.int32)
        kernel((8, 1, 1), (256, 1, 1), 0, 0, values.data_ptr(), out.data_ptr())
        if not torch.equal(out, values.sum(1, dtype=torch.int32)): wrong.append(1)
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
sys.exit(len(wrong))
"""
    assert children.run("-c", code).returncode == 0


def test_modules_share_one_pool_of_stacks():
    """A process may have 65530 mappings: with a pool in each module, two a stack, a few dozen modules would use them up."""

    def mappings():
        return sum(1 for _ in open("/proc/self/maps"))

    a, b = torch.randn(200, 16), torch.randn(16, 200)
    for design in ("vectorized", "conflict_free", "z_order", "double_buffered"):
        before = mappings()
        cuda_reference.gemm(a, b, design=design)
        grown = mappings() - before
    assert grown < 200, "the last of four modules still mapped stacks of its own"
