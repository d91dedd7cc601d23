"""Broken lessons of matmul: every barrier and every test for an edge."""

from tests.mutants.mutant import of

MUTANTS = [
    *of(
        "cuda_reference/matmul/tiled.cuh",
        "test_lessons and cuda_reference and tiled",
        ("barrier before the product removed", "        __syncthreads();  // the slices are complete\n", ""),
        ("lines of elements past the edge", "inside = at_line < lines && place < length", "inside = place < length"),
        ("places of elements past the edge", "inside = at_line < lines && place < length", "inside = at_line < lines"),
        ("last slice dropped", "k < K; k += BK", "k + BK < K; k += BK"),
        ("the first step's fragments of A for all", "a_slice.at(row + m * F, step)", "a_slice.at(row + m * F, 0)"),
        ("second row of fragments stored as the first", "row + m * F + e / F", "row + e / F"),
        ("fragments read while they are stored", "        __syncwarp();  // the fragment is complete\n", ""),
        ("rows of the result untested", "if (i >= M || j >= N) continue;", "if (j >= N) continue;"),
        ("columns of the result untested", "if (i >= M || j >= N) continue;", "if (i >= M) continue;"),
        ("C read where beta is 0", "if (c != nullptr) result", "result"),
        ("C multiplied by alpha", "result += beta * float", "result += alpha * float"),
        ("stride of another tensor", "out[i * of_out.row", "out[i * of_c.row"),
    ),
    *of(
        "cuda_reference/matmul/tiled.cuh",
        "test_wmma and (every_combination or chunks)",
        ("lines of chunks past the edge", "if (at_line < lines && place < length)", "if (place < length)"),
        ("places of chunks past the edge", "if (at_line < lines && place < length)", "if (at_line < lines)"),
        ("chunks of lines that end within one", " && length % CHUNK == 0 &&", " &&"),
        ("chunks of elements that are apart", "step == 1 && line", "line"),
        ("chunks of lines that begin within one", "line % CHUNK == 0 && length", "length"),
        ("chunks wherever the matrix begins", " && is_aligned16(from)", ""),
    ),
    *of(
        "cuda_reference/matmul/tiled.cuh",
        "test_wmma and races",
        (
            "slices overwritten too early",
            "        __syncthreads();  // all threads have read them, the next may overwrite them\n",
            "",
        ),
        (
            "fragments overwritten too early",
            "        __syncwarp();  // all lanes have read it, the next may overwrite it\n",
            "",
        ),
    ),
    *of(
        "tritonkernels/matmul/tiled.py",
        "test_lessons and tritonkernels and tiled",
        (
            "K tail mask of A removed",
            "mask=(rows < M)[:, None] & (ks < K - k)[None, :]",
            "mask=(rows < M)[:, None] & (ks >= 0)",
        ),
        ("K tail mask of B removed", "mask=(ks < K - k)[:, None] & (cols", "mask=(ks >= 0)[:, None] & (cols"),
        ("last slice dropped", "range(0, K, BLOCK_K)", "range(0, K - BLOCK_K, BLOCK_K)"),
        ("the first slice of A again", "        a_ptrs += BLOCK_K * a.col\n", ""),
        (
            "rows of the result untested",
            "inside = (rows < M)[:, None] & (cols < N)",
            "inside = (rows >= 0)[:, None] & (cols < N)",
        ),
        (
            "columns of the result untested",
            "inside = (rows < M)[:, None] & (cols < N)",
            "inside = (rows < M)[:, None] & (cols >= 0)",
        ),
        ("bf16 multiplied as it is stored", '"bf16" if a_slice.dtype == tl.bfloat16 else "fp16"', '"fp16"'),
        ("C multiplied by alpha", "result += beta * widened", "result += alpha * widened"),
        ("stride of another tensor", "cols[None, :] * out.col", "cols[None, :] * out.row"),
    ),
]
