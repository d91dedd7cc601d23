"""Broken CUDA kernels: results of wgmma whose rows TMA cannot write."""

from tests.mutants.mutant import of

MUTANTS = [
    *of(
        "cuda_reference/matmul/parts/warp_rows.cuh",
        "persistent_rows_cuda and any_length",
        ("rows beyond the last", "row >= rows_left || col >= columns_left", "col >= columns_left"),
        ("columns beyond the last", "if (col + e < columns_left) there", "there"),
        ("a word that begins inside", "col + EACH <= columns_left && sizeof", "sizeof"),
        ("the first columns in every box", "col + COUNT * 8, M, N);", "col, M, N);"),
        ("the first results in every box", "put<COUNT>(results, FIRST);", "put<COUNT>(results, 0);"),
        (
            "rows read before they are there",
            "put<COUNT>(results, FIRST);\n        __syncwarp();",
            "put<COUNT>(results, FIRST);",
        ),
        (
            "rows overwritten while they are read",
            "        __syncwarp();\n        if constexpr (FIRST + COUNT",
            "        if constexpr (FIRST + COUNT",
        ),
    ),
    *of(
        "cuda_reference/matmul/parts/warp_rows.cuh",
        "persistent_rows_cuda and words",
        ("words that the pitch does not allow", " | unsigned(pitch * sizeof(Out))", ""),
        ("words that the beginning does not allow", "unsigned(reinterpret_cast<uintptr_t>(epilogue.out)) | ", ""),
    ),
    *of(
        "cuda_reference/matmul/parts/consumer.cuh",
        "persistent_rows_cuda and any_length",
        ("one warp's rows in another's place", " + warp * WarpRows<Out>::ROWS * SLICE}", "}"),
    ),
    *of(
        "cuda_reference/matmul/parts/block_memory.cuh",
        "persistent_rows_cuda and any_length",
        ("one consumer's rows in another's place", "boxes + threadIdx.x / 128 * BOXES_BYTES", "boxes"),
    ),
]
