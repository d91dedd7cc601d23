"""Offsets past 2^31 elements, in operands and result: strided views of reserved address space that is mostly never touched."""

import functools
import mmap

import pytest
import torch

from cuda_reference.launch import LIBRARY as CUDA
from tests.harness import Size, built, designs, prepare, random, suited, taken
from tritonkernels import backend
from tritonkernels.launch import LIBRARY
from tritonkernels.matmul.parts import fp32_planes as split
from tritonkernels.operations.matmul.schemes import room
from tritonkernels.problem import needs_wide_offsets

ELEMENTS = 2**31 + 2**29
pytestmark = pytest.mark.skipif(backend.device_type() != "cpu", reason="reserves address space on the CPU only")


@pytest.fixture(scope="module")
def far():
    """10 GB of address space; only the pages that are touched exist."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    return torch.frombuffer(mmap.mmap(-1, 4 * ELEMENTS, flags=flags), dtype=torch.float32)


def spread(flat, t, start):
    """The values of t with its first dimension strided so far that the last offsets need 64 bits."""
    stride = (2**31 + 2**28) // (t.shape[0] - 1)
    inner = torch.empty(t.shape[1:]).stride()
    view = flat.view(t.dtype).as_strided(t.shape, (stride, *inner), start)
    return view.copy_(t)


@pytest.mark.parametrize("library, op, design", designs())
@pytest.mark.parametrize("first", (True, False), ids=("first operand and result", "other operands"))
def test_offsets_beyond_32_bits(library, op, design, first, far):
    """The other operands have kernels of their own, which pack them or lay them out."""
    dtype, options = taken(library, op, design)
    product = ((3, 5), (5, 6)) if first else ((5, 3), (3, 6))  # the third of three rows is beyond 32 bits
    shapes = {
        "gemm": product,
        "gemv": ((5, 8), (8,)),
        "conv2d": ((3, 2, 6, 5), (4, 2, 3, 3)),
        "conv2d_input": (Size((3, 2, 6, 5)), (4, 2, 3, 2), (3, 4, 4, 4)),
        "conv2d_weight": ((3, 2, 6, 5), Size((4, 2, 3, 2)), (3, 4, 4, 4)),
        "conv2d_bias": ((3, 4, 4, 4),),
        "matmul": product,
    }
    suitable, _ = suited(library, op, design, shapes[op])
    args = built(suitable, functools.partial(random, dtype=dtype))
    near = prepare(op, *args, **options)
    tensors = [i for i, value in enumerate(args) if isinstance(value, torch.Tensor)]
    chosen = [i for i in (tensors[:1] if first else tensors[1:]) if args[i].shape[0] > 1]
    if not chosen:
        pytest.skip("it has no other operand of several rows")
    far_args = [spread(far, value, i * 2**20) if i in chosen else value for i, value in enumerate(args)]
    out = torch.full(near.result.shape, torch.nan, dtype=dtype)
    call = prepare(op, *far_args, out=spread(far, out, 1000) if first else out, **options)
    assert call.problem.wide and not near.problem.wide
    library.run(call, design)
    verdict = library.judge(call, design, None, *args, **options)
    assert verdict.ok, verdict


@pytest.mark.parametrize("library, op, design", designs("matmul"))
@pytest.mark.parametrize("which", ("a", "b"))
def test_offsets_of_batches_beyond_32_bits(library, op, design, which, far):
    """And in the kernels that pack operands, split them into planes, or look for the largest of each row."""
    dtype, options = taken(library, op, design)
    near = {"a": random(3, 5, 7, dtype=dtype), "b": random(3, 7, 6, dtype=dtype)}
    given = near | {which: spread(far, near[which], 0)}
    call = prepare(op, *given.values(), **options)
    chosen = {d.name: d for d in library.designs(op)}[design]
    if why := chosen.refuses(call.problem, library.target(call.result.device)):
        pytest.skip(why)
    assert call.problem.wide
    library.run(call, design)
    verdict = library.judge(call, design, None, *near.values(), **options)
    assert verdict.ok, verdict


@pytest.mark.parametrize("far_one", (0, 1, None), ids=("a", "b", "result"))
@pytest.mark.parametrize("batch", ((3,), ()), ids=("batches", "rows"))
@pytest.mark.parametrize("library", (CUDA, LIBRARY), ids=lambda library: library.package)
def test_offsets_of_what_is_computed_again_beyond_32_bits(library, batch, far_one, far):
    """All products in fp32, as elements are tiny but for one in a row of A, which is multiplied by 0."""
    near = [random(*batch, 3, 270), random(*batch, 270, 5)]
    near[0][..., 1:] *= 2.0**-45
    near[1][..., 0, :] = 0.0
    out = torch.full((*batch, 3, 5), torch.nan)
    given = [spread(far, t, 0) if i == far_one else t for i, t in enumerate(near)]
    call = prepare("matmul", *given, precision="fp32", out=spread(far, out, 1000) if far_one is None else out)
    assert call.problem.wide and call.problem.precision == "fp32"
    library.run(call, "planes")
    verdict = library.judge(call, "planes", None, *near, precision="fp32")
    assert verdict.ok, verdict


@pytest.mark.parametrize("of_a", (True, False))
def test_offsets_of_splits_beyond_32_bits(far, of_a):
    """Along K, where the second split begins."""
    a, b, config = random(34, 20), random(34, 24), {"SPLIT_K": 2}
    call = prepare("matmul", *((spread(far, a, 0).t(), b) if of_a else (a.t(), spread(far, b, 0))))
    assert call.problem.wide
    CUDA.run(call, "cuda_cores", config)
    verdict = CUDA.judge(call, "cuda_cores", config, a.t(), b)
    assert verdict.ok, verdict


@pytest.mark.parametrize("channels_inside", (False, True))
@pytest.mark.parametrize("math", ("MMA", "WGMMA"))
def test_offsets_beyond_32_bits_on_tensor_cores(far, math, channels_inside):
    """In conv2d_weight, of images that are copied into channels_last, and of those that are not."""

    def spread_inside(t):
        return spread(far, t.permute(0, 2, 3, 1), 0).permute(0, 3, 1, 2)

    x, grad = random(3, 8, 6, 5, dtype=torch.float16), random(3, 8, 4, 4, dtype=torch.float16)
    far_x = spread_inside(x) if channels_inside else spread(far, x, 0)
    out = spread(far, torch.full((8, 8, 3, 2), torch.nan, dtype=torch.float16), 1000)
    call = prepare("conv2d_weight", far_x, (8, 8, 3, 2), grad, out=out)
    assert call.problem.wide
    CUDA.run(call, "implicit_gemm", {"MATH": math, "BM": 64, "BN": 64, "SPLITS": 3})
    verdict = CUDA.judge(call, "implicit_gemm", None, x, (8, 8, 3, 2), grad)
    assert verdict.ok, verdict


@pytest.mark.parametrize("design, groups", [("grouped", 1), ("grouped", 2), ("depthwise", 8), ("depthwise_channels", 8)])
@pytest.mark.parametrize("far_one", (0, 1, None), ids=("image", "filters", "result"))
@pytest.mark.parametrize("channels_inside", (False, True))
def test_offsets_beyond_32_bits_of_grouped_convolutions(far, design, groups, far_one, channels_inside):
    near = random(2, 8, 9, 5), random(8, 8 // groups, 3, 3)
    near = [t.contiguous(memory_format=torch.channels_last) if channels_inside else t for t in near]
    args = [far_apart(far, t) if i == far_one else t for i, t in enumerate(near)]
    out = prepare("conv2d", *near, stride=2, groups=groups).result
    out = far_apart(far, out) if far_one is None else out
    call = prepare("conv2d", *args, stride=2, groups=groups, out=out.fill_(torch.nan))
    assert call.problem.wide
    LIBRARY.run(call, design)
    verdict = LIBRARY.judge(call, design, None, *near, stride=2, groups=groups)
    assert verdict.ok, verdict


def far_apart(flat, t):
    """A copy whose first dimension is so far strided, and whose others lie as they do in t."""
    moved = flat.as_strided(t.shape, ((2**31 + 2**28) // (t.shape[0] - 1), *t.stride()[1:]), 0)
    return moved.copy_(t)


def test_when_offsets_need_64_bits():
    def strided(rows, stride):
        return torch.empty(1, device="meta").as_strided((rows, 8), (stride, 1))

    assert not needs_wide_offsets(torch.empty(4096, 4096, device="meta"))
    assert needs_wide_offsets(strided(2, 2**31))
    assert needs_wide_offsets(strided(2**11 + 1, 2**20))
    assert not needs_wide_offsets(strided(1, 2**40)), "one row has no second offset"
    assert needs_wide_offsets(torch.empty(3, 3), None, strided(2**12, 2**20))


def test_planes_beyond_32_bits(far, monkeypatch):
    """The third plane is two planes from the first, which may be too far where one is not."""
    a, b = random(5, 70), random(70, 6)

    def apart(matrix, precision):
        once, planes, ranges = room(matrix, precision)
        strides = 2**30 + 2**28, *planes.stride()[1:]
        return once, far.view(planes.dtype).as_strided(planes.shape, strides, 2**26 * (len(matrix[0]) == 6)), ranges

    monkeypatch.setattr(split, "room", apart)
    call = prepare("matmul", a, b, precision="bf16x9")
    LIBRARY.run(call, "planes")
    verdict = LIBRARY.judge(call, "planes", None, a, b, precision="bf16x9")
    assert verdict.ok, verdict


@pytest.mark.parametrize("op", ("conv2d_bias", "conv2d_weight"))
def test_positions_of_the_last_split_need_64_bits(op):
    """Each split is rounded up to whole slices, so the last one may begin or end past 2^31 where there are fewer positions."""
    grad = torch.empty(1).expand(2, 1, 2**15, 2**15 - 1)
    args = (grad,) if op == "conv2d_bias" else (grad, (1, 1, 1, 1), grad)
    call = prepare(op, *args)
    assert call.problem.terms < 2**31 - 2**15 and call.problem.wide
