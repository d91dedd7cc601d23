"""Triton's interpreter as we use it: it does what a GPU does, and reports the errors that a GPU has."""

import pytest
import torch

from tritonkernels import backend
from tritonkernels.errors import LaunchError
from tritonkernels.launch import TritonLaunch

pytestmark = pytest.mark.skipif(backend.name() != "interpreter", reason="about the interpreter")


@pytest.fixture(scope="module")
def launch():
    """launch(name, grid, *arguments) of a kernel below."""
    from tritonkernels.language.triton import tl, triton

    @triton.jit
    def store_box(desc, first, COLUMNS: tl.constexpr):
        desc.store([0, first], tl.full((4, COLUMNS), 1, tl.int8))

    @triton.jit
    def copy(x_ptr, out_ptr, first, last, BLOCK: tl.constexpr):
        i = first + tl.arange(0, BLOCK)
        tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < last, other=7))

    @triton.jit
    def raise_all(out_ptr, last, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.atomic_max(out_ptr + i, 5, mask=i < last)

    @triton.jit
    def swap(out_ptr, at):
        tl.atomic_cas(out_ptr + at, 0, 5)

    @triton.jit
    def divide(out_ptr, by, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out_ptr + i, 8 // (i * by) + (1 % (i * by)))

    @triton.jit
    def divide_once(out_ptr, by, REMAINDER: tl.constexpr):
        tl.store(out_ptr, 8 % by if REMAINDER else 8 // by)

    @triton.jit
    def copy_in_vectors(x_ptr, out_ptr, step, first, last, RUN: tl.constexpr, MULTIPLE: tl.constexpr, CONSTANT: tl.constexpr):
        i = tl.arange(0, 8)[:, None]
        offsets = tl.multiple_of(tl.max_contiguous(first + i * step, (RUN, 1)), (MULTIPLE, 1))
        mask = tl.max_constancy(i < last, (CONSTANT, 1))
        tl.store(out_ptr + i, tl.load(x_ptr + offsets, mask=mask, other=7))

    @triton.jit
    def multiply(x_ptr, out_ptr, PRECISION: tl.constexpr):
        places = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
        x = tl.load(x_ptr + places)
        tl.store(out_ptr + places, tl.dot(x, x, input_precision=PRECISION))

    @triton.jit
    def combine(out_ptr, rows, scalar, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
        i = tl.arange(0, 4)
        added = tl.arange(0, ROWS)[:, None] * 10 + i + scalar
        ratio = added.to(tl.float16) / (i + 1).to(tl.float16)  # a quotient of halves is of fp32
        wide = tl.where(tl.arange(0, ROWS)[:, None] < rows, added.to(tl.int64) << 32, 0)
        both = (wide >> 32) + tl.arange(0, COLUMNS)[None, :] * 0 + ((ratio * 4096).to(tl.int64) << 32)
        tl.store(out_ptr + tl.arange(0, ROWS)[:, None] * 4 + i, both)

    made = store_box, copy, raise_all, swap, divide, divide_once, copy_in_vectors, multiply, combine
    kernels = {k.__name__: k for k in made}
    copy.fn.__globals__.update(tl=tl)

    def launch(name, grid, *arguments):
        kernel = kernels[name]
        TritonLaunch(kernel, grid, triton.Config({}), *arguments).run()

    return launch


def ints(size):
    return torch.zeros(size, dtype=torch.int32)


@pytest.mark.parametrize(
    "columns, first, reached", [(1, 0, 16), (15, 0, 16), (16, 0, 16), (17, 0, 32), (17, 16, 32), (31, 0, 32)]
)
def test_a_tma_store_writes_whole_chunks(launch, columns, first, reached):
    from triton.tools.tensor_descriptor import TensorDescriptor

    buffer = torch.zeros(5, 64, dtype=torch.int8)
    out = buffer[:3, 16 : 16 + columns]
    launch("store_box", (1,), TensorDescriptor(out, out.shape, out.stride(), [4, 32]), first, 32)
    expected = torch.zeros_like(buffer)
    expected[:3, 16 + first : 16 + reached] = 1
    assert torch.equal(buffer, expected)


def test_a_tma_store_past_the_end_of_the_memory(launch):
    from triton.tools.tensor_descriptor import TensorDescriptor

    out = torch.zeros(1, 17, dtype=torch.int8)
    with pytest.raises(
        LaunchError, match=r"store_box failed .*a store outside of every tensor of the launch, in 15 of 32 lanes"
    ):
        launch("store_box", (1,), TensorDescriptor(out, out.shape, (32, 1), [4, 32]), 0, 32)


def test_accesses_stay_in_the_tensors(launch):
    x, out = ints(5), ints(8)
    launch("copy", (1,), x, out, 0, 5, 8)
    assert out.tolist() == [0] * 5 + [7] * 3, "masked elements may have any address"
    for first, last, what in ((0, 6, "load"), (-1, 5, "load"), (1, 5, "store")):
        with pytest.raises(LaunchError, match=f"copy failed .*a {what} outside of every tensor of the launch, in 1 of"):
            launch("copy", (1,), x, out, first, last, 8)


def test_atomics_stay_in_the_tensors(launch):
    out = ints(5)
    launch("raise_all", (1,), out, 5, 8)
    launch("swap", (1,), out, 4)
    assert out.tolist() == [5] * 5
    for name, *arguments in (("raise_all", 6, 8), ("swap", 5)):
        with pytest.raises(LaunchError, match=f"{name} failed .*an atomic outside of every tensor of the launch, in 1 of"):
            launch(name, (1,), out, *arguments)


def test_memory_of_an_earlier_launch_is_outside(launch):
    x, out = ints(8), ints(8)
    launch("copy", (1,), x, out, 0, 8, 8)
    with pytest.raises(LaunchError, match="a load outside"):
        launch("copy", (1,), out, out, (x.data_ptr() - out.data_ptr()) // 4, 2**31 - 1, 8)


def test_divisions_by_zero(launch):
    out = ints(4)
    launch("divide", (1,), out, 1, 4)  # the first lane's, which might be masked
    assert out[1:].tolist() == [8, 5, 3]
    with pytest.raises(LaunchError, match=r"divide failed .*an integer division by zero.*\n.*design=.*explain"):
        launch("divide", (1,), out, 0, 4)
    for remainder in (False, True):
        launch("divide_once", (1,), out, 3, remainder)
        with pytest.raises(LaunchError, match=r"divide_once failed .*an integer division by zero"):
            launch("divide_once", (1,), out, 0, remainder)


def test_promises_hold_for_what_is_accessed(launch):
    """Each by itself: runs that are not said to be aligned must be runs."""
    x, out = torch.arange(64, dtype=torch.int32), ints(8)
    for *numbers, run, multiple, constant in ((1, 4, 8, 8, 4, 4), (1, 3, 8, 4, 1, 8), (3, 0, 0, 4, 4, 8)):
        launch("copy_in_vectors", (1,), x, out, *numbers, run, multiple, constant)
    wrong = ((1, 2, 8, 4, 4), (1, 2, 1, 4, 4), (2, 0, 8, 2, 2), (2, 0, 8, 2, 1), (-1, 8, 8, 4, 4), (1, 4, 8, 4, 8))
    for *numbers, run, multiple in wrong:
        with pytest.raises(LaunchError, match=f"no runs of {run} at multiples of {multiple} along dimension 0"):
            launch("copy_in_vectors", (1,), x, out, *numbers, run, multiple, 1)
    with pytest.raises(LaunchError, match="not constant in runs of 4 along dimension 0"):
        launch("copy_in_vectors", (1,), x, out, 1, 0, 6, 1, 1, 4)


@pytest.mark.parametrize("precision, bits", [("ieee", 0), ("tf32", 13), (None, 13)])
def test_a_product_of_fp32_is_tf32_unless_it_asks_for_ieee(launch, precision, bits):
    x, out = 1 + torch.rand(16, 16), torch.empty(16, 16)
    launch("multiply", (1,), x, out, precision)
    cut = (x.view(torch.int32) >> bits << bits).view(torch.float32).double()
    torch.testing.assert_close(out.double(), cut @ cut, rtol=1e-6, atol=0)


def test_operands_of_other_shapes_and_types(launch):
    """Fewer dimensions and single elements are repeated, and small types become the larger one; other shapes are errors."""
    out = torch.zeros(8, 4, dtype=torch.int64)
    launch("combine", (1,), out, 6, 3, 8, 4)
    added = torch.arange(8)[:, None] * 10 + torch.arange(4) + 3
    kept = torch.where(torch.arange(8)[:, None] < 6, added, 0)
    ratio = (added.float() / torch.arange(1, 5) * 4096).long()
    assert torch.equal(out, kept + (ratio << 32))
    with pytest.raises(LaunchError, match="shape"):
        launch("combine", (1,), out, 6, 3, 8, 2)


@pytest.mark.parametrize("grid", [(0,), (3, 0)])
def test_an_empty_grid(launch, grid):
    with pytest.raises(LaunchError, match=r"swap failed .*the grid \(.*0.*\) is empty"):
        launch("swap", grid, ints(1), 0)
