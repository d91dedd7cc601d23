"""Broken Gluon programs of gemm and matmul, and what only Triton's stages or its interpreter show of others."""

from tests.mutants.mutant import of

TESTS = "gluon and test_results"
STEP = ("A's slices do not follow each other", "a_ptrs += BLOCK_K * a.col", "a_ptrs += a.col")
TAIL = ("B's K tail", "mask=(b_k < K - k) & (b_n < N)", "mask=(b_n < N)")
ROWS = ("rows after A", "mask=(a_k < K - k) & (a_m < M)", "mask=(a_k < K - k)")

MUTANTS = [
    *of("tritonkernels/gemm/warp_tiled.py", TESTS, STEP, TAIL, ROWS),
    *of("tritonkernels/gemm/vectorized.py", TESTS, STEP, TAIL),
    *of("tritonkernels/gemm/conflict_free.py", TESTS, STEP, TAIL),
    *of("tritonkernels/gemm/z_order.py", TESTS, STEP, TAIL),
    *of(
        "tritonkernels/gemm/double_buffered.py",
        TESTS,
        ("the next slice stored where this one is", "b_buffers[1 - now].store", "b_buffers[now].store"),
        ("every second slice twice", "(now + 1) * BLOCK_K", "(now + 2) * BLOCK_K"),
    ),
    *of(
        "tritonkernels/gemm/async_copy.py",
        TESTS,
        ("waits for one slice too few", "wait_group(STAGES - 2)", "wait_group(STAGES - 1)"),
        ("the first slice not waited for", "wait_group(STAGES - 1)\n", "wait_group(STAGES)\n"),
        ("a slice too many copied", "if left > STAGES:", "if left >= STAGES:"),
        (
            "groups not committed where there is no slice",
            "            copy_async(b_shared.index(free), b_ptrs)\n        async",
            "            copy_async(b_shared.index(free), b_ptrs)\n            async",
        ),
        ("a slice copied where the next one is", "copy_async(a_shared.index(free)", "copy_async(a_shared.index(stage)"),
        ("the last slice's tail", "mask=b_k < K - last", "mask=b_k < BLOCK_K"),
        ("the right half written over the left", "        col += BLOCK_N // 2\n", ""),
    ),
    *of(
        "tritonkernels/language/gluon_tile.py",
        TESTS,
        ("words that begin anywhere", "length - WORD + index % WORD", "length - WORD"),
        ("columns after the result", "inside = (rows < M) & (cols < N)", "inside = (rows < M)"),
        ("C not scaled", "acc += beta * gl.load", "acc += gl.load"),
        ("beta's C added before alpha", "    acc = alpha * acc\n", ""),
    ),
    *of(
        "tritonkernels/gemm/parts/one_stage.py",
        TESTS,
        ("A's K tail", "(a_k < K - k) & ", ""),
        ("columns after B", "(b_k < K - k) & (b_n < b.length)", "(b_k < K - k)"),
    ),
    *of(
        "tritonkernels/gemm/parts/gluon_lessons.py",
        TESTS,
        ("C read where the result is", "c.ptr + rows * c.row + cols * c.col", "c.ptr + rows * out.row + cols * out.col"),
    ),
    *(
        mutant
        for design in ("cuda_cores", "dmma")
        for mutant in of(
            f"tritonkernels/matmul/{design}.py",
            f"test_gluon_product and arrived and {design}",
            ("waits for one slice too few", "wait_group(STAGES - 2)", "wait_group(STAGES - 1)"),
            ("a slice that is never copied", "left >= STAGES)", "left > STAGES)"),
            ("a slice copied where another is read", "b_ptr, free, left", "b_ptr, stage, left"),
        )
    ),
    *of(
        "tritonkernels/matmul/parts/gluon_product.py",
        "test_gluon_product and arrived",
        ("A's K tail", "mask=a_ks < length - last", "mask=a_ks < BLOCK_K"),
        ("one more slice at first", "gl.static_range(1, STAGES - 1)", "gl.static_range(1, STAGES)"),
    ),
    *of(
        "tritonkernels/language/dot.py",
        "sums_of_fp8",
        ("sums of fp8 stay in the tensor cores", "acc, max_num_imprecise_acc=min(128, a.shape[1]))", "acc)"),
    ),
    *of(
        "tritonkernels/matmul/parts/partitions.py",
        "sums_of_fp8",
        ("sums of fp8 go on from slice to slice", "use_acc=False", "use_acc=True"),
    ),
    *of(
        "tritonkernels/language/packed.py",
        "test_offsets and batches",
        ("offsets of batches in 32 bits", "    if WIDE:\n        batch = batch.to(tl.int64)\n", ""),
    ),
    *of(
        "tritonkernels/matmul/parts/fp32_planes.py",
        "test_offsets and batches",
        ("offsets of batches in 32 bits", "    if WIDE:\n        batch = batch.to(tl.int64)\n", ""),
    ),
    *of(
        "tritonkernels/matmul/parts/tile.py",
        "test_offsets and batches",
        ("offsets of batches in 32 bits", "batch.to(tl.int64)", "batch"),
    ),
    *of(
        "cuda_reference/common/patch.cuh",
        "test_offsets and cuda",
        ("offsets of batches in 32 bits", "matrices + batch * stride.batch", "matrices + int(batch * stride.batch)"),
        ("offsets of lines in 32 bits", "(first + s) * stride.span", "int((first + s) * stride.span)"),
        ("offsets along K in 32 bits", "(first_k + k) * stride.k", "int((first_k + k) * stride.k)"),
    ),
    *of(
        "tritonkernels/language/tiles.py",
        "test_offsets and tritonkernels",
        ("offsets of tiles in 32 bits", "        index = index.to(tl.int64)\n", "        index = index\n"),
    ),
    *of(
        "tritonkernels/conv2d/grouped.py",
        "test_grouped",
        (
            "a promise of vectors in the result that are none",
            '"OUT_VECTOR": side_by_side(out, outputs, tile["KT"])',
            '"OUT_VECTOR": tile["KT"]',
        ),
    ),
    *of(
        "tritonkernels/conv2d/parts/runs.py",
        "conv2d and tritonkernels",
        ("pixels taken as aligned that are not", "math.gcd(channels, most, *apart)", "math.gcd(channels, most)"),
    ),
    *of(
        "tritonkernels/conv2d/implicit_gemm.py",
        "implicit_gemm and tritonkernels",
        (
            "pixels taken as aligned that are not",
            "math.gcd(problem.c // problem.groups, *apart)",
            "math.gcd(problem.c // problem.groups)",
        ),
        ("vectors across groups", "math.gcd(problem.c // problem.groups, *apart)", "math.gcd(problem.c, *apart)"),
        ("runs twice as long as they are", "max_contiguous(offsets, (1, VECTOR))", "max_contiguous(offsets, (1, 2 * VECTOR))"),
    ),
    *of(
        "tritonkernels/interpreter.py",
        "test_interpreter",
        (
            "promises for loads unchecked",
            'self.memory.check("a load", pointers, mask)\n        _check_promises(pointers, mask)',
            'self.memory.check("a load", pointers, mask)',
        ),
        (
            "runs that are not said to be aligned unchecked",
            "vectors = _cut(offsets, run, axis)",
            "run = min(run, multiple)\n        vectors = _cut(offsets, run, axis)",
        ),
        ("promises of constant masks unchecked", "if (vectors != vectors[..., :1]).any():", "if False:"),
        ("promises for masked lanes checked", "run, axis).any(axis=-1)", "run, axis).any(axis=-1) | True"),
    ),
    *of(
        "tritonkernels/gemm/parts/tile.py",
        "test_designs and tritonkernels and gemm",
        ("products of tf32", ', input_precision="ieee")', ")"),
    ),
    *of(
        "tritonkernels/gemm/tiled.py",
        "test_lessons and tritonkernels and tiled",
        ("products of tf32", ', input_precision="ieee")', ")"),
    ),
    *of(
        "tritonkernels/language/dot.py",
        "test_designs and tritonkernels and matmul",
        ("every product of fp32 is tf32", 'acc, input_precision="ieee", out_dtype=acc.dtype)', "acc, out_dtype=acc.dtype)"),
        ("tf32 cut off", "        if not ARE_TF32:\n            a = round_to_tf32(a)\n", "        if not ARE_TF32:\n"),
    ),
]
