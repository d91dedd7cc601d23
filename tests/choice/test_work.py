"""Work of the designs: the blocks and threads of their launches, and no less work than there is."""

import math

import pytest
import torch

from perf.measure import records
from perf.measure.measured import RESULTS
from perf.measure.sweep_records import problem_of
from tests.harness import LIBRARIES, prepare
from tritonkernels.choice.work import BY_THREADS, Work
from tritonkernels.launch import LIBRARY
from tritonkernels.operations.matmul.work import main_kernel
from tritonkernels.target import Target

H200 = Target.named("h200")
F32, F16, F64, INT8 = torch.float32, torch.float16, torch.float64, torch.int8


def empty(*shape, dtype=F32):
    return torch.empty(shape, dtype=dtype, device="meta")


def gemv(m, n, dtype=F32, batch=(), col=False, **options):
    a, x = empty(*batch, *((n, m) if col else (m, n)), dtype=dtype), empty(*batch, n, dtype=F16 if dtype == INT8 else dtype)
    options |= {"scale": empty(m)} if dtype == INT8 else {}
    return prepare("gemv", a.mT if col else a, x, **options)


GEMV = [
    gemv(m, n, dtype, **options)
    for m, n in ((4096, 4096), (1, 10**6), (16384, 16), (10**6, 3), (37, 70), (64, 1), (129, 65536))
    for dtype, options in (
        (F32, {}),
        (F16, {"batch": (3,)}),
        (F32, {"col": True}),
        (INT8, {"col": True}),
        (INT8, {}),
        (F64, {}),
    )
]


def conv(input, weight, dtype=F32, last=False, op="conv2d", **options):
    memory = torch.channels_last if last else torch.contiguous_format
    tensors = [empty(*shape, dtype=dtype).to(memory_format=memory) for shape in (input, weight)]
    if op == "conv2d":
        bias = empty(weight[0], dtype=dtype) if options.pop("bias", False) else None
        return prepare(op, *tensors, bias, **options)
    outline = prepare("conv2d", *tensors, **options)
    grads = torch.empty_like(outline.result)
    if op == "conv2d_input":
        return prepare(op, input, tensors[1], grads, **options)
    return prepare(op, tensors[0], weight, grads, **options) if op == "conv2d_weight" else prepare(op, grads)


CONVOLUTIONS = [
    ((1, 6, 768, 512), (6, 6, 6, 6), {}),
    ((8, 64, 14, 14), (96, 64, 3, 3), {"padding": 1}),
    ((8, 64, 14, 14), (96, 64, 3, 3), {"padding": 1, "dtype": F16}),
    ((32, 256, 56, 56), (64, 256, 1, 1), {"dtype": F16}),
    ((4, 3, 224, 224), (64, 3, 7, 7), {"padding": 3, "stride": 2}),
    ((4, 128, 28, 28), (128, 4, 3, 3), {"padding": 1, "groups": 32}),
    ((4, 96, 7, 7), (96, 1, 3, 3), {"padding": 1, "groups": 96}),
    ((4, 96, 57, 55), (96, 1, 5, 5), {"padding": 2, "stride": 2, "groups": 96}),
    ((2, 10, 13, 9), (15, 2, 3, 5), {"groups": 5, "dilation": 2, "padding": 4}),
    ((2, 27, 13, 9), (15, 9, 3, 3), {"groups": 3, "padding": 1, "dtype": F16}),
    ((2, 32, 1, 1), (32, 8, 1, 1), {"groups": 4}),
    ((1, 1, 64, 40), (1, 1, 3, 3), {}),
    ((64, 256, 112, 112), (256, 256, 3, 3), {"padding": 1}),  # winograd takes part of the images at a time
    ((3, 16, 20, 20), (24, 16, 3, 3), {"dtype": F64}),
    ((2, 64, 20, 20), (24, 64, 3, 3), {"precision": "tf32"}),
]


def convolutions(op):
    """Without those in channels_last that lie as in NCHW: of one channel or pixel."""
    calls = [(conv(*sizes, op=op, last=last, **options), last) for *sizes, options in CONVOLUTIONS for last in (False, True)]
    return [call for call, last in calls if call.problem.channels_last == last]


CONV2D = [*convolutions("conv2d"), conv((2, 3, 30, 33), (5, 3, 4, 2), bias=True), conv((9, 4, 6, 6), (64, 4, 1, 1), bias=True)]


def launched(design, call, config):
    """(blocks, threads) of each kernel; of a Gluon program with partitions those of all consumers."""
    for launch in design.launches(call.problem, config, *call.parts[0]):
        if hasattr(launch, "block"):
            threads = math.prod(launch.block)
        else:
            threads = H200.warp_size * launch.config.num_warps * launch.config.kwargs.get("CONSUMERS", 1)
        yield math.prod(launch.grid), threads


def works(op, calls):
    """(design, call, config, its Works) of both packages' designs that take the calls."""
    for library in LIBRARIES:
        own = (design for design in library.designs(op) if "." not in design.name)  # not another operation's
        for design in (design for design in own if not design.is_lesson):
            taken = [call for call in calls if design.refuses(call.problem, H200) is None]
            assert taken, f"{library.package} {op}.{design.name} takes none of the calls"
            for call in taken:
                for config in design.configs(call.problem, H200):
                    yield design, call, config, tuple(design.work(call.problem, config, H200))


def product(m, n, k, dtype=F16, batch=(), op="matmul", **options):
    return prepare(op, empty(*batch, m, k, dtype=dtype), empty(*batch, k, n, dtype=dtype), **options)


WAVES = [(128, 128 * tiles) for tiles in (1, 132, 133, 263, 264, 265)]  # results in waves of 132 SMs, of tiles of 128 x 128
PRODUCTS = {
    "gemm": [
        product(*sizes, F32, op="gemm") for sizes in [*((m, n, 1024) for m, n in WAVES), (37, 70, 64), (1024, 1024, 1024)]
    ],
    "matmul": [
        *(product(m, n, k, dtype) for m, n in WAVES for k in (64, 1024) for dtype in (F16, F32)),
        *(product(80, 160, 1024, dtype, (3,)) for dtype in (F16, F64, INT8)),
        *(product(256, 4096, 4096, F32, precision=precision) for precision in ("tf32", "fp16x3", "bf16x6", "tf32x3")),
    ],
}
CALLS = {
    "gemv": GEMV,
    "conv2d": CONV2D,
    "conv2d_input": [call for call in convolutions("conv2d_input") if call.problem.stride == (1, 1)],  # else a filter is cut up
    "conv2d_weight": convolutions("conv2d_weight"),
    "conv2d_bias": convolutions("conv2d_bias"),
}


@pytest.mark.parametrize(
    "op, dtype, options",
    [
        ("gemm", F32, {}),
        ("matmul", F16, {}),
        ("matmul", F16, {"out_dtype": F32}),
        ("matmul", F64, {}),
        ("matmul", torch.uint8, {"precision": "int4"}),
        ("matmul", torch.uint8, {"precision": "b1_xor"}),
    ],
)
def test_rows_are_as_long_as_those_of_the_tensors(op, dtype, options):
    for a in (empty(48, 80, dtype=dtype), empty(80, 48, dtype=dtype).t()):
        for b in (empty(80, 112, dtype=dtype), empty(112, 80, dtype=dtype).t()):
            call = prepare(op, a, b, **options)
            tensors = {"a": a, "b": b, "out": call.result}
            assert call.problem.row_bytes == {name: max(t.stride()) * t.itemsize for name, t in tensors.items()}
    assert GEMV[0].problem.row_bytes == {}


@pytest.mark.parametrize("op", CALLS | PRODUCTS)
def test_kernels_are_those_of_the_launches(op):
    for design, call, config, found in works(op, (CALLS | PRODUCTS)[op]):
        wanted, kernels = list(launched(design, call, config)), [(work.blocks, work.threads) for work in found]
        if (
            op == "conv2d_input"
        ):  # filters are flipped by tiles, or two a thread, and of one tap some designs pack them: the model
            wanted = wanted[max(0, len(wanted) - len(kernels)) :]  # counts elements that are flipped, and no packing
            wanted[0] = kernels[0]
        assert kernels == wanted, (design, call.problem, config)


@pytest.mark.parametrize("op", CALLS)
def test_no_less_than_the_problem_s(op):
    for design, call, config, found in works(op, CALLS[op]):
        problem, case = call.problem, (design, call.problem, config, found)
        assert sum(work.dram for work in found) >= problem.bytes, case
        assert sum(work.blocks * work.fetched for work in found) >= problem.bytes, case
        transform = design.transform(config if isinstance(config, dict) else config.kwargs)
        flops = design.reduced(problem).flops  # of a gradient, those of its convolution
        assert transform or sum(work.blocks * work.flops for work in found) >= flops, case
        assert all(work.steps >= 1 for work in found), case


LARGER = {
    "gemv": lambda i: gemv(64 << i, 100 << 2 * i),
    "conv2d": lambda i: conv((2, 16 << i, 20, 20), (16 << i, 16 << i, 3, 3), padding=1),
    "conv2d_weight": lambda i: conv((2, 16 << i, 20, 20), (16 << i, 16 << i, 3, 3), padding=1, op="conv2d_weight"),
    "conv2d_bias": lambda i: conv((2 << i, 16, 20, 20), (16 << i, 16, 3, 3), padding=1, op="conv2d_bias"),
}


@pytest.mark.parametrize("op", LARGER)
def test_a_larger_problem_is_more_work(op):
    """With the same config."""
    smaller, larger = (LARGER[op](i).problem for i in (0, 2))
    compared = 0
    for library in LIBRARIES:
        for design in library.designs(op):
            if design.is_lesson or any(design.refuses(problem, H200) is not None for problem in (smaller, larger)):
                continue
            for config in design.configs(smaller, H200):
                less, more = (tuple(design.work(problem, config, H200)) for problem in (smaller, larger))
                for total in ("flops", "fetched"):
                    before, after = (sum(w.blocks * getattr(w, total) for w in found) for found in (less, more))
                    assert before < after, (design, config, total)
                assert sum(w.dram for w in less) < sum(w.dram for w in more), (design, config)
                compared += 1
    assert compared > 3


@pytest.mark.parametrize("side", ["BM", "BN"])
def test_boxes_across_k_are_fetched_whole(side):
    """For 136 rows of A, or columns of B, 192 where it lies across K, and no more where it is packed, or along K."""
    tile = {"BM": 128, "BN": 128, "BK": 64, "threads": 384, "box": 64} | {side: 136}
    of_a, of_b = side == "BM", side == "BN"

    def problem(a_across=False, b_across=False):
        a, b = (torch.empty(1024, size, dtype=torch.bfloat16, device="meta") for size in (1360, 1280))
        a, b = a.mT if a_across else a.mT.contiguous(), b if b_across else b.mT.contiguous().mT
        return prepare("matmul", a, b).problem

    def fetched(problem, packed=False):
        return main_kernel(problem, tile, Target.named("h200"), (packed and of_a, packed and of_b)).fetched

    across, along = problem(of_a, of_b), problem()
    assert fetched(across) - fetched(along) == 1024 * 2 * (192 - 136)
    assert fetched(across, packed=True) == fetched(along)


def test_registers_and_shared_memory_are_about_as_compiled():
    """They say how many blocks an SM holds. Compared with cuobjdump, for Triton's products with operands in registers."""
    seen = {}
    for row in records.read_rows(RESULTS / "h200/code.json"):
        ours = row["implementation"] == "triton" and row["op"] in ("gemm", "matmul")
        if not ours or row["problem"]["precision"] not in BY_THREADS:
            continue
        problem = problem_of(row["op"], row["problem"])
        design, config = LIBRARY.choose(problem, H200, row["design"], row["config"])
        if not design.is_lesson:
            kernel = max(design.work(problem, config, H200), key=Work.weight)
            seen[design.key] = kernel.registers / row["registers"], kernel.shared / row["shared_bytes"]
    assert {"gemm.rasterized", "gemm.async_copy", "gemm.split_k", "matmul.cuda_cores", "matmul.dmma"} <= seen.keys()
    assert all(0.8 <= registers <= 1.25 and shared == 1 for registers, shared in seen.values()), seen
