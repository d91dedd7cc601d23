"""ldmatrix, stmatrix and mma.sync of the CPU emulation: every lane's registers as the PTX ISA says, element by element."""

from pathlib import Path

import pytest
import torch

from cuda_reference.build import load

SOURCE = Path(__file__).parent / "kernels/mma_sync.cuh"
LOADS = [(count, transposed) for count in (1, 2, 4) for transposed in (False, True)]
# (T, type of the sums in registers, how many) -> (torch's T, torch's sums, elements along k)
PRODUCTS = {
    ("__half", "float", 4): (torch.float16, torch.float32, 16),
    ("__half", "__half2", 2): (torch.float16, torch.float16, 16),
    ("__nv_bfloat16", "float", 4): (torch.bfloat16, torch.float32, 16),
    ("float", "float", 4): (torch.float32, torch.float32, 8),
    ("signed char", "int", 4): (torch.int8, torch.int32, 32),
    ("unsigned char", "int", 4): (torch.uint8, torch.int32, 32),
}
WARP = (1, 1, 1), (32, 1, 1), 0, 0
LONELY = ("ldmatrix", "stmatrix", "mma.sync")


def load_name(count, transposed):
    return f"instruction::load<{count}, {str(transposed).lower()}>"


def product_name(product):
    return f"instruction::multiply<{', '.join(map(str, product))}>"


@pytest.fixture(scope="module")
def kernels():
    names = [load_name(*case) for case in LOADS] + [product_name(product) for product in PRODUCTS]
    return load(SOURCE, [*names, "instruction::store", "instruction::lonely", "instruction::round"], "simt")


@pytest.mark.parametrize("count, transposed", LOADS)
def test_ldmatrix(kernels, count, transposed):
    rows = torch.arange(64 * 8, dtype=torch.int16)
    place = torch.randperm(64)[:32].to(torch.int32) * 8
    words = torch.zeros(32, count, 2, dtype=torch.int16)
    kernels[load_name(count, transposed)](*WARP, rows.data_ptr(), place.data_ptr(), words.data_ptr())
    for lane in range(32):
        for matrix in range(count):
            for half in range(2):  # row lane / 4, columns 2 (lane % 4) and the next
                row, col = lane // 4, lane % 4 * 2 + half
                row, col = (col, row) if transposed else (row, col)
                assert words[lane, matrix, half] == place[8 * matrix + row] + col


def stored(kernels, place, barrier=True):
    """(what the lanes hold: 4 words of 2 elements each, 1 KB of memory that was all ones)."""
    words = torch.randint(0, 2**15, (32, 4, 2), dtype=torch.int16)
    memory = torch.zeros(512, dtype=torch.int16)
    arguments = words.data_ptr(), place.data_ptr(), memory.data_ptr(), 512, barrier
    kernels["instruction::store"]((1, 1, 1), (32, 1, 1), 1024, 0, *arguments)
    return words, memory


def test_stmatrix(kernels):
    place = torch.randperm(64)[:32].to(torch.int32) * 16
    words, memory = stored(kernels, place)
    expected = torch.full((64, 8), -1, dtype=torch.int16)
    for lane in range(32):
        for matrix in range(4):
            for half in range(2):  # row lane / 4, columns 2 (lane % 4) and the next
                expected[place[8 * matrix + lane // 4] // 16, lane % 4 * 2 + half] = words[lane, matrix, half]
    assert torch.equal(memory.view(64, 8), expected)


def test_what_stmatrix_wrote_needs_a_barrier(kernels):
    _, memory = stored(kernels, torch.arange(32, dtype=torch.int32) * 16, barrier=False)
    assert (memory[8:16] == -1).all()


@pytest.mark.parametrize("byte, text", [(40, "a row is not aligned to 16 bytes"), (2**20, "not an address of dynamic shared")])
def test_where_stmatrix_cannot_write(kernels, byte, text):
    place = torch.arange(32, dtype=torch.int32) * 16
    place[3] = byte
    with pytest.raises(RuntimeError, match=text):
        stored(kernels, place)


def a_element(lane, i, bits):
    """(row, col) of A's element a_i in a lane: the ISA's formulas for .f16 and .bf16, .tf32, and .s8 and .u8."""
    group, thread = lane >> 2, lane % 4
    if bits == 16:
        return (group if i in (0, 1, 4, 5) else group + 8), thread * 2 + (i & 1) + (8 if i >= 4 else 0)
    if bits == 32:
        return (group if i in (0, 2) else group + 8), (thread if i in (0, 1) else thread + 4)
    return (group if i < 4 or 8 <= i < 12 else group + 8), thread * 4 + (i & 3) + (16 if i >= 8 else 0)


def b_element(lane, i, bits):
    """The same of B's b_i."""
    group, thread = lane >> 2, lane % 4
    if bits == 16:
        return thread * 2 + (i & 1) + (8 if i >= 2 else 0), group
    if bits == 32:
        return (thread if i == 0 else thread + 4), group
    return thread * 4 + (i & 3) + (16 if i >= 4 else 0), group


def c_element(lane, i):
    """And of C's and D's c_i, in all of these shapes."""
    return (lane >> 2) + (0 if i < 2 else 8), lane % 4 * 2 + (i & 1)


def distribute(matrix, element, each):
    """What every lane holds of a matrix: (32, each)."""
    return torch.stack([torch.stack([matrix[element(lane, i)] for i in range(each)]) for lane in range(32)])


def run(kernels, product, a, b, c):
    _, _, k = PRODUCTS[product]
    bits = 8 * a.element_size()
    lanes_a = distribute(a, lambda lane, i: a_element(lane, i, bits), 16 * k // 32)
    lanes_b = distribute(b, lambda lane, i: b_element(lane, i, bits), 8 * k // 32)
    sums = distribute(c, c_element, 4)
    kernels[product_name(product)](*WARP, lanes_a.data_ptr(), lanes_b.data_ptr(), sums.data_ptr())
    result = torch.empty_like(c)
    for lane in range(32):
        for i in range(4):
            result[c_element(lane, i)] = sums[lane, i]
    return result


@pytest.mark.parametrize("product", PRODUCTS, ids=product_name)
def test_mma_sync(kernels, product):
    dtype, sums, k = PRODUCTS[product]
    low = 0 if dtype == torch.uint8 else -8
    a, b = torch.randint(low, 9, (16, k)).to(dtype), torch.randint(low, 9, (k, 8)).to(dtype)
    c = torch.randint(-50, 50, (16, 8)).to(sums)
    assert torch.equal(run(kernels, product, a, b, c).double(), a.double() @ b.double() + c.double())


def test_int_sums_wrap(kernels):
    a, b = torch.full((16, 32), 127, dtype=torch.int8), torch.full((32, 8), 127, dtype=torch.int8)
    d = run(kernels, ("signed char", "int", 4), a, b, torch.full((16, 8), 2**31 - 1, dtype=torch.int32))
    assert (d == -(2**31) - 1 + 32 * 127 * 127).all()


def test_half_sums_are_rounded_to_half(kernels):
    a, b = torch.ones(16, 16, dtype=torch.float16), torch.ones(16, 8, dtype=torch.float16)
    d = run(kernels, ("__half", "__half2", 2), a, b, torch.full((16, 8), 4096.0, dtype=torch.float16))
    assert (d == 4112).all()
    d = run(kernels, ("__half", "__half2", 2), a / 16, b, torch.full((16, 8), 4096.0, dtype=torch.float16))
    assert (d == 4096).all(), "4097 is no half"


def test_tf32_ignores_the_low_bits_and_rounding_comes_first(kernels):
    x = torch.tensor([1.0, 1 + 2**-11, 1 + 2**-10 - 2**-23, -1 - 2**-11, torch.inf, -torch.inf, torch.nan, 0.0] * 4)
    a = x[:8].nan_to_num(0, 0, 0).expand(16, 8).contiguous()
    d = run(kernels, ("float", "float", 4), a, torch.eye(8), torch.zeros(16, 8))
    assert d[0].tolist() == [1, 1, 1, -1, 0, 0, 0, 0]
    kernels["instruction::round"](*WARP, x.data_ptr())
    assert x[:4].tolist() == [1, 1 + 2**-10, 1 + 2**-10, -1 - 2**-10]
    assert x[4] == torch.inf and x[5] == -torch.inf and x[6].isnan() and x[7] == 0


def test_a_misaligned_row(kernels):
    rows, place = torch.zeros(64 * 8, dtype=torch.int16), torch.arange(32, dtype=torch.int32) * 8
    place[3] += 4
    with pytest.raises(RuntimeError, match="a row is not aligned to 16 bytes"):
        kernels[load_name(1, False)](*WARP, rows.data_ptr(), place.data_ptr(), torch.zeros(32).data_ptr())


@pytest.mark.parametrize("name", LONELY)
@pytest.mark.parametrize("threads, text", [(32, "31 threads wait at {}"), (16, "{} needs all 32 lanes")])
def test_the_whole_warp_must_come(kernels, name, threads, text):
    with pytest.raises(RuntimeError, match=text.format(name)):
        kernels["instruction::lonely"]((1, 1, 1), (threads, 1, 1), 16, 0, LONELY.index(name))
