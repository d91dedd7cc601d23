"""The digest of an operation's kernels changes with every source that they are made from, and with no other."""

import pytest

from perf.measure import kernels

SOURCES = {
    "tritonkernels/language/tiles.py": "",
    "tritonkernels/language/packed.py": "",
    "cuda_reference/common/tma.cuh": "",
    "tritonkernels/gemm/__init__.py": "from ..operations.gemm.prepare import prepare\n",
    "tritonkernels/operations/gemm/prepare.py": "",
    "tritonkernels/gemm/tiled.py": "from ..language.tiles import span\nfrom ..launch import TritonLaunch\n",
    "tritonkernels/gemm/stream_k.py": "from ..language import packed\n",
    "cuda_reference/gemm/parts/tile.cuh": '#include "../../common/tma.cuh"\n',
    "tritonkernels/gemv/naive.py": "",
    "tritonkernels/operations/matmul/as_gemv.py": "from ...gemv import GEMV\n",
    "tritonkernels/matmul/split_k.py": "from ..gemm.tiled import (\n    configs,\n)\n",
    "cuda_reference/matmul/tiled.cuh": '#include "../gemm/parts/tile.cuh"\n',
    "cuda_reference/conv2d/naive.py": "from ..matmul.parts.source import ADD\n",
    "cuda_reference/matmul/parts/source.py": 'ADD = Source("matmul/tiled.cuh")\n',
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

    def run(path, text="changed = 1\n"):
        before = kernels.digests.__wrapped__()
        write(path, SOURCES.get(path, "") + text)
        after = kernels.digests.__wrapped__()
        return {op for op in after if after[op] != before[op]}

    return run


@pytest.mark.parametrize(
    "path, ops",
    [
        ("tritonkernels/language/tiles.py", {"gemm", "matmul"}),
        ("tritonkernels/language/packed.py", {"gemm"}),
        ("cuda_reference/common/tma.cuh", {"gemm", "matmul", "conv2d"}),
        ("cuda_reference/matmul/tiled.cuh", {"matmul", "conv2d"}),
        ("tritonkernels/gemm/__init__.py", {"gemm"}),
        ("tritonkernels/gemm/parts/new.py", {"gemm"}),
        ("tritonkernels/gemv/naive.py", {"gemv"}),
        ("tritonkernels/launch.py", set()),
        ("tritonkernels/gemm/__pycache__/tiled.pyc", set()),
    ],
)
def test_it_changes_with_what_the_operation_is_made_of(changed, path, ops):
    assert changed(path) == ops


def test_of_this_package():
    """A file of gemv's is not one of matmul, which has gemv's designs by calling them."""
    files = {op: {str(path.relative_to(kernels.ROOT)) for path in kernels.reached(kernels.own(op))} for op in kernels.OPS}
    with_file = {
        file: {op for op in files if file in files[op]}
        for file in (
            "tritonkernels/gemv/vectorized.py",
            "cuda_reference/gemv/vectorized.cuh",
            "tritonkernels/language/gluon_tile.py",
            "cuda_reference/matmul/parts/warp_tile.cuh",
            "tritonkernels/language/descriptor.py",
            "cuda_reference/common/mma_sync.cuh",
        )
    }
    assert list(with_file.values()) == [
        *({"gemv"}, {"gemv"}, {"gemm", "matmul", "conv2d", "conv2d_weight"}, {"matmul", "conv2d", "conv2d_weight"}),
        *({"matmul", "conv2d"}, {"matmul", "conv2d", "conv2d_weight"}),
    ]


def test_a_record_of_another_operation_s_design_is_as_old_as_that_one_s_kernels():
    def is_current(design, **old):
        return kernels.is_current({"op": "matmul", "design": design, "environment": {"kernels": kernels.digests() | old}})

    assert is_current("gemv.naive") and is_current(None) and is_current("tiled", gemv="old")
    assert not is_current("gemv.naive", gemv="old") and not is_current("tiled", matmul="old")


def test_what_does_not_run_is_free_to_change(changed):
    """Comments, and where what a file uses is: a file that moved is the same."""
    for path in ("tritonkernels/gemm/tiled.py", "tritonkernels/language/tiles.py"):
        assert not changed(path, "# a comment\nfrom ..moved import span\n")
    assert not changed("cuda_reference/gemm/parts/tile.cuh", '// a comment\n#include "../moved.cuh"\n')
