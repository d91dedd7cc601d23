"""Operands and results of more than 2^31 elements, on a GPU of 80 GB: every operation of both packages, by its own choice of
design and by designs that address memory each in their way.

Elements are small integers, so that sums are exact in any order and a result must be equal. What is compared is the beginning,
the end and what lies where the 2^31st element is; of the rest it is seen that all of it was written.
"""

import gc

import pytest
import torch

import cuda_reference
import tritonkernels
from tests.harness import sentinel

pytestmark = pytest.mark.gpu
DEVICE, BEYOND = "cuda", 2**31
ROOM = 48 * 2**30  # bytes that the largest of these tests takes, generously
TRITON, CUDA = tritonkernels, cuda_reference
PACKAGES = [pytest.param(package, id=package.__name__) for package in (TRITON, CUDA)]
LONG, WIDE, FEW = 65600, 33000, 32  # LONG x WIDE elements are more than 2^31, and so are SQUARE x SQUARE
SQUARE = 46400
IMAGES = (64, 32, 1056, 1024)


@pytest.fixture(autouse=True)
def memory():
    gc.collect()
    torch.cuda.empty_cache()
    if torch.cuda.mem_get_info()[0] < ROOM:
        pytest.skip(f"it takes up to {ROOM // 2**30} GiB of the GPU's memory")
    yield
    gc.collect()
    torch.cuda.empty_cache()


def integers(*shape, dtype=torch.float16):
    return torch.randint(-2, 3, shape, dtype=dtype, device=DEVICE)


def poisoned(shape, dtype, **layout):
    return torch.empty(shape, dtype=dtype, device=DEVICE, **layout).fill_(sentinel(dtype))


def called(package, op, *args, out, **options):
    """The result of the call in `out`, all of which was written."""
    assert max(t.numel() for t in (*args, out) if isinstance(t, torch.Tensor)) > BEYOND
    assert getattr(package, op)(*args, out=out, **options) is out
    lines = out.flatten(0, -2) if out.is_contiguous() and out.ndim > 1 else out
    for part in lines.split(max(1, len(lines) // 16)):  # a mask of all would be another large tensor
        assert not (part.isnan() if part.is_floating_point() else part == sentinel(part.dtype)).any()
    return out


def places(size, others):
    """The first and last of `size` indices, and those of elements around 2^31, where each has `others` elements."""
    middle = BEYOND // others
    return sorted({i for i in (0, middle - 1, middle, middle + 1, size - 1) if 0 <= i < size})


def same_product(out, a, b):
    """out (..., M, N) is a b, in some of its rows and columns."""
    rows, columns = places(out.shape[-2], out.shape[-1] * out[..., 0, 0].numel()), places(out.shape[-1], out.shape[-2])
    exact = a[..., rows, :].double() @ b[..., columns].double()
    assert torch.equal(out[..., rows, :][..., columns].double(), exact)


@pytest.mark.parametrize("design", (None, "rasterized", "split_k", "stream_k"))
@pytest.mark.parametrize("package", PACKAGES)
def test_gemm_of_a_large_operand(package, design):
    a, b = integers(LONG, WIDE, dtype=torch.float32), integers(WIDE, FEW, dtype=torch.float32)
    same_product(called(package, "gemm", a, b, out=poisoned((LONG, FEW), a.dtype), design=design), a, b)


@pytest.mark.parametrize("design", (None, "rasterized", "async_copy"))
@pytest.mark.parametrize("package", PACKAGES)
def test_gemm_with_a_large_result(package, design):
    a, b = integers(SQUARE, FEW, dtype=torch.float32), integers(FEW, SQUARE, dtype=torch.float32)
    same_product(called(package, "gemm", a, b, out=poisoned((SQUARE, SQUARE), a.dtype), design=design), a, b)


@pytest.mark.parametrize("design", (None, "block_per_row", "split_n"))
@pytest.mark.parametrize("package", PACKAGES)
def test_gemv(package, design):
    a, x = integers(LONG, WIDE, dtype=torch.float32), integers(WIDE, dtype=torch.float32)
    out = called(package, "gemv", a, x, out=poisoned(LONG, torch.float32), design=design)
    same_product(out[:, None], a, x[:, None])


@pytest.mark.parametrize("dtype", (torch.float32, torch.int8))
@pytest.mark.parametrize("package", PACKAGES)
def test_gemv_down_columns(package, dtype):
    a, x = integers(LONG, WIDE, dtype=dtype).mT, integers(LONG, dtype=torch.float32)
    scale = {"scale": torch.ones(WIDE, device=DEVICE)} if dtype == torch.int8 else {}
    out = called(package, "gemv", a, x, out=poisoned(WIDE, torch.float32), **scale)
    same_product(out[:, None], a, x[:, None])


OF_MATMUL = (None, "pipelined", "persistent", "split_k")


@pytest.mark.parametrize(
    "package, design", [*((TRITON, d) for d in (*OF_MATMUL, "warp_specialized")), *((CUDA, d) for d in OF_MATMUL[:3])]
)
def test_matmul_with_a_large_result(package, design):
    a, b = integers(SQUARE, FEW), integers(FEW, SQUARE)
    same_product(called(package, "matmul", a, b, out=poisoned((SQUARE, SQUARE), a.dtype), design=design), a, b)


@pytest.mark.parametrize("dtype, options", [(torch.float16, {"out_dtype": torch.float32}), (torch.int8, {})])
@pytest.mark.parametrize("package", PACKAGES)
def test_matmul_of_a_large_operand(package, dtype, options):
    a, b = integers(LONG, WIDE, dtype=dtype), integers(WIDE, FEW, dtype=dtype)
    out = poisoned((LONG, FEW), torch.int32 if dtype == torch.int8 else torch.float32)
    same_product(called(package, "matmul", a, b, out=out, **options), a, b)


@pytest.mark.parametrize("precision, design", [("bf16x6", "planes"), ("tf32x3", "planes"), ("fp16x3", None), ("tf32", None)])
@pytest.mark.parametrize("package", PACKAGES)
def test_matmul_of_large_operands_of_fp32(package, precision, design):
    """Planes of more than 2^30 elements, where one is within 32 bits and the third is not, and of more than 2^31."""
    for long in (LONG, LONG // 2) if design else (LONG,):
        a, b = integers(long, WIDE, dtype=torch.float32), integers(WIDE, FEW, dtype=torch.float32)
        out = poisoned((long, FEW), torch.float32)
        same_product(package.matmul(a, b, precision=precision, design=design, out=out), a, b)


@pytest.mark.parametrize("package", PACKAGES)
def test_matmul_of_a_large_batch_and_an_addend(package):
    a, b = integers(36, 8192, 7400), integers(36, 7400, FEW)
    c = integers(36, 8192, FEW, dtype=torch.float32)
    out = poisoned((36, 8192, FEW), torch.float32)
    called(package, "matmul", a, b, c=c, beta=2.0, out_dtype=torch.float32, out=out)
    same_product(out - 2 * c, a, b)


def outputs_at(x, weight, places, groups=1):
    """conv2d with a 3 x 3 filter and padding 1 at places (image, row, column), in float64."""
    k, results = weight.shape[0], []
    for n, p, q in places:
        patch = torch.zeros(x.shape[1], 3, 3, dtype=torch.float64, device=x.device)
        for r in range(3):
            for s in range(3):
                if 0 <= p + r - 1 < x.shape[2] and 0 <= q + s - 1 < x.shape[3]:
                    patch[:, r, s] = x[n, :, p + r - 1, q + s - 1].double()
        of_groups = patch.unflatten(0, (groups, -1)).repeat_interleave(k // groups, 0)
        results.append((weight.double() * of_groups).sum((1, 2, 3)))
    return torch.stack(results)


def some_places(shape):
    n, c, h, w = shape
    return [(i, p, q) for i in places(n, c * h * w) for p, q in ((0, 0), (h - 1, w - 1), (h // 2, w // 3))]


def same_outputs(out, x, weight, groups=1):
    at = some_places(out.shape)
    computed = torch.stack([out[n, :, p, q] for n, p, q in at])
    assert torch.equal(computed.double(), outputs_at(x, weight, at, groups))


MEMORY_FORMATS = pytest.mark.parametrize(
    "layout", (torch.contiguous_format, torch.channels_last), ids=("contiguous", "channels last")
)


@MEMORY_FORMATS
@pytest.mark.parametrize("groups", (1, 8, 32))
@pytest.mark.parametrize("package", PACKAGES)
def test_conv2d(package, groups, layout):
    x = integers(*IMAGES).contiguous(memory_format=layout)
    weight = integers(32, 32 // groups, 3, 3)
    out = poisoned(IMAGES, x.dtype, memory_format=layout)
    same_outputs(called(package, "conv2d", x, weight, padding=1, groups=groups, out=out), x, weight, groups)


@pytest.mark.parametrize("design", ("register_blocked", "depthwise", "grouped"))
@pytest.mark.parametrize("package", PACKAGES)
def test_designs_of_conv2d(package, design):
    x, weight = integers(128, 4, 2100, 2048), integers(4, 4, 3, 3)
    out = poisoned(x.shape, x.dtype)
    same_outputs(called(package, "conv2d", x, weight, padding=1, out=out, design=design), x, weight)


@MEMORY_FORMATS
@pytest.mark.parametrize("package", PACKAGES)
def test_conv2d_of_one_tap(package, layout):
    x, weight = integers(*IMAGES).contiguous(memory_format=layout), integers(32, 32, 1, 1)
    out = called(package, "conv2d", x, weight, out=poisoned(IMAGES, x.dtype, memory_format=layout))
    same_outputs(out, x, torch.nn.functional.pad(weight, (1, 1, 1, 1)))


@MEMORY_FORMATS
@pytest.mark.parametrize("package", PACKAGES)
def test_conv2d_input(package, layout):
    grad, weight = integers(*IMAGES).contiguous(memory_format=layout), integers(32, 32, 3, 3)
    out = poisoned(IMAGES, grad.dtype, memory_format=layout)
    called(package, "conv2d_input", IMAGES, weight, grad, padding=1, out=out)
    same_outputs(out, grad, weight.flip(2, 3).transpose(0, 1))


@MEMORY_FORMATS
@pytest.mark.parametrize("package", PACKAGES)
def test_conv2d_weight_of_large_images(package, layout):
    x, grad = (integers(*IMAGES, dtype=torch.float32).contiguous(memory_format=layout) for _ in range(2))
    out = called(package, "conv2d_weight", x, (32, 32, 3, 3), grad, padding=1, out=poisoned((32, 32, 3, 3), x.dtype))
    h, w = x.shape[2:]
    for k, c in ((0, 0), (31, 31), (17, 5)):
        around = torch.nn.functional.pad(x[:, c].double(), (1, 1, 1, 1))
        exact = [(around[:, r : r + h, s : s + w] * grad[:, k]).sum() for r in range(3) for s in range(3)]
        assert torch.equal(out[k, c].double().flatten(), torch.stack(exact))


@pytest.mark.parametrize("package", PACKAGES)
def test_conv2d_weight_with_a_large_result(package):
    x, grad = integers(2, SQUARE, 3, 3), integers(2, SQUARE, 3, 3)
    out = called(package, "conv2d_weight", x, (SQUARE, SQUARE, 1, 1), grad, out=poisoned((SQUARE, SQUARE, 1, 1), x.dtype))
    same_product(out[:, :, 0, 0], grad.movedim(1, 0).flatten(1), x.movedim(1, 0).flatten(1).mT)


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize(
    "shape, layout",
    [
        ((64, 3, 3400, 3400), torch.contiguous_format),
        ((3, 1, 2**15, 2**15), torch.contiguous_format),
        ((1, 2**21 + 3, 32, 33), torch.contiguous_format),
        (IMAGES, torch.channels_last),
    ],
)
def test_conv2d_bias(package, shape, layout):
    grad = integers(*shape, dtype=torch.float32).contiguous(memory_format=layout)
    out = called(package, "conv2d_bias", grad, out=poisoned(shape[1], grad.dtype))
    assert torch.equal(out.double(), sum(image.sum((1, 2), dtype=torch.float64) for image in grad))


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("columns", (2**15, 2**15 - 1, 2**14))
def test_conv2d_bias_of_one_element_expanded(package, columns):
    """As sum().backward() has it: more positions than 2^31, or a few less, or more elements alone."""
    grad = torch.ones((), device=DEVICE).expand(2, 4, 2**15, columns)
    out = called(package, "conv2d_bias", grad, out=poisoned(4, grad.dtype))
    torch.testing.assert_close(out, torch.full_like(out, 2.0**16 * columns), rtol=1e-6, atol=0)
