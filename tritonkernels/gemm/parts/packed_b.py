"""Triton's designs that may pack B: slices of A are transposed on their way to shared memory well enough."""

from ...config import config_of
from ...language.packed import packed
from ...operations.gemm.packing import in_rows, may_pack


def may_pack_b(design):
    return may_pack(design, _packs, _made, _rows_of)


def _packs(problem):
    return () if in_rows(problem.b_layout, problem.n) else ("b",)


def _made(config, numbers):
    return config_of(numbers, config.num_warps, config.num_stages, config.maxnreg)


def _rows_of(b):
    copies, columns = packed(b.t())
    return copies, columns.t()
