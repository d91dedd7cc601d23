"""packed: the matrix with zeros below it, in columns that begin at lines of L2."""

import importlib

import pytest
import torch

from tests.harness import DEVICES
from tritonkernels import backend


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (1, 1), (16, 64), (63, 65), (64, 64), (65, 130), (129, 3)])
@pytest.mark.parametrize("layout", ["row", "col", "every other", "broadcast", "reversed roles"])
def test_a_packed_matrix_is_the_matrix_in_whole_columns(device, shape, layout):
    backend.name()  # before the kernels are decorated
    packed = importlib.import_module("tritonkernels.language.packed").packed
    m, n = shape
    matrix = torch.randn(2 * m + 3, 2 * n + 3, device=device)
    matrix = {
        "row": lambda: matrix[:m, :n],
        "col": lambda: matrix.t().contiguous().t()[:m, :n],
        "every other": lambda: matrix[:, 1::2][: 2 * m : 2, :n],
        "broadcast": lambda: matrix[:1, :n].expand(m, n),
        "reversed roles": lambda: matrix[: m + 1, : n + 1][1:, 1:],
    }[layout]()
    launches, copy = packed(matrix)
    copy.fill_(float("nan"))
    for launch in launches:
        launch.run()
    assert torch.equal(copy[:m], matrix)
    multiple = 32 if m * 4 >= 128 else 16
    assert copy.shape == (-(-m // multiple) * multiple, n) and not copy[m:].any()
    if copy.numel():
        assert copy.stride(0) == 1 and copy.stride(1) % 16 == 0 and copy.data_ptr() % 16 == 0
