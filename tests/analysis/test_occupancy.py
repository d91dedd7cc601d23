"""Occupancy against the seed, and against NVIDIA's own calculator, a header in Triton's wheel, on thousands of kernels."""

import ctypes
import importlib.util
import random
import subprocess
from pathlib import Path

import pytest

from tritonkernels.analysis.occupancy import occupancy
from tritonkernels.target import KNOWN, Target

RTX_2080 = Target.named("rtx_2080")
H200 = Target.named("h200")
GPUS = [target for target in KNOWN if target.vendor == "nvidia"]

CALCULATOR = r"""
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "cuda_occupancy.h"

extern "C" int occupancy(int arch, int sms, int threads_per_sm, int registers_per_sm, size_t shared_per_sm,
                         size_t shared_per_block, int threads, int registers, size_t shared_bytes, int* limits) {
    cudaOccDeviceProp device;
    device.computeMajor = arch / 10;
    device.computeMinor = arch % 10;
    device.maxThreadsPerBlock = 1024;
    device.maxThreadsPerMultiprocessor = threads_per_sm;
    device.regsPerBlock = 65536;
    device.regsPerMultiprocessor = registers_per_sm;
    device.warpSize = 32;
    device.sharedMemPerBlock = 48 << 10;
    device.sharedMemPerMultiprocessor = shared_per_sm;
    device.numSms = sms;
    device.sharedMemPerBlockOptin = shared_per_block;
    device.reservedSharedMemPerBlock = arch >= 80 ? 1024 : 0;

    cudaOccFuncAttributes kernel;
    kernel.maxThreadsPerBlock = INT_MAX;
    kernel.numRegs = registers;
    kernel.sharedSizeBytes = 0;
    kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.maxDynamicSharedSizeBytes = shared_bytes;
    kernel.numBlockBarriers = 0;

    cudaOccDeviceState state;
    state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;

    cudaOccResult result;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads, shared_bytes)) return -1;
    limits[0] = result.blockLimitBlocks;
    limits[1] = result.blockLimitWarps;
    limits[2] = result.blockLimitRegs;
    limits[3] = result.blockLimitSharedMem;
    return result.activeBlocksPerMultiprocessor;
}
"""


def test_128_registers_leave_half_of_the_threads():
    assert occupancy(RTX_2080, threads=256, registers=128) == (2, 16, 0.5, ("registers",))
    assert occupancy(RTX_2080, threads=512, registers=128)[:3] == (1, 16, 0.5)
    assert occupancy(RTX_2080, threads=256, registers=64) == (4, 32, 1.0, ("threads", "registers"))


def test_registers_come_in_units_of_256_per_warp_and_by_scheduler():
    assert occupancy(H200, threads=32, registers=129).warps == 4 * (16384 // (136 * 32)) == 12
    assert occupancy(H200, threads=32, registers=136).warps == 12
    assert occupancy(H200, threads=160, registers=255).blocks == 1  # 2 warps in each quarter: 8, of which 5 and not 10
    assert occupancy(H200, threads=288, registers=200).blocks == 0  # as many registers as 10 warps want, but 8 warps' quarters


def test_a_block_s_shared_memory_includes_the_system_s_kilobyte():
    assert occupancy(H200, threads=128, shared_bytes=113 * 1024).blocks == 2
    assert occupancy(H200, threads=128, shared_bytes=113 * 1024 + 1) == (1, 4, 4 / 64, ("shared memory",))
    assert occupancy(H200, threads=128, shared_bytes=227 * 1024).blocks == 1
    assert occupancy(H200, threads=128, shared_bytes=227 * 1024 + 1).blocks == 0
    assert occupancy(RTX_2080, threads=128, shared_bytes=32 * 1024).blocks == 2


def test_shared_memory_comes_in_units():
    """128 bytes: 11 times 165 units of H200's 1824. 256 before sm_80: 7 times 36 of RTX 2080's 256."""
    assert [occupancy(H200, threads=32, shared_bytes=165 * 128 - 1024 + more).blocks for more in (0, 1)] == [11, 10]
    assert [occupancy(RTX_2080, threads=32, shared_bytes=36 * 256 + more).blocks for more in (0, 1)] == [7, 6]


def test_a_block_that_does_not_fit():
    assert occupancy(H200, threads=1056) == (0, 0, 0, ("threads",))
    assert occupancy(H200, threads=32, registers=256) == (0, 0, 0, ("registers",))


def test_small_and_odd_blocks():
    assert occupancy(RTX_2080, threads=32) == (16, 16, 0.5, ("blocks",))
    assert occupancy(RTX_2080, threads=1) == occupancy(RTX_2080, threads=32)
    assert occupancy(RTX_2080, threads=33) == occupancy(RTX_2080, threads=64)


@pytest.fixture(scope="module")
def calculator(tmp_path_factory):
    headers = Path(importlib.util.find_spec("triton").origin).parent / "backends/nvidia/include"
    folder = tmp_path_factory.mktemp("calculator")
    (folder / "occupancy.cpp").write_text(CALCULATOR)
    command = ["g++", "-shared", "-fPIC", "-w", f"-I{headers}", "occupancy.cpp", "-o", "occupancy.so"]
    subprocess.run(command, cwd=folder, check=True)
    function = ctypes.CDLL(str(folder / "occupancy.so")).occupancy
    function.argtypes = [ctypes.c_int] * 4 + [ctypes.c_size_t] * 2 + [ctypes.c_int] * 2 + [ctypes.c_size_t, ctypes.c_void_p]
    return function


@pytest.mark.parametrize("target", GPUS, ids=lambda t: t.name)
def test_nvidia_s_calculator_agrees(calculator, target):
    draw = random.Random(target.name)
    machine = (target.arch, target.sms, target.threads_per_sm, target.registers_per_sm, target.shared_per_sm)
    for _ in range(500):
        threads = draw.choice((draw.randint(1, 1024), 32 * draw.randint(1, 32)))
        registers = draw.randint(1, 255)
        just_fits = target.shared_per_sm // draw.randint(2, 16) - draw.randint(0, 1300)
        shared = draw.choice((0, just_fits, draw.randint(1, 4096), draw.randint(1, target.shared_per_block + 2000)))
        limits = (ctypes.c_int * 4)()
        blocks = calculator(*machine, target.shared_per_block, threads, registers, shared, limits)
        ours = occupancy(target, threads, registers, shared)
        names = ("blocks", "threads", "registers", "shared memory")
        theirs = (blocks, tuple(name for name, limit in zip(names, limits) if limit == blocks))
        assert (ours.blocks, ours.limited_by) == theirs, (threads, registers, shared)
