"""Broken Triton kernels of matmul."""

from tests.mutants.mutant import of

MUTANTS = [
    *of(
        "tritonkernels/matmul/parts/tile.py",
        "tritonkernels and matmul",
        ("last product dropped", "range(first_k, end_k, BLOCK_K)", "range(first_k, end_k - 1, BLOCK_K)"),
        (
            "K tail mask of A removed",
            "mask=a_inside & (ks < end_k)[None, :]",
            "mask=a_inside & (ks >= 0)[None, :]",
        ),
        (
            "tf32 for ieee",
            "b_slice, acc, how.PRECISION, how.ARE_TF32",
            'b_slice, acc, "tf32" if how.PRECISION == "ieee" else how.PRECISION, how.ARE_TF32',
        ),
        (
            "fp16 accumulate",
            'how.ARE_TF32, how.ACCUMULATE == "fast")',
            'how.ARE_TF32, how.ACCUMULATE == "fast").to(tl.float16).to(acc.dtype)',
        ),
        ("batch of B forgotten", "b.ptr + batch * multiple(b.batch, sizes.B_BATCH)", "b.ptr + batch * 0"),
    ),
    *of(
        "tritonkernels/language/tiles.py",
        "test_multiples",
        ("every stride a multiple of 8", "math.gcd(number, 8)", "8"),
        ("no multiple of less than 16", "math.gcd(number, 8)", "1"),
    ),
    *of(
        "tritonkernels/matmul/parts/arguments.py",
        "test_multiples",
        ("A's multiples for B", "chain(*strides)", "chain(strides[0], strides[0], *strides[2:])"),
        ("sizes that nothing lies along", "multiple_of(size) if 1 in steps else 1", "1"),
    ),
    *of(
        "tritonkernels/matmul/parts/epilogue.py",
        "tritonkernels and matmul",
        ("stride of another tensor", "multiple(out.col, sizes.OUT_COL)", "multiple(out.row, sizes.OUT_ROW)"),
        ("batch of C forgotten", "c.ptr + batch * multiple(c.batch, sizes.C_BATCH)", "c.ptr + batch * 0"),
        (
            "C multiplied by alpha",
            "factor(epilogue.beta, acc.dtype) * widened",
            "factor(epilogue.alpha, acc.dtype) * widened",
        ),
        (
            "C's mask removed",
            "multiple(c.col, sizes.C_COL), mask=_inside(rows, cols, sizes), other=0)",
            "multiple(c.col, sizes.C_COL))",
        ),
        ("bias forgotten", "result += widened(", "result += 0 * widened("),
        ("bias read contiguously", "bias.ptr + cols * bias.step", "bias.ptr + cols"),
        ("no activation", "return _activated(result, epilogue.ACTIVATION)", "return result"),
    ),
    *of(
        "tritonkernels/matmul/planes.py",
        "planes and not cuda_reference",
        ("corrections forgotten", "main + corrections * (1 / how.STEP)", "main"),
        ("infinities spoilt by low planes", "tl.abs(main) < float", "tl.abs(main) != -float"),
    ),
    *of(
        "tritonkernels/matmul/planes.py",
        "planes_split_k",
        ("every split has the first slices", "ks = first_k + tl.arange(0, BLOCK_K)", "ks = tl.arange(0, BLOCK_K)"),
        ("one place for all splits", "tl.store(place + split * (BLOCK_M * BLOCK_N), acc)", "tl.store(place, acc)"),
        (
            "half of the splits added",
            "BLOCK_M * BLOCK_N, splits.SPLIT_K, splits.SPLIT_K)",
            "BLOCK_M * BLOCK_N, splits.SPLIT_K // 2, splits.SPLIT_K // 2)",
        ),
        ("the first split adds them", "if last_to_arrive(counters + tile, splits.SPLIT_K):", "if split == 0:"),
    ),
    *of(
        "tritonkernels/matmul/parts/split.py",
        "planes and not cuda_reference",
        ("low planes not rounded to what is left", "(rest - _in_fp32(plane)) * STEP", "rest * STEP"),
        ("far shifts not cut off", "tl.maximum(n, -252)", "n + 0"),
        ("small numbers flushed", "tl.maximum(tl.abs(rest), smallest)", "tl.abs(rest)"),
    ),
    *of(
        "tritonkernels/matmul/parts/split.py",
        "result_is_right and planes and tritonkernels",
        ("extremes of nothing", "if ranges is not None and once.numel():", "if ranges is not None:"),
    ),
    *of(
        "tritonkernels/matmul/planes.py",
        "refusals_of_fp16x3 and tritonkernels",
        ("losses never refused", "tl.where(many & (a_counted", "tl.where((acc != acc) & (a_counted"),
        ("losses of A alone", "tl.maximum(a_counted, 0) + tl.maximum(b_counted, 0)", "tl.maximum(a_counted, 0)"),
        ("tiles with losses of B alone", ", tl.max(b_counted, axis=0)) > 0", ", 0) > 0"),
        ("losses of B alone", "tl.maximum(a_counted, 0) + tl.maximum(b_counted, 0)", "tl.maximum(b_counted, 0)"),
        ("refused too late", "tl.abs(acc) * 2.0**8", "tl.abs(acc) * 2.0**12"),
        ("refused where the other operand is dense", "many & (a_counted + b_counted > 0)", "many"),
        ("ranges of the first matrix of the batch", "b_ranges.ptr + batch * b_ranges.batch", "b_ranges.ptr"),
    ),
    *of(
        "tritonkernels/matmul/parts/split.py",
        "refusals_of_fp16x3 and tritonkernels",
        ("zeros refused", ">= COUNTED) | (largest == 0)", ">= COUNTED)"),
        ("zeros counted as lost", "(tl.abs(rest) < COUNTED) & (whole != 0)", "tl.abs(rest) < COUNTED"),
        ("losses of one block alone", "tl.atomic_add(ranges_ptrs", "tl.atomic_max(ranges_ptrs"),
        ("padding taken for the smallest", "tl.where(inside, bits ^ 0x7FFFFFFF, 0)", "bits ^ 0x7FFFFFFF"),
    ),
    *of(
        "tritonkernels/matmul/persistent.py",
        "tritonkernels and persistent and matmul",
        ("one half twice", "store_tile(halves[half]", "store_tile(halves[0]"),
        ("last slice dropped", "for k in range(0, sizes.K, BLOCK_K):", "for k in range(0, sizes.K - BLOCK_K, BLOCK_K):"),
        ("the index of the end stands still", "written += tl.num_programs(0)", "written += 0"),
    ),
    *of(
        "tritonkernels/matmul/persistent.py",
        "tritonkernels and persistent and batches_that_are_not",
        ("any distance of batches", " or batch % 16)", ")"),
    ),
    *of(
        "tritonkernels/matmul/parts/splits.py",
        "split_k and matmul and not cuda_reference",
        ("every part of a tile the first", "(first_row + tl.arange(0, ROWS))", "(first_row * 0 + tl.arange(0, ROWS))"),
        ("ranges of K overlap", "first + splits.k_per_split, K)", "first + splits.k_per_split + 1, K)"),
        ("the last split beyond K", "max(first, min(first + splits.k_per_split, K))", "first + splits.k_per_split"),
    ),
    *of(
        "tritonkernels/matmul/stream_k.py",
        "stream_k and matmul",
        ("first part forgotten", "acc = tl.load(place + BLOCK_M * BLOCK_N + within)", "acc = tl.load(place + within) * 0"),
        ("last part forgotten", "for _ in range(first, last):", "for _ in range(first, last - 1):"),
        (
            "the line's tiles stored as the first ones",
            "tile_corner(pieces.whole_tiles + tile, sizes",
            "tile_corner(tile, sizes",
        ),
        ("last whole tile skipped", "while (whole < pieces.whole_tiles)", "while (whole < pieces.whole_tiles - 1)"),
        (
            "parts added in another order",
            "        acc = tl.load(place + BLOCK_M * BLOCK_N + within)\n        for _ in range(first, last):",
            "        acc = tl.load(place + BLOCK_M * BLOCK_N + within)\n"
            "        for part in range(first + 2, last + 1):\n"
            "            acc += tl.load(place + (part - first) * (2 * BLOCK_M * BLOCK_N) + within)\n"
            "        for _ in range(first, first + 1):",
        ),
    ),
    *of(
        "tritonkernels/gemm/stream_k.py",
        "stream_k and matmul",
        ("the first tiles once more", "tile = pieces.whole_tiles + (at //", "tile = (at //"),
        ("some tiles left out", "whole + tl.num_programs(0), at", "whole + tl.num_programs(0) + 1, at"),
        (
            "pieces as if all tiles were shared",
            "ceil_div(shared * slices_per_tile, programs)\n    if",
            "ceil_div(tiles * slices_per_tile, programs)\n    if",
        ),
    ),
    *of(
        "tritonkernels/matmul/parts/epilogue.py",
        "test_fp8 and tritonkernels and tiled and (every_form or before_what)",
        ("scales of the first matrix", "batch * scale_a.batch", "batch * 0"),
        ("scales read contiguously", "cols * scale_b.col", "cols"),
        ("scales of rows for columns", "rows * scale_a.row", "rows * scale_b.col"),
    ),
    *of(
        "tritonkernels/matmul/parts/prepare.py",
        "test_fp8 and tritonkernels and tiled and alpha_is_zero",
        ("scales read at alpha = 0", "b[..., :0], None, None", "b[..., :0], scale_a, scale_b"),
    ),
    *of(
        "tritonkernels/matmul/parts/as_gemv.py",
        "reductions",
        ("a row read as a column", "if problem.n != 1:", "if False:"),
        ("C of a row not turned", "None if c is None else c.mT, out.mT", "c, out.mT"),
        ("bias forgotten", "    if problem.bias:\n        y =", "    if False:\n        y ="),
        ("bias by the caller's beta", "1.0 if problem.bias else problem.beta", "problem.beta"),
        ("sums in fp16 taken", 'problem.accumulate not in ("fp32", "fp64")', "False"),
        ("packed types taken", "problem.precision not in PRECISIONS", "False"),
    ),
    *of(
        "tritonkernels/matmul/parts/as_gemm.py",
        "reductions",
        ("tf32 taken", 'problem.precision != "ieee"', "False"),
        ("batches taken", "problem.batch != 1", "False"),
        ("C forgotten", "None if c is None else c[0]", "None"),
        ("beta forgotten", "beta=_beta(problem), out", "beta=1.0, out"),
        ("a bias forgotten", "bias.expand(out.shape[1:]) if problem.bias else", ""),
        ("a bias scaled", "1.0 if problem.bias else problem.beta", "problem.beta"),
    ),
]
