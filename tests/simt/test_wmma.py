"""WMMA of the CPU emulation: every type and shape in every layout, exact where the arithmetic is."""

import itertools
from pathlib import Path

import pytest
import torch

from cuda_reference.build import load

SOURCE = Path(__file__).parent / "kernels/wmma.cuh"
SHAPES = ((16, 16, 16), (32, 8, 16), (8, 32, 16))
TORCH = {
    "half": torch.float16, "tile::bf16": torch.bfloat16, "signed char": torch.int8, "unsigned char": torch.uint8,
    "tile::tf32": torch.float32, "float": torch.float32, "int": torch.int32, "double": torch.float64,
}  # fmt: skip
CASES = [
    *((shape, *types) for shape in SHAPES for types in (("half", "float"), ("half", "half"), ("tile::bf16", "float"))),
    *((shape, kind, "int") for shape in SHAPES for kind in ("signed char", "unsigned char")),
    ((16, 16, 8), "tile::tf32", "float"),
    ((8, 8, 4), "double", "double"),
]


def expression(shape, kind, sum_type):
    m, n, k = shape
    return f"tile::multiply<{m}, {n}, {k}, {kind}, {sum_type}, {'float' if 'tf32' in kind else kind}>"


@pytest.fixture(scope="module")
def kernels():
    return load(SOURCE, [*(expression(*case) for case in CASES), "tile::wrong"], "simt")


def aligned(rows, cols, dtype, by_rows):
    """A (rows, cols) tensor aligned to 32 bytes, in its layout with a padded leading dimension; and that dimension."""
    outer, inner = (rows, cols) if by_rows else (cols, rows)
    ldm = max(inner, 16) + 64
    room = torch.zeros(outer * ldm + 32, dtype=dtype)
    first = -room.data_ptr() % 32 // room.element_size()
    view = room[first : first + outer * ldm].view(outer, ldm)[:, :inner]
    return (view if by_rows else view.T), ldm


def fill(tensor):
    """Small integers, so that sums are exact in every type."""
    low = 0 if tensor.dtype == torch.uint8 else -8
    tensor.copy_(torch.randint(low, 9, tensor.shape))
    return tensor


def multiply(kernels, case, layouts, make=fill, satf=False, c=None):
    (m, n, k), kind, sum_type = case
    (a, lda), (b, ldb) = aligned(m, k, TORCH[kind], layouts[0]), aligned(k, n, TORCH[kind], layouts[1])
    (c_, ldc), (d, _) = (aligned(m, n, TORCH[sum_type], layouts[2]) for _ in range(2))
    make(a), make(b), fill(c_) if c is None else c_.fill_(c)
    operands = (
        a.data_ptr(),
        lda,
        layouts[0],
        b.data_ptr(),
        ldb,
        layouts[1],
        c_.data_ptr(),
        d.data_ptr(),
        ldc,
        layouts[2],
    )
    kernels[expression(*case)]((1, 1, 1), (32, 1, 1), 0, 0, *operands, satf)
    return a, b, c_, d


@pytest.mark.parametrize("case", CASES, ids=lambda case: expression(*case))
def test_every_type_shape_and_layout(kernels, case):
    for layouts in itertools.product((True, False), repeat=3):
        a, b, c, d = multiply(kernels, case, layouts)
        assert torch.equal(d.double(), a.double() @ b.double() + c.double())


def test_products_are_exact_and_sums_are_float(kernels):
    for case in (((16, 16, 16), "half", "float"), ((16, 16, 16), "tile::bf16", "float")):
        a, b, c, d = multiply(kernels, case, (True, True, True), make=lambda t: t.copy_(torch.randn(t.shape)))
        exact = a.double() @ b.double() + c.double()
        bound = 17 * 2**-24 * (a.double().abs() @ b.double().abs() + c.double().abs())
        assert ((d - exact).abs() <= bound).all() and not torch.equal(d, exact.to(d.dtype).half().float())


def test_tf32_drops_the_low_bits(kernels):
    a, b, c, d = multiply(
        kernels, ((16, 16, 8), "tile::tf32", "float"), (True, True, True), make=lambda t: t.copy_(torch.randn(t.shape))
    )

    def rounded(x):  # to nearest, ties away: the kernel applies __float_to_tf32
        return ((x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32).double()

    exact = rounded(a) @ rounded(b) + c.double()
    assert (d - exact).abs().max() < 1e-5 < (d - (a.double() @ b.double() + c.double())).abs().max()


def test_saturation(kernels):
    case = ((16, 16, 16), "signed char", "int")
    top = 2**31 - 1
    *_, d = multiply(kernels, case, (True, True, True), make=lambda t: t.fill_(1), satf=True, c=top - 3)
    assert (d == top).all()
    *_, d = multiply(kernels, case, (True, True, True), make=lambda t: t.fill_(1), c=top - 3)
    assert (d == -(2**31) + 12).all(), "without saturation it wraps"
    *_, d = multiply(kernels, ((16, 16, 16), "half", "half"), (True, True, True), make=lambda t: t.fill_(200), satf=True)
    assert (d == 65504).all()


@pytest.mark.parametrize(
    ("offset", "ldm", "text"),
    [(8, 16, "not aligned to 32 bytes"), (0, 20, "ldm 20 of 2-byte elements is not a multiple of 16 bytes")],
)
def test_alignment(kernels, offset, ldm, text):
    case = ((16, 16, 16), "half", "float")
    a, _ = aligned(32, 32, torch.float16, True)
    with pytest.raises(RuntimeError, match=text):
        operands = a.data_ptr() + 2 * offset, ldm, True, a.data_ptr(), 16, True, 0, 0, 16, True
        kernels[expression(*case)]((1, 1, 1), (32, 1, 1), 0, 0, *operands, False)


@pytest.mark.parametrize(
    ("which", "threads", "text"),
    [(0, 32, "31 threads wait at load_matrix_sync"), (1, 32, "different WMMA tiles"), (2, 16, "needs all 32 lanes")],
)
def test_the_whole_warp_must_come_to_one_tile(kernels, which, threads, text):
    a, _ = aligned(64, 32, torch.float16, True)
    with pytest.raises(RuntimeError, match=text):
        kernels["tile::wrong"]((1, 1, 1), (threads, 1, 1), 0, 0, a.data_ptr(), which)
