"""Broken kernels. Each mutant is one edit of one file, the kind of slip that hurts users in silence; the suite must notice all.

`tests` is what must notice: an expression for pytest -k, over the suite named in run.py.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    name: str
    path: str
    old: str  # must stand in the file exactly once
    new: str
    tests: str
    fast: bool = False  # part of `make test`; `make mutants` runs all


def _of(path, tests, *edits):
    design = path.rpartition(".")[0].replace("/", ".")
    return [Mutant(f"{design}: {edit[0]}", path, edit[1], edit[2], tests, *edit[3:]) for edit in edits]


SKIPPED_TILE = (
    "one tile skipped",
    "    program = tl.program_id(0)\n",
    "    program = tl.program_id(0)\n    if program == 1:\n        return\n",
)
STORE = (
    (
        "rows of the result unmasked",
        "inside = (rows < M)[:, None] & (cols < N)[None, :]\n    c_ptrs",
        "inside = (rows >= 0)[:, None] & (cols < N)[None, :]\n    c_ptrs",
    ),
    ("zeros returned", "result = blend(acc,", "result = blend(acc * 0,"),
)

MUTANTS = [
    *_of(
        "tritonkernels/gemm/naive.py",
        "tritonkernels and gemm and naive",
        SKIPPED_TILE,
        *STORE,
        ("last product dropped", "for _ in range(K):", "for _ in range(K - 1):"),
        ("stride of another tensor", "out_ptr + rows[:, None] * stride_om", "out_ptr + rows[:, None] * stride_am"),
    ),
    *_of(
        "tritonkernels/gemm/naive.py",
        "outside_the_tensors and tritonkernels-gemm",
        ("columns of B unmasked", "tl.load(b_ptrs, mask=cols < N, other=0)", "tl.load(b_ptrs)", True),
    ),
    *_of("tritonkernels/gemm/tiled.py", "tritonkernels and gemm and tiled", SKIPPED_TILE),
    *_of(
        "tritonkernels/gemm/tile.py",
        "tritonkernels and gemm and tiled",
        *STORE,
        ("last product dropped", "range(first_k, end_k, BLOCK_K)", "range(first_k, end_k - 1, BLOCK_K)"),
        (
            "K tail mask of A removed",
            "a_inside = (rows < M)[:, None] & (ks < end_k)[None, :]",
            "a_inside = (rows < M)[:, None] & (ks >= 0)[None, :]",
            True,
        ),
        ("K tail mask of B removed", "b_inside = (ks < end_k)[:, None] &", "b_inside = (ks >= 0)[:, None] &"),
        (
            "two rows swapped",
            "ks[None, :] * stride_ak, mask",
            "ks[None, :] * stride_ak + (rows < 2)[:, None] * (1 - 2 * rows)[:, None] * (M > 1) * stride_am, mask",
        ),
        (
            "fp16 accumulate",
            'acc = tl.dot(a, b, acc, input_precision="ieee")',
            'acc = tl.dot(a, b, acc, input_precision="ieee").to(tl.float16).to(tl.float32)',
        ),
        (
            "input changed",
            "        acc = tl.dot",
            "        tl.store(a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak, -a, a_inside)\n        acc = tl.dot",
        ),
        ("C and out exchanged", "stride_cm + cols[None, :] * stride_cn if", "stride_om + cols[None, :] * stride_on if"),
    ),
    *_of(
        "tritonkernels/gemm/rasterized.py",
        "tritonkernels and gemm and rasterized",
        ("tile coordinates exchanged", "tile_m, tile_n = grouped", "tile_n, tile_m = grouped"),
    ),
    *_of(
        "tritonkernels/language/tiles.py",
        "tritonkernels and rasterized",
        ("last group as long as the others", "rows = min(tiles_m - first, GROUP_M)", "rows = GROUP_M"),
    ),
    *_of(
        "tritonkernels/gemm/split_k.py",
        "tritonkernels and gemm and split_k",
        ("last split forgotten", "for _ in range(SPLIT_K):", "for _ in range(SPLIT_K - 1):"),
        ("ranges of K overlap", "end_k = min(first_k + k_per_split, K)", "end_k = min(first_k + k_per_split + 1, K)"),
        ("partial sums in one place", "(split * M + rows[:, None]) * N", "rows[:, None] * N"),
    ),
    *_of(
        "tritonkernels/gemm/stream_k.py",
        "tritonkernels and gemm and stream_k",
        ("parts in one place", "begins * (BLOCK_M * BLOCK_N) + within, acc", "within, acc"),
        ("first part forgotten", "acc = tl.load(place + BLOCK_M * BLOCK_N + within)", "acc = tl.load(place + within) * 0"),
        ("last part forgotten", "for _ in range(first, last):", "for _ in range(first, last - 1):"),
        ("cut tiles not added up", "    if first < last:", "    if first + 1 < last:"),
    ),
    *_of(
        "tritonkernels/language/epilogue.py",
        "tritonkernels and gemm",
        ("C multiplied by alpha", "acc += beta * widened", "acc += alpha * widened"),
        (
            "alpha applied to C as well",
            "    acc = alpha * acc\n    if HAS_C:\n        acc += beta *",
            "    if HAS_C:\n        acc += beta *",
        ),
    ),
    *_of(
        "tritonkernels/language/epilogue.py",
        "outside_the_tensors and tritonkernels-gemm",
        ("C's mask removed", "tl.load(c_ptrs, mask=mask, other=0)", "tl.load(c_ptrs)"),
    ),
    *_of(
        "tritonkernels/language/epilogue.py",
        "tritonkernels and matmul",
        ("bf16 truncated", "+ ((bits >> 16) & 1)) >> 16", "* 0) >> 16"),
    ),
    *_of(
        "tritonkernels/validate.py",
        "gemm and beta_is_zero and tritonkernels",
        ("C read at beta = 0", "return expanded if beta != 0 else None", "return expanded", True),
    ),
    *_of(
        "tritonkernels/problem.py",
        "offsets",
        ("32-bit offsets", ">= 2**31\n", ">= 2**61\n"),
    ),
    *_of(
        "tritonkernels/gemv/row_tile.py",
        "tritonkernels and gemv",
        ("last product dropped", "range(first, last, BLOCK_N * UNROLL)", "range(first, last - 1, BLOCK_N * UNROLL)"),
        ("N tail mask removed", "valid & (cols < last)[None, :]", "valid & (cols >= 0)[None, :]"),
        ("x read contiguously", "x_rows + cols[None, :] * stride_x,", "x_rows + cols[None, :],", True),
        ("y read contiguously", "+ m * stride_y,", "+ m,"),
        ("the same x for the whole batch", "x_ptr + (batch * stride_xb)", "x_ptr + (batch * 0)"),
        ("head dropped", "cols >= -head)", "cols >= 0)"),
        ("tail dropped", "(cols < size)[None, :]", "(cols < 0)[None, :]"),
        ("scale of the first row for all", "scale_ptr + m * stride_s", "scale_ptr + m * 0"),
    ),
    *_of(
        "tritonkernels/gemv/splits.py",
        "tritonkernels and gemv",
        ("the last split left out", "range(1, splits)", "range(1, splits - 1)"),
    ),
    *_of(
        "tritonkernels/gemv/transposed.py",
        "tritonkernels and gemv",
        ("a column dropped", "range(first, last, BLOCK_N)", "range(first, last - 1, BLOCK_N)"),
    ),
    *_of(
        "tritonkernels/conv2d/direct.py",
        "tritonkernels and conv2d",
        ("last channel dropped", "for _ in range(C_PER_GROUP):", "for _ in range(C_PER_GROUP - 1):"),
        ("last filter row dropped", "for r in range(R):", "for r in range(R - 1):"),
        (
            "filter flipped",
            "h = p * STEP_H + (r * DILATION_H",
            "h = p * STEP_H + ((R - 1 - r) * DILATION_H",
            True,
        ),
        ("left edge of the image unmasked", "(h < H) & (w >= 0) & (w < W)", "(h < H) & (w < W)"),
        ("dilation of the other axis", "q * STEP_W + (s * DILATION_W", "q * STEP_W + (s * DILATION_H"),
        ("stride of the other axis", "q * STEP_W + (s", "q * STEP_H + (s"),
        ("padding of the other axis", "- PADDING_W)", "- PADDING_H)"),
        ("group forgotten", "group * C_PER_GROUP * stride_ic", "0 * stride_ic"),
        ("bias read contiguously", "bias_ptr + k * stride_bias", "bias_ptr + k"),
        ("last column unwritten", "(q < Q))[None, :]", "(q < Q - 1))[None, :]"),
    ),
    *_of(
        "tritonkernels/conv2d/naive.py",
        "tritonkernels and conv2d and naive",
        ("filter flipped", "h = p * STEP_H + (r * DILATION_H", "h = p * STEP_H + ((R - 1 - r) * DILATION_H"),
        ("group of the first channels", "k // K_PER_GROUP * C_PER_GROUP", "0 * C_PER_GROUP"),
        ("right edge of the image unmasked", "(w >= 0) & (w < W)", "(w >= 0)"),
    ),
    *_of(
        "tritonkernels/conv2d/depthwise.py",
        "tritonkernels and conv2d and depthwise",
        ("window never slides", "                    x2 = x3\n", ""),
        ("a window that slides where steps are longer", '"SLIDES": problem.stride[0] == problem.dilation[0]', '"SLIDES": True'),
        ("last rows of the last run written", "valid & (p + 2 < P)", "valid"),
        ("channels inside are taken for columns", "k = index % K\n", "k = index // Q % K\n"),
    ),
    *_of(
        "tritonkernels/conv2d/register_blocked.py",
        "tritonkernels and conv2d and register_blocked",
        ("window never slides", "                    x2 = x3\n", ""),
        ("a window that slides where steps are longer", '"SLIDES": problem.stride[1] == problem.dilation[1]', '"SLIDES": True'),
        (
            "results of a run in the wrong order",
            "tl.join(acc0, acc2), tl.join(acc1, acc3)",
            "tl.join(acc0, acc1), tl.join(acc2, acc3)",
        ),
        ("padding of the other axis", "* STEP_W - PADDING_W", "* STEP_W - PADDING_H"),
        ("last column unwritten", "(q < Q)[None, None, :]", "(q < Q - 1)[None, None, :]"),
    ),
    *_of(
        "tritonkernels/matmul/tile.py",
        "tritonkernels and matmul",
        ("last product dropped", "range(first_k, end_k, BLOCK_K)", "range(first_k, end_k - 1, BLOCK_K)"),
        (
            "K tail mask of A removed",
            "a_inside = (rows < M)[:, None] & (ks < end_k)[None, :]",
            "a_inside = (rows < M)[:, None] & (ks >= 0)[None, :]",
        ),
        ("stride of another tensor", "cols[None, :] * stride_on", "cols[None, :] * stride_cn"),
        (
            "tf32 for ieee",
            "acc = faithful_dot(a, b, acc, PRECISION, ARE_TF32)",
            'acc = faithful_dot(a, b, acc, "tf32" if PRECISION == "ieee" else PRECISION)',
            True,
        ),
        (
            "fp16 accumulate",
            "acc = faithful_dot(a, b, acc, PRECISION, ARE_TF32)",
            "acc = faithful_dot(a, b, acc, PRECISION, ARE_TF32).to(tl.float16).to(acc.dtype)",
        ),
        ("bias forgotten", "result += widened(", "result += 0 * widened("),
        ("bias read contiguously", "bias_ptr + cols * stride_bias", "bias_ptr + cols"),
        ("no activation", "return activated(result, ACTIVATION)", "return result"),
    ),
    *_of(
        "tritonkernels/matmul/tensor_core.py",
        "tritonkernels and matmul",
        ("batch of B forgotten", "b_ptr += batch * stride_bb", "b_ptr += batch * 0"),
        ("batch of C forgotten", "c_ptr += batch * stride_cb", "c_ptr += batch * 0"),
    ),
    *_of(
        "tritonkernels/matmul/planes.py",
        "planes",
        ("corrections forgotten", "main + corrections * (1 / STEP)", "main"),
        ("infinities spoilt by low planes", "tl.abs(main) < float", "tl.abs(main) != -float"),
    ),
    *_of(
        "tritonkernels/matmul/split.py",
        "planes",
        ("low planes not rounded to what is left", "(rest - _in_fp32(plane)) * STEP", "rest * STEP"),
        ("far shifts not cut off", "tl.maximum(n, -252)", "n + 0"),
        ("small numbers flushed", "tl.maximum(tl.abs(rest), smallest)", "tl.abs(rest)"),
    ),
    *_of(
        "tritonkernels/matmul/persistent.py",
        "persistent and matmul",
        ("one half twice", "halves[half]", "halves[0]"),
        ("last slice dropped", "for k in range(0, K, BLOCK_K):", "for k in range(0, K - BLOCK_K, BLOCK_K):"),
        ("the index of the end stands still", "written += tl.num_programs(0)", "written += 0"),
    ),
    *_of(
        "tritonkernels/matmul/split_k.py",
        "split_k and matmul",
        ("last split forgotten", "for _ in range(SPLIT_K):", "for _ in range(SPLIT_K - 1):"),
        ("ranges of K overlap", "min(first_k + k_per_split, K)", "min(first_k + k_per_split + 1, K)"),
    ),
    *_of(
        "tritonkernels/matmul/stream_k.py",
        "stream_k and matmul",
        ("first part forgotten", "acc = tl.load(place + BLOCK_M * BLOCK_N + within)", "acc = tl.load(place + within) * 0"),
        ("last part forgotten", "for _ in range(first, last):", "for _ in range(first, last - 1):"),
    ),
    *_of(
        "tritonkernels/batches.py",
        "matmul_shapes",
        (
            "unmergeable batches merged",
            "    while outer > 0 and all(_merges(t, outer - 1) for t in tensors):",
            "    while outer > 0:",
        ),
    ),
    *_of(
        "tritonkernels/language/dot.py",
        "special or matmul or nan or denormal or tf32",
        ("tf32 truncated", "(bits + 0x1000) & 0xFFFFE000", "bits & 0xFFFFE000"),
        ("NaN rounded like a number", "tl.where(x == x, rounded, quiet)", "rounded"),
        ("tf32 not rounded", "        if not ARE_TF32:", "        if False:"),
        ("high nibbles unsigned", "return high.to(tl.int8, bitcast=True) >> 4", "return (high >> 4).to(tl.int8, bitcast=True)"),
        ("padding counted by xor", "(acc + 8 * walked) >> 1", "(acc + 8 * (walked - 1)) >> 1"),
    ),
    *_of(
        "tritonkernels/gemm/__init__.py",
        "alpha_zero and tritonkernels",
        ("A read at alpha = 0", "    if alpha == 0:", "    if False:"),
    ),
    *_of(
        "cuda_reference/gemm/common.cuh",
        "cuda_reference and gemm",
        ("C multiplied by alpha", "result += beta * c[", "result += alpha * c["),
        ("stride of another tensor", "out[row * stride.om", "out[row * stride.cm"),
    ),
    *_of(
        "cuda_reference/gemm/naive.cuh",
        "cuda_reference and gemm and naive",
        ("last product dropped", "for (int k = 0; k < K; ++k)", "for (int k = 0; k < K - 1; ++k)"),
        ("column test removed", "if (row >= M || col >= N) return;", "if (row >= M) return;"),
    ),
    *_of(
        "cuda_reference/gemm/tile_io.cuh",
        "cuda_reference and gemm and (vectorized or double_buffered or async_copy)",
        ("K tail test of A removed", "step, K - first_k - k(i));", "step, 4);"),
        (
            "rows of A past the end",
            "from = a + min(first_row + row(), M - 1) * stride.am",
            "from = a + (first_row + row()) * stride.am",
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
        ("alignment of C untested", " && (c == nullptr || in_quads(c, stride.cm, stride.cn))", ""),
    ),
    *_of(
        "cuda_reference/gemm/conflict_free.cuh",
        "cuda_reference and gemm and conflict_free",
        (
            "barrier after the product removed",
            "        __syncthreads();  // nobody reads it any more, the next may overwrite it\n",
            "",
        ),
        ("two lanes own one thread tile", "lane / 2 % 4 * TM", "lane / 4 % 4 * TM"),
        ("remap not one to one", "(row ^ (k & 4) * 4)", "(row | (k & 4) * 4)"),
    ),
    *_of(
        "cuda_reference/gemm/z_order.cuh",
        "cuda_reference and gemm and z_order",
        ("barrier before the product removed", "        __syncthreads();  // the slice is complete\n", ""),
        ("a lane bit used twice", "(lane >> 1 & 1) | (lane >> 2 & 2)", "(lane >> 1 & 1) | (lane >> 1 & 2)"),
    ),
    *_of(
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
    *_of(
        "cuda_reference/gemm/double_buffered.cuh",
        "outside_the_tensors and cuda_reference",
        ("last slice taken whole", "max(K - 1, 0) / BK * BK", "K / BK * BK"),
    ),
    *_of(
        "cuda_reference/common/raster.cuh",
        "cuda_reference and gemm and rasterized",
        ("last band as high as the others", "min(group, tiles_m - band * group)", "group"),
    ),
    *_of(
        "cuda_reference/gemm/split_k.cuh",
        "cuda_reference and gemm and split_k",
        ("one split dropped", "split < splits; ++split", "split < splits - 1; ++split"),
        (
            "C added to every partial sum",
            "partial + split * M * N, first_row, first_col, M, N, 1.0f, 0.0f",
            "partial + split * M * N, first_row, first_col, M, N, 2.0f, 0.0f",
        ),
        ("B of the first split", ", b += first_k * stride.bk", ""),
    ),
    *_of(
        "cuda_reference/gemm/stream_k.cuh",
        "cuda_reference and gemm and stream_k",
        (
            "barrier between tiles removed",
            "        __syncthreads();  // nobody reads the buffers any more, the next tile may overwrite them\n",
            "",
        ),
        ("first and last part in one place", "2 * block + !first_of_run", "2 * block"),
        ("last part dropped", "block <= last; ++block", "block < last; ++block"),
    ),
    *_of(
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
    *_of(
        "cuda_reference/gemm/tiled.cuh",
        "cuda_reference and gemm and tiled",
        ("barrier before the product removed", "        __syncthreads();  // the slice is complete\n", "", True),
        (
            "barrier after the product removed",
            "        __syncthreads();  // nobody reads it any more, the next may overwrite it\n",
            "",
        ),
        ("K tail test of A removed", "row < M && k < K ?", "row < M ?"),
        ("last product dropped", "for (int k = 0; k < K; k += BK)", "for (int k = 0; k < K - 1; k += BK)"),
        ("one tile skipped", "    float sum[TM][TN] = {};", "    if (blockIdx.x == 1) return;\n    float sum[TM][TN] = {};"),
        ("edge of the result untested", "if (first_row + row + m < M && first_col", "if (first_col"),
        ("fp16 accumulate", "sum[m][n] += a[m] * b[n];", "sum[m][n] = (int)(4096 * (sum[m][n] + a[m] * b[n])) / 4096.0f;"),
    ),
    *_of(
        "cuda_reference/common/reduce.cuh",
        "cuda_reference and gemv",
        ("last step of the reduction dropped", "offset > 0; offset /= 2", "offset > 1; offset /= 2"),
        ("a warp left out of the block's sum", "for (int warp = 1; warp < WARPS", "for (int warp = 2; warp < WARPS"),
    ),
    *_of(
        "cuda_reference/gemv/common.cuh",
        "cuda_reference and gemv",
        ("last product dropped", "n < N; n += step", "n < N - 1; n += step"),
        ("x read contiguously", "float(x[n * stride_x])", "float(x[n])"),
        ("scale of the first row for all", "scale[row.m * stride.s]", "scale[0]"),
    ),
    *_of(
        "cuda_reference/gemv/vector_row.cuh",
        "cuda_reference and gemv",
        ("head dropped", "n < head; n += step", "n < head - 1; n += step"),
        ("tail dropped", "n < N; n += step) sum += float(a[n])", "n < N - 1; n += step) sum += float(a[n])"),
    ),
    *_of(
        "cuda_reference/gemv/splits.cuh",
        "cuda_reference and gemv",
        ("the counter left standing", "if (last) atomicExch(counter, 0);", ""),
        ("the last split left out", "split < splits; ++split", "split < splits - 1; ++split"),
    ),
    *_of(
        "cuda_reference/conv2d/direct.cuh",
        "cuda_reference and conv2d",
        ("barrier after staging removed", "            __syncthreads();  // the halo is complete\n", "", True),
        ("barrier before staging removed", "            __syncthreads();  // nobody reads the channel before any more\n", ""),
        ("halo a row short", "piece < shape.rows * pieces_per_row", "piece < (shape.rows - 1) * pieces_per_row"),
        ("filter flipped", "filter + r * stride.wr", "filter + (g.R - 1 - r) * stride.wr"),
        ("edge of the result untested", "if (p >= g.P || q >= g.Q) return;", "if (p >= g.P) return;"),
    ),
    *_of(
        "cuda_reference/conv2d/common.cuh",
        "cuda_reference and conv2d",
        ("vector load past the row", "w + PIECE<T> <= g.W && stride.iw == 1 &&", "w < g.W && stride.iw == 1 &&"),
        ("vector load of a strided row", "w + PIECE<T> <= g.W && stride.iw == 1 &&", "w + PIECE<T> <= g.W &&"),
        ("bias read contiguously", "bias[k * stride.bias]", "bias[k]"),
        (
            "below the image is not zero",
            "h >= 0 && h < g.H && w >= 0 && w < g.W ?",
            "h >= 0 && h <= g.H && w >= 0 && w < g.W ?",
        ),
    ),
    *_of(
        "cuda_reference/conv2d/naive.cuh",
        "cuda_reference and conv2d and naive",
        ("filter flipped", "filter[r * stride.wr", "filter[(g.R - 1 - r) * stride.wr"),
        ("group of the first channels", "group = k / (g.K / g.groups)", "group = 0"),
    ),
    *_of(
        "cuda_reference/conv2d/depthwise.cuh",
        "cuda_reference and conv2d and depthwise",
        ("window a row off", "tap * window[r + j]", "tap * window[r + (j + 1) % RUN]"),
        ("last rows of the last run written", "if (p + j < g.P) at", "at"),
        ("dilation of the other axis", "r * g.dilation_h + j", "r * g.dilation_w + j"),
    ),
    *_of(
        "cuda_reference/conv2d/register_blocked.cuh",
        "cuda_reference and conv2d and (register_blocked or test_no_access) or test_halos",
        ("barrier after staging removed", "        __syncthreads();  // halos and filters are complete\n", ""),
        ("barrier before staging removed", "        __syncthreads();  // nobody reads the channels before any more\n", ""),
        ("barrier before results removed", "        __syncthreads();  // nobody reads the halos any more\n", ""),
        ("window never slides", "window[i][j] = window[i][QT + j];", "window[i][j] = window[i][j];"),
        ("three taps left are two", "if (left == 3) multiply_taps<3,", "if (left == 3) multiply_taps<2,"),
        ("filter flipped", "+ tap % g.S * stride.ws", "+ (g.S - 1 - tap % g.S) * stride.ws"),
        ("filters of the next block of channels", "k < KT && k < left_k ?", "k < KT ?"),
        ("last channels left out", "min(channels, c_per_group - c)", "min(channels, c_per_group - c - 1)"),
        ("results past the row", "if (p < g.P && q < g.Q) of_k", "if (p < g.P) of_k"),
        ("channels_last reads one channel", "input_or_zero(planes + c, h + row", "input_or_zero(planes, h + row"),
    ),
    *_of(
        "cuda_reference/matmul/wmma.cuh",
        "cuda_reference and matmul",
        ("tail test removed", "row < rows && col < cols ?", "row < rows ?"),
        ("last product dropped", "for (int k = 0; k < K; k += WK)", "for (int k = 0; k < K - 1; k += WK)"),
        ("batch of B forgotten", "    b += batch * stride.bb;\n", ""),
        ("output partly unwritten", "if (row < M && col < N) epilogue", "if (row < M && col < N - 1) epilogue"),
    ),
    *_of(
        "cuda_reference/matmul/wmma_tiled.cuh",
        "cuda_reference and matmul and wmma_tiled",
        ("tail test of elements removed", "row < rows && col < cols ?", "row < rows ?"),
        ("tail test of vectors removed", "(BY_ROWS ? rows : cols) &&", "(BY_ROWS ? rows + 1 : cols + 1) &&"),
        (
            "slice overwritten too early",
            "        __syncthreads();  // nobody reads it any more, the next may overwrite it\n",
            "",
        ),
        ("last slice dropped", "k_left > 0; k_left -= BK", "k_left > BK; k_left -= BK"),
        ("second row of fragments stored as the first", "row + f / FN * F + i / F", "row + i / F"),
    ),
    *_of(
        "cuda_reference/matmul/epilogue.cuh",
        "cuda_reference and matmul",
        ("alpha forgotten", "return alpha * widen(sum)", "return widen(sum)"),
        ("C of the first matrix of the batch", "c + batch * stride.cb", "c"),
        ("bias along a stride of one", "col * bias_n", "col"),
        ("relu of NaN is zero", "x < 0 ? Number(0) : x", "x > 0 ? x : Number(0)"),
    ),
    *_of(
        "cuda_reference/matmul/operands.cuh",
        "cuda_reference and matmul",
        ("tf32 chopped", "= to_tf32(fragment.x[i])", "= fragment.x[i]"),
    ),
]
