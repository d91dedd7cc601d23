"""Broken kernels of gemm."""

from tests.mutants.mutant import of

MUTANTS = [
    *of(
        "tritonkernels/language/scalars.py",
        "tritonkernels and gemm_of_doubles",
        ("alpha of doubles rounded to fp32", "bitcast=True)", "bitcast=True).to(tl.float32)"),
    ),
    *of(
        "cuda_reference/gemm/parts/common.cuh",
        "cuda_reference and gemm_of_doubles",
        ("alpha of doubles rounded to fp32", "T result = alpha * sum", "T result = float(alpha) * sum"),
    ),
    *of(
        "cuda_reference/gemm/tiled.cuh",
        "cuda_reference and gemm_of_doubles and tiled",
        ("doubles added up in fp32", "sum[m][n] += a[m] * b[n];", "sum[m][n] = float(sum[m][n] + a[m] * b[n]);"),
    ),
    *of(
        "tritonkernels/gemm/naive.py",
        "tritonkernels and gemm and naive",
        ("last product dropped", "for _ in range(K):", "for _ in range(K - 1):"),
        ("column of B read along K", "b_ptrs = b.ptr + cols * b.col", "b_ptrs = b.ptr + cols * b.row"),
    ),
    *of(
        "tritonkernels/gemm/naive.py",
        "tritonkernels and gemm and naive",
        ("columns of B unmasked", "tl.load(b_ptrs, mask=cols < N, other=0)", "tl.load(b_ptrs)"),
    ),
    *of(
        "tritonkernels/gemm/tiled.py",
        "tritonkernels and gemm and tiled",
        ("one tile skipped", "(a, b, rows, cols, 0, K, M", "(a, b, rows, cols, 0, K * (tl.program_id(0) != 1), M"),
    ),
    *of(
        "tritonkernels/gemm/parts/tile.py",
        "tritonkernels and gemm and tiled",
        (
            "rows of the result unmasked",
            "inside = (rows < M)[:, None] & (cols < N)[None, :]\n    acc",
            "inside = (rows >= 0)[:, None] & (cols < N)[None, :]\n    acc",
        ),
        ("zeros returned", "acc = factor(alpha, acc.dtype) * acc", "acc = factor(alpha, acc.dtype) * acc * 0"),
        ("stride of another tensor", "out.ptr + rows[:, None] * out.row", "out.ptr + rows[:, None] * out.col"),
        ("last product dropped", "range(first_k, end_k, BLOCK_K)", "range(first_k, end_k - 1, BLOCK_K)"),
        (
            "K tail mask of A removed",
            "a_inside = (rows < M)[:, None] & (ks < end_k)[None, :]",
            "a_inside = (rows < M)[:, None] & (ks >= 0)[None, :]",
        ),
        ("K tail mask of B removed", "b_inside = (ks < end_k)[:, None] &", "b_inside = (ks >= 0)[:, None] &"),
        (
            "two rows swapped",
            "ks[None, :] * a.col, mask",
            "ks[None, :] * a.col + (rows < 2)[:, None] * (1 - 2 * rows)[:, None] * (M > 1) * a.row, mask",
        ),
        (
            "fp16 accumulate",
            'input_precision="ieee", out_dtype=acc.dtype)',
            'input_precision="ieee", out_dtype=acc.dtype).to(tl.float16).to(tl.float32)',
        ),
        (
            "input changed",
            "        acc = tl.dot",
            "        tl.store(a.ptr + rows[:, None] * a.row + ks[None, :] * a.col, -a_slice, a_inside)\n        acc = tl.dot",
        ),
        (
            "strides of out for C",
            "rows[:, None] * c.row + cols[None, :] * c.col",
            "rows[:, None] * out.row + cols[None, :] * out.col",
        ),
    ),
    *of(
        "tritonkernels/gemm/rasterized.py",
        "tritonkernels and gemm and rasterized",
        ("tile coordinates exchanged", "tile_m, tile_n = grouped", "tile_n, tile_m = grouped"),
    ),
    *of(
        "tritonkernels/gemm/split_k.py",
        "tritonkernels and gemm and split_k",
        ("last split forgotten", "for _ in range(SPLIT_K):", "for _ in range(SPLIT_K - 1):"),
        ("ranges of K overlap", "end_k = min(first_k + k_per_split, K)", "end_k = min(first_k + k_per_split + 1, K)"),
        ("partial sums in one place", "(split * M + rows[:, None]) * N", "rows[:, None] * N"),
    ),
    *of(
        "tritonkernels/gemm/stream_k.py",
        "tritonkernels and gemm and stream_k",
        ("parts in one place", "2 * program + (first == 0).to(tl.int32)", "2 * program"),
        ("first part forgotten", "acc = tl.load(place + BLOCK_M * BLOCK_N + within)", "acc = tl.load(place + within) * 0"),
        ("last part forgotten", "for _ in range(first, last):", "for _ in range(first, last - 1):"),
        ("cut tiles not added up", "    if first < last:", "    if first + 1 < last:"),
    ),
    *of(
        "tritonkernels/gemm/parts/prepare.py",
        "alpha_zero and tritonkernels",
        ("A read at alpha = 0", "    if alpha == 0:", "    if False:"),
    ),
    *of(
        "cuda_reference/gemm/parts/common.cuh",
        "cuda_reference and gemm",
        ("C multiplied by alpha", "result += beta * c[", "result += alpha * c["),
        ("stride of another tensor", "out[row * stride.out.row", "out[row * stride.c.row"),
    ),
    *of(
        "cuda_reference/gemm/parts/launches.py",
        "gemm_sizes and cuda_reference and z_order",
        ("more threads than the kernel allows", 'return config["BM"] //', 'return 2 * config["BM"] //'),
    ),
    *of(
        "cuda_reference/gemm/naive.cuh",
        "cuda_reference and gemm and naive",
        ("last product dropped", "for (int k = 0; k < K; ++k)", "for (int k = 0; k < K - 1; ++k)"),
        ("column test removed", "if (row >= M || col >= N) return;", "if (row >= M) return;"),
    ),
    *of(
        "cuda_reference/gemm/parts/tile_io.cuh",
        "cuda_reference and gemm and (vectorized or double_buffered or async_copy)",
        ("K tail test of A removed", "step, K - first_k - k(i));", "step, 4);"),
        (
            "rows of A past the end",
            "from = a + min(first_row + row(), M - 1) * stride.row",
            "from = a + (first_row + row()) * stride.row",
        ),
        (
            "quad put in the wrong order",
            "quads[i].y;\n            tile[Tile::at(k(i) + 2",
            "quads[i].z;\n            tile[Tile::at(k(i) + 2",
        ),
        ("K tail test of B removed", "first_k + k(i) < K ? columns : 0);", "columns);"),
        ("last columns of B past the end", "min(first_col + col(), (N - 1) / 4 * 4)", "first_col + col()"),
        ("a column taken twice", "SHORT - 1 - j : j", "SHORT - 1 - j : j / 2 * 2"),
        ("rows of the result untested", "if (row >= M) break;", ""),
        ("C's quad added without beta", "quad.x += beta * old.x", "quad.x += old.x"),
        ("128-bit stores past the edge", "if (vector && col + 3 < N)", "if (vector)"),
        ("alignment of C untested", " && (c == nullptr || in_quads(c, stride.c))", ""),
    ),
    *of(
        "cuda_reference/gemm/conflict_free.cuh",
        "cuda_reference and gemm and conflict_free",
        (
            "barrier after the product removed",
            "        __syncthreads();  // all threads have read it, the next may overwrite it\n",
            "",
        ),
        ("two lanes own one thread tile", "lane / 2 % 4 * TM", "lane / 4 % 4 * TM"),
        ("remap not one to one", "(row ^ (k & 4) * 4)", "(row | (k & 4) * 4)"),
    ),
    *of(
        "cuda_reference/gemm/z_order.cuh",
        "cuda_reference and gemm and z_order",
        ("barrier before the product removed", "        __syncthreads();  // the slice is complete\n", ""),
        ("a lane bit used twice", "(lane >> 1 & 1) | (lane >> 2 & 2)", "(lane >> 1 & 1) | (lane >> 1 & 2)"),
    ),
    *of(
        "cuda_reference/gemm/double_buffered.cuh",
        "cuda_reference and gemm and double_buffered",
        (
            "barrier removed",
            "                    B::put(buffers[now].b, b_quads);\n                    __syncthreads();\n",
            "                    B::put(buffers[now].b, b_quads);\n",
        ),
        (
            "fragments of the next k used",
            "outer_product(sum, fragments.a[k % 2], fragments.b[k % 2]);\n            }\n        }\n#pragma",
            "outer_product(sum, fragments.a[(k + 1) % 2], fragments.b[k % 2]);\n            }\n        }\n#pragma",
        ),
        ("buffers not exchanged", "now ^= 1;", ""),
    ),
    *of(
        "cuda_reference/gemm/double_buffered.cuh",
        "cuda_reference and gemm and (double_buffered or outside_the_tensors)",
        ("last slice taken whole", "a_slices.fetch_tail(a_quads, last, K)", "a_slices.fetch_tail(a_quads, last, last + BK)"),
    ),
    *of(
        "cuda_reference/gemm/split_k.cuh",
        "cuda_reference and gemm and split_k",
        ("one split dropped", "split < splits; ++split", "split < splits - 1; ++split"),
        (
            "C added to every partial sum",
            "partial + split * M * N, first_row, first_col, M, N, 1.0f, 0.0f",
            "partial + split * M * N, first_row, first_col, M, N, 2.0f, 0.0f",
        ),
        ("B of the first split", ", b += first_k * stride.b.row", ""),
    ),
    *of(
        "cuda_reference/gemm/stream_k.cuh",
        "gemm and stream_k",
        (
            "barrier between tiles removed",
            "        __syncthreads();  // all threads have read the buffers, the next tile may overwrite them\n",
            "",
        ),
        ("first and last part in one place", "2 * block + !first_of_run", "2 * block"),
        ("last part dropped", "block <= last; ++block", "block < last; ++block"),
    ),
    *of(
        "cuda_reference/gemm/async_copy.cuh",
        "cuda_reference and gemm and async_copy",
        (
            "barrier removed",
            "after the last, what is loaded below is never used\n                __syncthreads();\n",
            "\n",
        ),
        ("waits for one slice too few", "cp_async_wait<STAGES - 2>();  // for", "cp_async_wait<STAGES - 1>();  // for"),
        ("K tail of A unguarded", "first_k + octet + k() < K ? 4 : 0);", "4);"),
        ("copies into the slice that is read", "a_copies.copy(buffers[free].a", "a_copies.copy(buffers[now].a"),
    ),
    *of(
        "cuda_reference/gemm/tiled.cuh",
        "cuda_reference and gemm and tiled",
        ("barrier before the product removed", "        __syncthreads();  // the slice is complete\n", ""),
        (
            "barrier after the product removed",
            "        __syncthreads();  // all threads have read it, the next may overwrite it\n",
            "",
        ),
        ("K tail test of A removed", "row < M && k < K ?", "row < M ?"),
        ("last product dropped", "for (int k = 0; k < K; k += BK)", "for (int k = 0; k < K - 1; k += BK)"),
        ("one tile skipped", "    T sum[TM][TN] = {};", "    if (blockIdx.x == 1) return;\n    T sum[TM][TN] = {};"),
        ("edge of the result untested", "if (first_row + row + m < M && first_col", "if (first_col"),
        ("fp16 accumulate", "sum[m][n] += a[m] * b[n];", "sum[m][n] = (int)(4096 * (sum[m][n] + a[m] * b[n])) / 4096.0f;"),
    ),
    *of(
        "cuda_reference/gemm/warp_tiled.cuh",
        "cuda_reference and gemm and warp_tiled",
        ("thread tiles overlap", "warp % (BN / WN) * WN + lane % 8 * TN", "warp % (BN / WN) * WN + lane % 4 * TN"),
    ),
    *of(
        "cuda_reference/gemm/vectorized.cuh",
        "cuda_reference and gemm and vectorized",
        ("last slice dropped", "for (int k = 0; k < K; k += BK)", "for (int k = 0; k + BK < K; k += BK)"),
    ),
    *of(
        "cuda_reference/gemm/rasterized.cuh",
        "cuda_reference and gemm and rasterized",
        (
            "tile coordinates exchanged",
            "first_row = tile.m * BM, first_col = tile.n * BN",
            "first_row = tile.n * BM, first_col = tile.m * BN",
        ),
    ),
    *of(
        "cuda_reference/gemm/parts/launches.py",
        "gemm_ladder and last_chunk",
        ("room for the last chunk not asked for", "in_rows and (not matrix.numel() or", "in_rows and (True or"),
    ),
]
