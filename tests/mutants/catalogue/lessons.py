"""Broken lessons of gemv, conv2d and conv2d_weight: each barrier, wait and mask, and what they read."""

from tests.mutants.mutant import of

_ROWS = ("rows past the last written", "out.step, sums, mask=m < M)", "out.step, sums)")
_COLUMNS = ("columns past the last multiplied", "(m < M)[:, None] & (n < N)[None, :]", "(m < M)[:, None]")
_Y = ("y read contiguously", "y.ptr + m * y.step", "y.ptr + m")
_EDGES = (
    ("above the image is not zero", "(h >= 0) & ", ""),
    ("below the image is not zero", "(h < g.H) & ", ""),
    ("left of the image is not zero", "(w >= 0) & ", ""),
    ("right of the image is not zero", " & (w < g.W)", ""),
)
_TILE = (
    *_EDGES,
    ("a channel's filter is the first", "k * weight.k", "0 * weight.k"),
    ("bias read contiguously", "bias.ptr + k * bias.step", "bias.ptr + k"),
    ("channels past the last written", "exists = (k < g.K)[:, None] & ", "exists = (k >= 0)[:, None] & "),
    ("rows past the last written", "((p < g.P) & (q < g.Q))", "(q < g.Q)"),
    ("columns past the last written", "((p < g.P) & (q < g.Q))", "(p < g.P)"),
)
_PAST_ROWS = ("rows past the last", "    if (m >= M) return;", "")
_LANES = ("the sum of half the lanes", "int apart = 16;", "int apart = 8;")
_HALO = (
    ("columns before the tile's forgotten", "pitch + before + x *", "pitch + x *"),
    ("above and below the image is not zero", "in_row = h >= 0 && h < g.H;", "in_row = true;"),
    ("left of the image is not zero", "in_row && w + j >= 0 && w", "in_row && w"),
    ("right of the image is not zero", "w + j >= 0 && w + j < g.W", "w + j >= 0"),
    ("a piece past the row", "w + PIECE <= g.W &&", "w < g.W &&"),
    ("a piece before the row", "in_row && w >= 0 && w + PIECE", "in_row && w + PIECE"),
    ("a piece of a strided row", "stride.input.w == 1 && is_aligned16", "is_aligned16"),
    ("a piece at any address", "stride.input.w == 1 && is_aligned16(from)", "stride.input.w == 1"),
    ("channels past the last written", "        if (first_k + k < g.K)\n            out[", "            out["),
    ("rows past the last written", "if (p >= g.P || q >= g.Q) return;", "if (q >= g.Q) return;"),
    ("columns past the last written", "if (p >= g.P || q >= g.Q) return;", "if (p >= g.P) return;"),
)
_BIAS = ("bias past the last channel", "bias != nullptr && first_k + k < g.K ?", "bias != nullptr ?")
_INSIDE = (
    ("above the image is not zero", "h >= 0 && h < g.H &&", "h < g.H &&"),
    ("below the image is not zero", "h >= 0 && h < g.H &&", "h >= 0 &&"),
    ("left of the image is not zero", "w >= 0 && w < g.W;", "w < g.W;"),
    ("right of the image is not zero", "w >= 0 && w < g.W;", "w >= 0;"),
)

MUTANTS = [
    *of(
        "tritonkernels/gemv/naive.py",
        "test_lessons and tritonkernels-gemv-naive",
        ("rows past the last written", "sums, mask=inside)", "sums)"),
        ("x read contiguously", "x.ptr + n * x.step", "x.ptr + n"),
        _Y,
    ),
    *of("tritonkernels/gemv/warp_per_row.py", "test_lessons and tritonkernels-gemv-warp_per_row", _ROWS, _COLUMNS, _Y),
    *of("tritonkernels/gemv/staged_x.py", "test_lessons and tritonkernels-gemv-staged_x", _ROWS, _COLUMNS, _Y),
    *of(
        "cuda_reference/gemv/naive.cuh",
        "test_lessons and cuda_reference-gemv-naive",
        _PAST_ROWS,
        ("x read contiguously", "x[n * of_x.step]", "x[n]"),
    ),
    *of(
        "cuda_reference/gemv/warp_per_row.cuh",
        "test_lessons and cuda_reference-gemv-warp_per_row",
        _PAST_ROWS,
        _LANES,
        ("every lane writes", "    if (lane > 0) return;", ""),
    ),
    *of(
        "cuda_reference/gemv/staged_x.cuh",
        "test_lessons and cuda_reference-gemv-staged_x",
        _LANES,
        ("x read before it is there", "        __syncthreads();  // the piece of x is complete\n", ""),
        ("x overwritten early", "        __syncthreads();  // all warps have read it, the next may overwrite it\n", ""),
        ("rows past the last written", "lane > 0 || m >= M", "lane > 0"),
        ("every lane writes", "lane > 0 || m >= M", "m >= M"),
        ("x past the last piece", "const int count = min(STAGE, N - first);", "const int count = STAGE;"),
    ),
    *of(
        "cuda_reference/gemv/staged_x.cuh",
        "test_no_access and cuda_reference-gemv",
        ("rows past the last read", "min(m, M - 1)", "m"),
    ),
    *of(
        "cuda_reference/conv2d/direct.cuh",
        "test_no_access and cuda_reference-conv2d",
        ("filters past the last", "if (first_k + k < g.K) sum[k] +=", "sum[k] +="),
        _BIAS,
    ),
    *of("cuda_reference/conv2d/prefetched.cuh", "test_no_access and cuda_reference-conv2d", _BIAS),
    *of(
        "tritonkernels/conv2d/naive.py",
        "test_lessons and tritonkernels-conv2d-naive",
        *_EDGES,
        ("outputs past the last written", "acc, mask=exists)", "acc)"),
        ("filter flipped", "+ r * weight.r", "+ (g.R - 1 - r) * weight.r"),
        ("dilation of the other axis", "s * g.dilation_w", "s * g.dilation_h"),
    ),
    *of("tritonkernels/conv2d/direct.py", "test_lessons and tritonkernels-conv2d-direct", *_TILE),
    *of(
        "tritonkernels/conv2d/prefetched.py",
        "test_lessons and tritonkernels-conv2d-prefetched",
        *_TILE,
        ("the tap of before is multiplied once more", "                x = next_x\n", ""),
        ("next channel's weights, this one's inputs", "                plane_ptr += tl.where(ends_plane, input.c, 0)\n", ""),
        ("next row not loaded", "tl.where(ends_row, r + 1, r)", "r"),
    ),
    *of(
        "cuda_reference/conv2d/naive.cuh",
        "test_lessons and cuda_reference-conv2d-naive",
        *_INSIDE,
        ("outputs past the last", "    if (image >= g.N) return;\n", ""),
        ("filter flipped", "filter[r * stride.weight.r", "filter[(g.R - 1 - r) * stride.weight.r"),
    ),
    *of(
        "cuda_reference/conv2d/direct.cuh",
        "test_lessons and cuda_reference-conv2d-direct",
        *_HALO,
        ("barrier after staging removed", "        __syncthreads();  // the halo is complete\n", ""),
        ("barrier before staging removed", "        __syncthreads();  // all threads have read the previous channel\n", ""),
    ),
    *of(
        "cuda_reference/conv2d/prefetched.cuh",
        "test_lessons and cuda_reference-conv2d-prefetched",
        *_HALO,
        (
            "barrier of a channel removed",
            "        __syncthreads();  // this channel has landed for all threads, which have read the previous one\n",
            "",
        ),
        ("copies not waited for", "        cp_async_wait<0>();\n", ""),
        ("present stage overwritten", "+ c % 2 *", "+ 0 *"),
        ("filters past the last", "from, first_k + k < g.K, filter)", "from, true, filter)"),
        ("a channel past the last", "if (c + 1 < g.C) start", "start"),
    ),
    *of(
        "tritonkernels/conv2d_weight/naive.py",
        "test_lessons and tritonkernels-conv2d_weight-naive",
        *_EDGES,
        ("columns past the last multiplied", "mask=exists & (q < g.Q)", "mask=exists"),
        ("elements past the last written", "[:, None], mask=exists)", "[:, None])"),
    ),
    *of(
        "cuda_reference/conv2d_weight/naive.cuh",
        "test_lessons and cuda_reference-conv2d_weight-naive",
        *_INSIDE,
        ("elements past the last", "    if (k >= g.K) return;\n", ""),
        ("stride of the other axis", "w = q * g.step_w", "w = q * g.step_h"),
    ),
]
