"""Broken kernels of gemv."""

from tests.mutants.mutant import of

MUTANTS = [
    *of(
        "tritonkernels/gemv/parts/row_tile.py",
        "tritonkernels and gemv_of_doubles",
        ("doubles added up in fp32", "SUMS: tl.constexpr = tl.float64 if", "SUMS: tl.constexpr = tl.float32 if"),
    ),
    *of(
        "cuda_reference/gemv/parts/row.cuh",
        "cuda_reference and gemv_of_doubles",
        ("doubles added up in fp32", "double>::value, double, float>", "double>::value, float, float>"),
    ),
    *of(
        "tritonkernels/gemv/parts/row_tile.py",
        "tritonkernels and gemv",
        ("N tail mask removed", "cols < end, partial.dtype", "cols >= 0, partial.dtype"),
        ("x read contiguously", "walk.x + cols[None, :] * x.step,", "walk.x + cols[None, :],"),
        ("y read contiguously", "+ m * y.step,", "+ m,"),
        ("the same x for the whole batch", "x.ptr + (batch * x.batch)", "x.ptr + (batch * 0)"),
        ("head dropped", "cols >= -rows.head,", "cols >= 0,"),
        ("tail dropped", "cols < rows.size,", "cols < 0,"),
        ("scale of the first row for all", "scale.ptr + m * scale.step", "scale.ptr + m * 0"),
    ),
    *(
        mutant
        for design in ("vectorized", "rows_per_warp", "block_per_row")
        for mutant in of(
            f"tritonkernels/gemv/{design}.py",
            f"tritonkernels and gemv and {design}",
            ("last product dropped", "end = rows.vectors * rows.V", "end = rows.vectors * rows.V - 1"),
        )
    ),
    *of(
        "tritonkernels/gemv/split_n.py",
        "tritonkernels and gemv",
        ("the last vector dropped", "rows.vectors)", "rows.vectors - 1)"),
        ("last product dropped", "end = last * rows.V", "end = last * rows.V - 1"),
        ("every split takes the ends", "if first == 0:", "if first >= 0:"),
    ),
    *of(
        "tritonkernels/language/last_to_arrive.py",
        "tritonkernels and gemv",
        ("the last split left out", "(first + at < splits)", "(first + at < splits - 1)"),
    ),
    *of(
        "tritonkernels/language/last_to_arrive.py",
        "more_splits",
        ("only the first splits added up", "for first in range(0, splits, BLOCK_S):", "for first in range(0, 1, BLOCK_S):"),
    ),
    *of(
        "tritonkernels/gemv/transposed.py",
        "tritonkernels and gemv",
        ("the last column dropped", "inside = (cols < last)[:, None]", "inside = (cols < last - 1)[:, None]"),
    ),
    *of(
        "cuda_reference/gemv/parts/row.cuh",
        "cuda_reference and gemv",
        ("last product dropped", "n < N; n += step", "n < N - 1; n += step"),
        ("x read contiguously", "Sum<X>(x[n * stride_x])", "Sum<X>(x[n])"),
        ("scale of the first row for all", "scale[row.m * stride.scale.step]", "scale[0]"),
    ),
    *of(
        "cuda_reference/gemv/parts/vector_row.cuh",
        "cuda_reference and gemv",
        ("head dropped", "n < head; n += step", "n < head - 1; n += step"),
        ("tail dropped", "n < N; n += step) sum += Sum<X>(a[n])", "n < N - 1; n += step) sum += Sum<X>(a[n])"),
    ),
    *of(
        "cuda_reference/gemv/parts/vector_row.cuh",
        "gemv_shifted and vectorized",
        ("no shift by two words", "bytes & 8 ? words[i + 2] : words[i]", "words[i]"),
        ("no shift by a word", "bytes & 4 ? words[i + 1] : words[i]", "words[i]"),
        ("no shift within a word", "bytes % 4 * 8", "0"),
        ("x shifted as if it began with the row", "reinterpret_cast<uintptr_t>(x + head)", "reinterpret_cast<uintptr_t>(x)"),
        ("a word past the end of x", "max(0, N - head + shift - FULL<X>)", "max(0, N - head)"),
    ),
    *of(
        "cuda_reference/gemv/transposed.cuh",
        "gemv_shifted and (columns or past_the_memory)",
        ("columns taken as aligned", "bytes = reinterpret_cast<uintptr_t>(column) % 16;", "bytes = 0;"),
        ("the first word twice", "loader.load(from + 16)", "loader.load(from)"),
        ("the last rows of a matrix in words", "SHIFTED && rows_left < 2 * WIDTH", "SHIFTED && rows_left < WIDTH"),
        ("rows past the last", "if (i < rows_left) sum", "sum"),
        ("the last column dropped by elements", "n < last; n += DEPTH, column", "n < last - 1; n += DEPTH, column"),
    ),
    *of(
        "cuda_reference/gemv/transposed.py",
        "gemv_shifted and (columns or past_the_memory)",
        ("columns never shift", "width == 1 and a.stride(1) == 1 and", "False and"),
    ),
    *of(
        "cuda_reference/gemv/transposed.py",
        "test_types and cuda_reference and transposed",
        ("rows that are no neighbours", "width == 1 and a.stride(1) == 1 and", "width == 1 and"),
    ),
    *of(
        "cuda_reference/gemv/parts/kernel.py",
        "gemv_shifted",
        ("rows never shift", '"SHIFTED": shifted(a, x)}', '"SHIFTED": False}'),
        ("rows of less than a vector shift", "if a.shape[-1] * a.itemsize < VECTOR_BYTES:", "if False:"),
        ("rows always shift", "return a.stride(-1) == x.stride(-1) == 1 and not alike", "return not alike"),
        ("a head of elements of A", "head * x.itemsize", "head * a.itemsize"),
        ("pitches in elements", "(stride * t.itemsize for t in", "(stride * 4 for t in"),
    ),
    *of(
        "cuda_reference/common/last_to_arrive.cuh",
        "cuda_reference and gemv",
        ("the counter left standing", "atomicExch(counter, 0);", ";"),
    ),
    *of(
        "cuda_reference/gemv/parts/splits.cuh",
        "cuda_reference and gemv",
        ("the last split left out", "split < splits; split", "split < splits - 1; split"),
    ),
    *of(
        "cuda_reference/gemv/parts/splits.cuh",
        "more_splits",
        ("only the first splits added up", "split += 32 * WARPS", "split += splits"),
    ),
    *of(
        "cuda_reference/gemv/transposed.cuh",
        "cuda_reference and gemv",
        (
            "the last column dropped",
            "if (n + u * DEPTH < last) {\n                of_a",
            "if (n + u * DEPTH < last - 1) {\n                of_a",
        ),
        ("one thread's sums left out", "depth < DEPTH; ++depth", "depth < DEPTH - 1; ++depth"),
        ("the last split left out", "split < int(gridDim.y); split", "split < int(gridDim.y) - 1; split"),
    ),
    *of(
        "cuda_reference/gemv/transposed.cuh",
        "more_splits",
        ("only the first splits added up", "split += DEPTH)", "split += gridDim.y)"),
    ),
    *of(
        "cuda_reference/gemv/vectorized.cuh",
        "cuda_reference and gemv and vectorized",
        ("rows of the first matrix", "const Row row(index, M);", "const Row row(index % M, M);"),
    ),
    *of(
        "cuda_reference/gemv/rows_per_warp.cuh",
        "cuda_reference and gemv and rows_per_warp",
        ("sum of one lane", "warp_sum<LANES>(partial)", "partial"),
    ),
    *of(
        "cuda_reference/gemv/block_per_row.cuh",
        "cuda_reference and gemv and block_per_row",
        ("sum of one warp", "block_sum<WARPS>(partial)", "warp_sum(partial)"),
    ),
    *of(
        "cuda_reference/gemv/split_n.cuh",
        "cuda_reference and gemv and split_n",
        ("all sums in the place of the first", "of_row[split] = sum", "of_row[0] = sum"),
    ),
]
