"""The digest of an operation's kernels changes with every source that they are made from, and with no other."""

import pytest

from perf.measure import kernels

SOURCES = {
    "tritonkernels/language/tiles.py": "",
    "cuda_reference/common/tma.cuh": "",
    "tritonkernels/gemm/tiled.py": "from ..language.tiles import span\n",
    "cuda_reference/gemm/tiled.cuh": "",
    "tritonkernels/matmul/__init__.py": "from ..gemm import GEMM\n",
    "tritonkernels/conv2d/__init__.py": "from ..matmul import MATMUL\n",
    "cuda_reference/conv2d_weight/naive.cuh": '#include "../conv2d/parts/common.cuh"\n',
    "tritonkernels/launch.py": "",
}


@pytest.fixture
def changed(tmp_path, monkeypatch):
    """changed(path): the operations whose digest differs once the file has."""
    monkeypatch.setattr(kernels, "ROOT", tmp_path)

    def write(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    for path, text in SOURCES.items():
        write(path, text)

    def run(path):
        before = kernels.digests.__wrapped__()
        write(path, SOURCES.get(path, "") + "# changed\n")
        after = kernels.digests.__wrapped__()
        return {op for op in after if after[op] != before[op]}

    return run


EVERY = {"gemm", "gemv", "matmul", "conv2d", "conv2d_input", "conv2d_weight", "conv2d_bias"}


@pytest.mark.parametrize(
    "path, ops",
    [
        ("tritonkernels/language/tiles.py", EVERY),
        ("cuda_reference/common/tma.cuh", EVERY),
        ("cuda_reference/gemm/tiled.cuh", {"gemm", "matmul", "conv2d", "conv2d_weight"}),
        ("cuda_reference/gemm/parts/new.cuh", {"gemm", "matmul", "conv2d", "conv2d_weight"}),
        ("tritonkernels/conv2d/__init__.py", {"conv2d", "conv2d_weight"}),
        ("cuda_reference/conv2d_weight/naive.cuh", {"conv2d_weight"}),
        ("tritonkernels/launch.py", set()),
        ("tritonkernels/gemm/__pycache__/tiled.pyc", set()),
    ],
)
def test_it_changes_with_what_the_operation_uses(changed, path, ops):
    assert changed(path) == ops


def test_of_this_package():
    assert kernels._reached("matmul") == {"matmul", "gemm", "gemv"}
    assert kernels._reached("gemm") == {"gemm"}
    assert kernels._reached("gemv") == {"gemv", "gemm"}  # arguments are checked alike
    assert kernels._reached("conv2d") >= {"conv2d", "matmul"}
    assert kernels._reached("conv2d_input") >= {"conv2d_input", "conv2d", "matmul"}
