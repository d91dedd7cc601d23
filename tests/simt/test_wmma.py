"""WMMA of the CPU emulation: every type and shape in every layout, exact where the arithmetic is."""

import itertools
import subprocess
from pathlib import Path

import pytest
import torch

from cuda_reference import toolchain
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


PACKED = {"tile::u4": 32, "tile::s4": 32, "tile::b1": 128}  # K


@pytest.fixture(scope="module")
def kernels():
    packed = [f"tile::{name}<{k}, {kind}>" for kind, k in PACKED.items() for name in ("multiply_packed", "fill_packed")]
    return load(SOURCE, [*(expression(*case) for case in CASES), *packed, "tile::wrong"], "simt")


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


@pytest.mark.parametrize("saturate", [True, False])
def test_saturated_half_sums(saturate):
    """mma_sync does not saturate them, so the design's kernel does: Inf -> the largest half, NaN -> 0, after every step."""
    expression = (
        f"matmul::naive<matmul::Half, half, 16, 16, matmul::row_major, matmul::row_major, half, {str(saturate).lower()}>"
    )
    kernel = load("matmul/naive.cuh", [expression], "simt")[expression]
    a, b = torch.zeros(16, 32).half(), torch.ones(32, 16).half()
    a[0, 0], a[1, 0], a[2, 0], a[3, :16], a[3, 16:] = torch.inf, -torch.inf, torch.nan, 5000, -1000
    out = torch.empty(16, 16).half()
    strides = (0, 32, 1, 0, 16, 1, 0, 0, 0, 0, 16, 1, 0)
    pointers = a.data_ptr(), b.data_ptr(), 0, 0, out.data_ptr()
    kernel((1, 1, 1), (32, 1, 1), 0, 0, *pointers, 16, 16, 32, 1.0, 0.0, 0, strides)
    expected = torch.zeros(16, 16).half()
    rows = (65504, -65504, 0, 65504 - 16000) if saturate else (torch.inf, -torch.inf, torch.nan, torch.inf)
    for i, value in enumerate(rows):
        expected[i] = value
    assert torch.equal(out.nan_to_num(nan=7.0), expected.nan_to_num(nan=7.0))


def multiply_packed(kernels, kind, a, b, c, by_rows=True, flag=False):
    """The product of a (8, K) and b (K, 8), packed in Python integers: element i of a word is in its bits from i * bits on."""
    k = PACKED[kind]
    bits = 128 // k

    def words(rows):
        (to, _) = aligned(8, 4, torch.int32, True)
        for i, row in enumerate(rows.tolist()):
            whole = sum((x & (2**bits - 1)) << bits * j for j, x in enumerate(row))
            to[i] = torch.tensor([(whole >> 32 * w & 0xFFFFFFFF) for w in range(4)]).to(torch.int32)
        return to

    packed_a, packed_b = words(a), words(b.T)
    (c_, ldc), (d, _) = (aligned(8, 8, torch.int32, by_rows) for _ in range(2))
    c_.copy_(c)
    operands = (packed_a.data_ptr(), packed_a.stride(0) * 32 // bits, packed_b.data_ptr(), packed_b.stride(0) * 32 // bits)
    kernels[f"tile::multiply_packed<{k}, {kind}>"](
        (1, 1, 1), (32, 1, 1), 0, 0, *operands, c_.data_ptr(), d.data_ptr(), ldc, by_rows, flag
    )
    return d


@pytest.mark.parametrize("by_rows", [True, False])
@pytest.mark.parametrize("kind, low, high", [("tile::u4", 0, 16), ("tile::s4", -8, 8)])
def test_four_bits(kernels, kind, low, high, by_rows):
    a, b, c = torch.randint(low, high, (8, 32)), torch.randint(low, high, (32, 8)), torch.randint(-99, 99, (8, 8))
    a[0], b[:, 0] = low, low  # of s4 the asymmetric end, -8 * -8
    assert torch.equal(multiply_packed(kernels, kind, a, b, c, by_rows), (a @ b + c).int())
    ones = torch.ones_like(a)
    top = torch.full_like(c, 2**31 - 1)
    assert (multiply_packed(kernels, kind, ones, ones.T, top, flag=True) == 2**31 - 1).all()
    assert (multiply_packed(kernels, kind, ones, ones.T, top) == -(2**31) + 31).all()


@pytest.mark.parametrize("by_rows", [True, False])
def test_one_bit(kernels, by_rows):
    a, b, c = torch.randint(0, 2, (8, 128)), torch.randint(0, 2, (128, 8)), torch.randint(-99, 99, (8, 8))
    assert torch.equal(multiply_packed(kernels, "tile::b1", a, b, c, by_rows, flag=True), (a @ b + c).int())
    differ = (a[:, :, None] != b[None]).sum(1)
    assert torch.equal(multiply_packed(kernels, "tile::b1", a, b, c, by_rows), (differ + c).int())


@pytest.mark.parametrize(
    "kind, value, word", [("tile::u4", 0x25, 0x55555555), ("tile::s4", 0x25, 0x55555555), ("tile::b1", 3, -1)]
)
def test_a_fill_packs(kernels, kind, value, word):
    out = torch.zeros(32, dtype=torch.int32)
    kernels[f"tile::fill_packed<{PACKED[kind]}, {kind}>"]((1, 1, 1), (32, 1, 1), 0, 0, value, out.data_ptr())
    assert (out == word).all()


@pytest.mark.parametrize(
    ("offset", "ldm", "text"),
    [(8, 16, "not aligned to 32 bytes"), (0, 20, "ldm 20 of 16-bit elements is not a multiple of 16 bytes")],
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
def test_all_lanes_must_use_one_tile(kernels, which, threads, text):
    a, _ = aligned(64, 32, torch.float16, True)
    with pytest.raises(RuntimeError, match=text):
        kernels["tile::wrong"]((1, 1, 1), (threads, 1, 1), 0, 0, a.data_ptr(), which)


@pytest.mark.parametrize("kind, k, bad", [("tile::u4", 32, 40), ("tile::b1", 128, 192)])
def test_alignment_below_a_byte(kernels, kind, k, bad):
    a, _ = aligned(32, 32, torch.int32, True)
    with pytest.raises(RuntimeError, match=f"ldm {bad} of {128 // k}-bit elements is not a multiple of 16 bytes"):
        operands = a.data_ptr(), bad, a.data_ptr(), k, 0, 0, 8, True, False
        kernels[f"tile::multiply_packed<{k}, {kind}>"]((1, 1, 1), (32, 1, 1), 0, 0, *operands)


ILLEGAL = {
    "half in 16x16x8": ("fragment<matrix_a, 16, 16, 8, half, row_major>", "no such fragment"),
    "double sums of half's shape": ("fragment<accumulator, 16, 16, 16, double>", "no such fragment"),
    "u4 in b1's shape": ("fragment<matrix_a, 8, 8, 128, experimental::precision::u4, row_major>", "no such fragment"),
    "tf32 as an accumulator": ("fragment<accumulator, 16, 16, 8, precision::tf32>", "no such fragment"),
    "A of u4 by columns": ("fragment<matrix_a, 8, 8, 32, experimental::precision::u4, col_major>", "below a byte only"),
    "B of b1 by rows": ("fragment<matrix_b, 8, 8, 128, experimental::precision::b1, row_major>", "below a byte only"),
    "a layout of an accumulator": ("fragment<accumulator, 16, 16, 16, float, row_major>", "gets its layout from"),
}


@pytest.mark.parametrize("name", ILLEGAL)
def test_what_does_not_exist_does_not_compile(name, tmp_path):
    kind, text = ILLEGAL[name]
    refuse(tmp_path, f"{kind} x; (void)x;", text)


PRODUCTS = {
    "bf16 into half": (16, "__nv_bfloat16", "half", "mma_sync(d, a, b, d);", "only half accumulates in half"),
    "half into int": (16, "half", "int", "mma_sync(d, a, b, d);", "and only they, accumulate in int"),
    "satf of half": (16, "half", "half", "mma_sync(d, a, b, d, true);", "no matching function"),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_that_do_not_exist_do_not_compile(name, tmp_path):
    k, kind, sum_type, call, text = PRODUCTS[name]
    factors = "".join(f"fragment<matrix_{x}, 16, 16, {k}, {kind}, row_major> {x}; " for x in "ab")
    refuse(tmp_path, f"{factors} fragment<accumulator, 16, 16, {k}, {sum_type}> d; {call}", text)


def refuse(folder, statements, text):
    unit = folder / "unit.cpp"
    unit.write_text(f"#include <mma.h>\nusing namespace nvcuda::wmma;\nvoid kernel() {{ {statements} }}\n")
    flags, _ = toolchain.flags("simt")
    run = subprocess.run(["g++", *flags, "-fsyntax-only", unit], capture_output=True, text=True)
    assert run.returncode != 0 and text in run.stderr, run.stderr
