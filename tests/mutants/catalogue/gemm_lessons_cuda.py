"""Broken lessons of gemm in CUDA: every barrier, every test for an edge, and the index formulas that a rung adds."""

from tests.mutants.mutant import of

COMPLETE = "        __syncthreads();  // the slice is complete\n"
READ = "        __syncthreads();  // all threads have read it, the next may overwrite it\n"
BARRIERS = (("barrier before the product removed", COMPLETE, ""), ("barrier after the product removed", READ, ""))
# Of tiled and warp_tiled, which access element by element.
ELEMENTS = (
    ("K tail test of A removed", "m < M && k < K ?", "m < M ?"),
    ("K tail test of B removed", "k < K && n < N ?", "n < N ?"),
    ("rows of the result untested", "if (i >= M || j >= N) continue;", "if (j >= N) continue;"),
    ("columns of the result untested", "if (i >= M || j >= N) continue;", "if (i >= M) continue;"),
    ("C read where beta is 0", "if (c != nullptr) result", "result"),
)
# Of the later ones, which access by quads.
QUADS = (
    ("K tail test of A removed", "a_left - first_k)", "a_left)"),
    ("K tail test of B removed", "first_k + b_k < K ? b_left : 0", "b_left"),
    ("128-bit loads past the edge", "if (VECTOR) return left > 0 ?", "if (VECTOR) return true ?"),
    ("128-bit stores past the edge", "if (VECTOR && left > 0)", "if (VECTOR)"),
    ("a float stored past the edge", "if (!VECTOR && left > 3)", "if (!VECTOR && left > 2)"),
    ("rows of the result untested", "left = i < M ? N - j : 0", "left = N - j"),
    ("C read where beta is 0", "if (c != nullptr) {", "{"),
    ("C's quad added without beta", "quad.x += beta * old.x", "quad.x += old.x"),
)
# Reads outside of A and B, on which no result depends: tests/memory sees them.
ELEMENTS_OUTSIDE = (
    ("rows of A past the end", "m < M && k < K ?", "k < K ?"),
    ("columns of B past the end", "k < K && n < N ?", "k < K ?"),
)
QUADS_OUTSIDE = (
    ("rows of A past the end", "first_row + a_row < M ? K - a_k : 0", "K - a_k"),
    ("columns of B past the end", "b_left = N - first_col - b_col", "b_left = 4"),
    ("a float loaded past the edge", "left > 3 ? from", "left > 2 ? from"),
)
OWN = {
    "naive": (
        ("last product dropped", "for (int k = 0; k < K; ++k)", "for (int k = 0; k < K - 1; ++k)"),
        ("row test removed", "if (row >= M || col >= N) return;", "if (col >= N) return;"),
        ("column test removed", "if (row >= M || col >= N) return;", "if (row >= M) return;"),
        ("C multiplied by alpha", "result += beta * c[", "result += alpha * c["),
        ("C read where beta is 0", "if (c != nullptr) result", "result"),
        ("stride of another tensor", "out[row * stride.out.row", "out[row * stride.c.row"),
    ),
    "tiled": (
        *BARRIERS,
        *ELEMENTS,
        ("last product dropped", "first_k < K; first_k += BK)", "first_k < K - 1; first_k += BK)"),
        ("one tile skipped", "    float sum[TM][TN] = {};", "    if (blockIdx.x == 1) return;\n    float sum[TM][TN] = {};"),
        ("a column taken twice", "TM - 1 - i : i", "TM - 1 - i : i / 2 * 2"),
        (
            "fp16 accumulate",
            "sum[m][n] += a_part[m] * b_part[n];",
            "sum[m][n] = (int)(4096 * (sum[m][n] + a_part[m] * b_part[n])) / 4096.0f;",
        ),
    ),
    "warp_tiled": (*BARRIERS, *ELEMENTS, ("thread tiles overlap", "WN + lane % 8 * TN", "WN + lane % 4 * TN")),
    "vectorized": (
        *BARRIERS,
        *QUADS,
        ("last slice dropped", "first_k < K; first_k += BK)", "first_k + BK < K; first_k += BK)"),
        ("quad put in the wrong order", "a_tile[a_k + 1][a_row] = a_quad.y", "a_tile[a_k + 1][a_row] = a_quad.z"),
    ),
    "conflict_free": (*BARRIERS, *QUADS, ("two lanes own one thread tile", "lane / 2 % 4 * TM", "lane / 4 % 4 * TM")),
    "z_order": (
        *BARRIERS,
        *QUADS,
        ("a lane bit used twice", "lane / 8 % 2 * 2,", "lane / 4 % 2 * 2,"),
        ("quads of the result side by side", "col + n / 4 * GAP_N;", "col + n;"),
    ),
    "double_buffered": (
        *QUADS,
        ("barrier removed", "        __syncthreads();  // the slice is complete; and", "        // the slice is complete; and"),
        ("buffers not exchanged", "store_slice((k / BK + 1) % 2)", "store_slice(0)"),
        ("the next k of the slice before", "load_part((k + 1) / BK % 2,", "load_part(k / BK % 2,"),
        ("fragments of the next k used", "a_part[k % 2][m] *", "a_part[(k + 1) % 2][m] *"),
        ("slices a turn late", "load_slice(first_k + k + BK)", "load_slice(first_k + k)"),
    ),
}
OUTSIDE = {"tiled": ELEMENTS_OUTSIDE, "warp_tiled": ELEMENTS_OUTSIDE} | dict.fromkeys(
    ("vectorized", "conflict_free", "z_order", "double_buffered"), QUADS_OUTSIDE
)


def results_of(name):
    return f"gemm and {name} and (cuda_reference or gemm_ladder) and not jacobians"


MUTANTS = [
    *(m for name, edits in OWN.items() for m in of(f"cuda_reference/gemm/{name}.cuh", results_of(name), *edits)),
    *(
        m
        for name, edits in OUTSIDE.items()
        for m in of(f"cuda_reference/gemm/{name}.cuh", "outside_the_tensors and cuda_reference and gemm", *edits)
    ),
    *of(
        "cuda_reference/gemm/parts/lessons.py",
        "gemm_ladder and quads_as_vectors",
        ("128-bit accesses of strided rows", "return col == 1 and", "return"),
        ("rows that end within a quad", "cols % 4 == 0 and ", ""),
        ("rows that begin within a quad", "row % 4 == 0 and ", ""),
        ("a matrix that begins within a quad", " and matrix.data_ptr() % 16 == 0", ""),
    ),
    *of(
        "cuda_reference/gemm/parts/lessons.py",
        results_of("vectorized"),
        ("only A's rows looked at", "for x in (a, b, c, out)", "for x in (a,)"),
    ),
]
