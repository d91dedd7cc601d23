"""TMA stores whole chunks of 16 bytes, so it must write a result only if rows are multiples of them.

The interpreter and the emulation store whole chunks too, so this needs no GPU.
"""

import pytest
import torch

import cuda_reference.launch
import tritonkernels.launch
from tests.harness import DEVICES, available_on, prepare, random, sentinel
from tritonkernels.errors import UnsupportedError
from tritonkernels.target import Target

PACKAGES = {"tritonkernels": tritonkernels.launch.LIBRARY, "cuda_reference": cuda_reference.launch.LIBRARY}
COLUMNS = {torch.float16: (1, 57, 60, 64), torch.float32: (1, 58, 60)}  # only the last of each are whole chunks
WRITERS = [(package, "persistent") for package in PACKAGES]
GLUON = "tritonkernels", "warp_specialized"  # which only a GPU runs
MARGIN = 16  # elements before the rows, and at least as many after them


def by_tma(launches):
    """Whether the last of the launches has TMA write the result."""
    *_, product = launches
    if isinstance(product, tritonkernels.launch.TritonLaunch):
        return product.values["out_boxes"] is not None
    return product.expression.endswith(", true>")


def in_a_buffer(shape, dtype, device):
    """(buffer, out, the buffer outside of out). Rows of the buffer begin and end at 16 bytes; rows of out only begin there."""
    *outer, columns = shape
    buffer = torch.full((*outer, MARGIN + 96), sentinel(dtype), dtype=dtype, device=device)
    return buffer, buffer[..., MARGIN : MARGIN + columns], (buffer[..., :MARGIN], buffer[..., MARGIN + columns :])


def check(library, op, design, out, others, *args, **kwargs):
    call = prepare(op, *args, out=out, **kwargs)
    try:
        library.run(call, design)
    except UnsupportedError as error:
        pytest.skip(str(error))
    assert library.judge(call, design, None, *args, **kwargs).ok
    assert all(torch.isnan(other).all() for other in others), "memory outside of out was written"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("rows", [(20,), (1,), (2, 5)], ids=["rows", "one row", "batch"])
@pytest.mark.parametrize("dtype, columns", [(dtype, n) for dtype, every in COLUMNS.items() for n in every])
@pytest.mark.parametrize("package, design", [*WRITERS, pytest.param(*GLUON, marks=pytest.mark.gpu)])
def test_products_into_a_part_of_a_buffer(package, design, dtype, columns, rows, device):
    library = PACKAGES[package]
    available_on(library, device)
    a, b = (random(*shape, dtype=torch.float16, device=device) for shape in ((*rows, 32), (*rows[:-1], 32, columns)))
    _, out, others = in_a_buffer((*rows, columns), dtype, device)
    check(library, "matmul", design, out, others, a, b, out_dtype=dtype)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("inside", [True, False], ids=["channels last", "channels first"])
@pytest.mark.parametrize("columns", [57, 64])
@pytest.mark.parametrize("package", PACKAGES)
def test_convolutions_into_a_part_of_a_buffer(package, columns, inside, device):
    library = PACKAGES[package]
    available_on(library, device)
    image = random(2, 32, 1, columns, dtype=torch.float16, device=device)
    weight = random(columns, 32, 1, 1, dtype=torch.float16, device=device)
    _, out, others = in_a_buffer((2, 1, columns, columns) if inside else (2, columns, 1, columns), torch.float16, device)
    if inside:
        image, out = image.contiguous(memory_format=torch.channels_last), out.permute(0, 3, 1, 2)
    check(library, "conv2d", "matmul.persistent", out, others, image, weight)


@pytest.mark.parametrize("dtype, columns", [(dtype, n) for dtype, every in COLUMNS.items() for n in every])
@pytest.mark.parametrize("package, design", [*WRITERS, GLUON])
def test_where_tma_writes(package, design, dtype, columns):
    """TMA does write some results, so the tests above can fail."""
    library = PACKAGES[package]
    (chosen,) = (d for d in library.designs("matmul") if d.name == design)
    a, b = (random(*shape, dtype=torch.float16) for shape in ((20, 32), (32, columns)))
    _, out, _ = in_a_buffer((20, columns), dtype, "cpu")
    call = prepare("matmul", a, b, out=out, out_dtype=dtype)
    config = next(iter(chosen.configs(call.problem, Target.named("h200"))))
    assert by_tma(chosen.launches(call.problem, config, *call.parts[0])) == (columns * dtype.itemsize % 16 == 0)
