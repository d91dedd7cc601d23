"""CUDA's designs that may pack operands: their kernels read 128 bits at a time only if both lie by rows (launches.vector)."""

from tritonkernels.operations.gemm.packing import in_rows, may_pack

from ...common.align import along_k
from ...launch import config_of
from .launches import in_vectors


def may_pack_rows(design):
    return may_pack(design, _packs, lambda config, numbers: config_of(**numbers), _rows_of)


def _packs(problem):
    columns = {"a": problem.k, "b": problem.n}
    return tuple(name for name, n in columns.items() if not in_rows(getattr(problem, f"{name}_layout"), n))


def _rows_of(matrix):
    if in_vectors(matrix):
        return [], matrix
    rows, copies = along_k(matrix[None], 1)
    return copies, rows[0]
