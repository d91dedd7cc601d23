"""What `perf calibrate` times: kernels that keep one part of the GPU busy and do little else, and how they are launched."""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch

from tritonkernels.language.dot import faithful_dot
from tritonkernels.language.triton import tl, triton
from tritonkernels.launch import TritonLaunch

PER_SM = 2  # programs of 8 warps
BLOCK = 8192  # int32 elements that a program of 8 warps reads at a time: 8 accesses of 16 bytes a thread, 64 KB of an SM
NUMBERS, FMAS = 2048, 16  # of a program and a step: 8 chains a thread, for an FMA's latency of 4 cycles
TILE, TILE_BYTES = 128, 256  # a step multiplies (128, 256 bytes) by (256 bytes, 128), so that the loop's own costs are small
LARGE = 2**29  # bytes, or 8 L2s: an MI300 has 256 MB behind its L2
LINE = 128  # bytes between the places of a chase
DTYPES = {
    **{"fp16": torch.float16, "bf16": torch.bfloat16, "tf32": torch.float32, "int8": torch.int8},
    **{"fp8": torch.float8_e4m3fn, "fp64": torch.float64},
}
SUMS = {"int8": torch.int32, "fp64": torch.float64}  # else fp32


@triton.jit
def copy_kernel(data, out, BLOCK: tl.constexpr):
    """DRAM: out = data, each element once."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(data + at))


@triton.jit
def read_kernel(data, out, blocks, steps, BLOCK: tl.constexpr):
    """L2: a program adds up `steps` blocks, each time another one; ".cg" is past L1."""
    at = tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK,), tl.int32)
    for step in range(steps):
        block = (tl.program_id(0) + step * tl.num_programs(0)) % blocks
        sums += tl.load(data + block * BLOCK + at, cache_modifier=".cg")
    tl.store(out + tl.program_id(0) * BLOCK + at, sums)


@triton.jit
def chase_kernel(ring, place, steps):
    """The latency of DRAM: an address is known when the one before has been loaded. `place` is where the chase goes on."""
    at = tl.load(place)
    for _ in range(steps):
        at = tl.load(ring + at)
    tl.store(place, at)


@triton.jit
def fma_kernel(factors, out, steps, NUMBERS: tl.constexpr, FMAS: tl.constexpr):
    """The CUDA cores: `steps` times FMAS multiply-adds of each number, which depends on no other."""
    at = tl.arange(0, NUMBERS)
    scale, shift = tl.load(factors), tl.load(factors + 1)
    numbers = at.to(tl.float32)
    for _ in range(steps):
        for _fma in tl.static_range(FMAS):
            numbers = numbers * scale + shift
    tl.store(out + tl.program_id(0) * NUMBERS + at, numbers)


@triton.jit
def dot_kernel(a, b, out, steps, TILE: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr, UNROLL: tl.constexpr):
    """The tensor cores: `steps` times the product of the same tiles, a (TILE, K) and b (TILE, K) transposed, the same in every
    program."""
    m, n, k = tl.arange(0, TILE), tl.arange(0, TILE), tl.arange(0, K)
    left = tl.load(a + m[:, None] * K + k[None, :])
    right = tl.load(b + n[None, :] * K + k[:, None])
    sums = tl.zeros((TILE, TILE), out.dtype.element_ty)
    for _ in tl.range(steps, loop_unroll_factor=UNROLL):
        sums = faithful_dot(left, right, sums, PRECISION, True)
    tl.store(out + m[:, None] * TILE + n[None, :], sums)


@triton.jit
def empty_kernel(out):
    """A launch."""


@dataclass(frozen=True)
class Probe:
    """The launches of so many steps, and how many bytes, FLOP, trips or launches a step is."""

    amount: float
    launches: Callable[[int], list]


def copies(target, device, room):
    """A step is a copy of a buffer that is much larger than L2. `room`: bytes that a buffer may have."""
    blocks = max(1, min(max(8 * target.l2_bytes, LARGE), room) // (4 * BLOCK))
    data = _integers(blocks * BLOCK, device)
    copy = TritonLaunch(copy_kernel, (blocks,), _config(BLOCK=BLOCK), data, torch.empty_like(data))
    return Probe(2 * 4 * BLOCK * blocks, lambda steps: [copy] * steps)


def reads(target, device, room):
    """A step reads a block in every program, of a buffer of a quarter of L2."""
    blocks, programs = max(1, target.l2_bytes // 4 // (4 * BLOCK)), PER_SM * target.sms
    data, out = _integers(blocks * BLOCK, device), torch.empty(programs * BLOCK, dtype=torch.int32, device=device)
    amount = 4 * BLOCK * programs
    return Probe(amount, lambda n: [TritonLaunch(read_kernel, (programs,), _config(BLOCK=BLOCK), data, out, blocks, n)])


def trips(target, device, room):
    """A step is a load from a random line of a buffer that is much larger than L2; no line comes again before all others."""
    count = max(1, min(max(8 * target.l2_bytes, LARGE), room) // LINE)
    order = torch.randperm(count, device=device) * (LINE // 4)
    ring, place = (torch.zeros(size, dtype=torch.int32, device=device) for size in (count * LINE // 4, 1))
    ring[order] = order.roll(-1).int()
    return Probe(1, lambda steps: [TritonLaunch(chase_kernel, (1,), triton.Config({}, num_warps=1), ring, place, steps)])


def empties(target, device, room):
    """A step is a launch."""
    out = torch.empty(1, device=device)
    empty = TritonLaunch(empty_kernel, (1,), triton.Config({}, num_warps=1), out)
    return Probe(1, lambda steps: [empty] * steps)


def fmas(target, device, room):
    programs, config = PER_SM * target.sms, _config(NUMBERS=NUMBERS, FMAS=FMAS)
    factors, out = torch.tensor([0.999, 0.001], device=device), torch.empty(programs * NUMBERS, device=device)
    return Probe(2 * NUMBERS * FMAS * programs, lambda n: [TritonLaunch(fma_kernel, (programs,), config, factors, out, n)])


def products(precision, target, device, room):
    """A step is a product of two tiles in every program."""
    dtype, programs = DTYPES[precision], PER_SM * target.sms
    k = TILE_BYTES // dtype.itemsize
    a, b = (_tile(k, dtype, device) for _ in range(2))
    out = torch.empty(TILE, TILE, dtype=SUMS.get(precision, torch.float32), device=device)
    # In a loop of one product Triton 3.6 makes each wgmma wait for the one before; two spill where there is no wgmma.
    two = target.arch == 90 and precision in ("fp16", "bf16", "tf32", "int8")
    config = _config(TILE=TILE, K=k, PRECISION=precision, UNROLL=1 + two)
    return Probe(
        2 * TILE * TILE * k * programs,
        lambda n: [TritonLaunch(dot_kernel, (programs,), config, a, b, out, n)],
    )


PROBES = {
    **{"dram_bandwidth": copies, "l2_bandwidth": reads, "latency": trips, "launch": empties, "ieee": fmas},
    **{precision: functools.partial(products, precision) for precision in DTYPES},
}


def _config(**constants):
    return triton.Config(constants, num_warps=8)


def _integers(count, device):
    return torch.randint(2**31 - 1, (count,), dtype=torch.int32, device=device)


def _tile(k, dtype, device):
    if dtype == torch.int8:
        return torch.randint(-128, 128, (TILE, k), dtype=dtype, device=device)
    return torch.randn(TILE, k, device=device).to(dtype)
