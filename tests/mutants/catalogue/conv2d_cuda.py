"""Broken CUDA kernels of conv2d: implicit_gemm and grouped."""

from tests.mutants.mutant import of

MUTANTS = [
    *of(
        "cuda_reference/conv2d/implicit_gemm.cuh",
        "test_channels_by_16_bytes and (ieee or fp16)",
        ("splits overlap", "first_k = blockIdx.y * split_size", "first_k = blockIdx.y * (split_size - 4)"),
        ("group of the first channels", "input + group * channels * stride.input.c", "input + 0 * channels * stride.input.c"),
        ("bias of the first group", "bias + group * g.k_per_group()", "bias + 0 * g.k_per_group()"),
        ("results past the last channel", "if (col < to.channels) at[", "at["),
    ),
    *of(
        "cuda_reference/conv2d/parts/unfolded.cuh",
        "test_unfolded and (test_accesses or test_copies and cuda_reference)",
        ("rows are read past the last", "if (first + row < of.rows) loaded", "loaded"),
        ("rows are written past the last", "if (first + row < of.rows) to[", "to["),
        ("columns past the last", "if (column >= of.columns) return;", ""),
        ("offsets read before they are known", "    __syncthreads();  // the offsets of rows are known\n", ""),
        ("the first copy's blocks counted twice", "blockIdx.x - unsigned(of_a.blocks)", "blockIdx.x"),
        ("a block of the second copy too few", "blockIdx.x < of_a.blocks)", "blockIdx.x <= of_a.blocks)"),
        ("rows of one image", "at.image * of.n + at.p * of.p", "at.p * of.p"),
        ("columns of one channel", "at.image * of.x + at.p * of.y", "at.p * of.y"),
        ("too few offsets", "sizeof(WordA) < sizeof(WordB)", "sizeof(WordA) > sizeof(WordB)"),
    ),
    *of(
        "cuda_reference/conv2d/grouped.py",
        "test_grouped_cuda and trips",
        (
            "columns slide in any layout",
            "slides = _slides(problem) and (lanes > 1 or not problem.channels_last)",
            "slides = _slides(problem)",
        ),
        ("filters that are not square slide", "problem.r == problem.s <= FEW_TAPS", "problem.r <= FEW_TAPS"),
    ),
    *of(
        "cuda_reference/conv2d/depthwise_channels.py",
        "test_grouped_cuda and trips",
        (
            "work of a square filter for all",
            "columns_at_once(problem, _slides(problem))",
            "columns_at_once(problem, slides(problem))",
        ),
    ),
    *of(
        "cuda_reference/matmul/persistent_planes.py",
        "test_batches and any_number",
        ("the batch along y", "(out.shape[0] * _blocks(problem),), THREADS", "(_blocks(problem), out.shape[0]), THREADS"),
    ),
    *of(
        "cuda_reference/common/add_splits.cuh",
        "test_channels_by_16_bytes and (ieee or fp16)",
        ("sums of the last to arrive counted twice", "i < COUNT; ++i) total[i] = 0;", "i < 0; ++i) total[i] = 0;"),
    ),
    *of(
        "cuda_reference/matmul/parts/products.cuh",
        "test_by_wgmma and fp16",
        ("every warpgroup the first one's pixels", "row / 64 * 64 * ATile::PITCH", "0 * ATile::PITCH"),
    ),
    *of(
        "cuda_reference/matmul/parts/slices.cuh",
        "test_by_wgmma and fp16",
        ("copies not waited for", "            if (slice > 0) cp_async_wait<STAGES - 3>();\n", ""),
        (
            "no fence before wgmma",
            "            tma_store_fence();  // all writes to the slice are visible to wgmma\n",
            "",
        ),
        ("a slice too far ahead", "if (slice > 0 && slice + STAGES - 2 < slices)", "if (slice + STAGES - 2 < slices)"),
    ),
    *of(
        "cuda_reference/conv2d/parts/taps.cuh",
        "test_channels_by_16_bytes and ieee",
        ("below the image is not zero", "unsigned(tap_h) < unsigned(H)", "unsigned(tap_h) <= unsigned(H)"),
    ),
    *of(
        "cuda_reference/conv2d/parts/taps.cuh",
        "test_up_to_the_bound and cuda and implicit_gemm and taps",
        ("far is not outside of every image", "FAR = INT_MIN", "FAR = -(1 << 30)"),
    ),
    *of(
        "cuda_reference/conv2d/parts/pixels.cuh",
        "test_channels_by_16_bytes and ieee",
        ("carry of channels forgotten", "place.c -= channels, ++place.s;", "place.c -= channels;"),
        ("carry of columns forgotten", "place.s -= S, ++place.r;", "place.s -= S;"),
    ),
    *of(
        "cuda_reference/conv2d/parts/pixels.cuh",
        "test_elements_of_any_strides and fp16",
        ("chunks in another order", "Tile::ROWS + i * CHUNKS_APART;", "Tile::ROWS * COUNT + i;"),
        ("split begins at the first tap", "taps(taps + first_k + chunk(0)", "taps(taps + chunk(0)"),
        ("taps do not advance", "{ taps += Tile::DEPTH; }", "{}"),
    ),
    *of(
        "cuda_reference/conv2d/parts/pixels.cuh",
        "test_inputs_that_no_output_reads",
        ("taps beyond the filter", "copy_from(tile, at, at.r < R, 0, 1)", "copy_from(tile, at, true, 0, 1)"),
    ),
    *of(
        "cuda_reference/conv2d/parts/taps.cuh",
        "test_elements_of_any_strides and ieee or test_channels_by_16_bytes and ieee",
        ("filter flipped", "r = i / g.S % g.R, c", "r = g.R - 1 - i / g.S % g.R, c"),
        ("filters packed in the other order", "int c = C_INSIDE ?", "int c = !C_INSIDE ?"),
    ),
    *of(
        "cuda_reference/conv2d/parts/thread_tile.cuh",
        "test_channels_by_16_bytes and ieee",
        ("odd columns read as even ones", "places.b[n % 2] ^", "places.b[0] ^"),
    ),
    *of(
        "cuda_reference/conv2d/parts/runs.cuh",
        "cuda_reference and conv2d and depthwise or test_depthwise_inputs_slide and float32",
        ("outputs a row apart whatever their step", "column[first + j * (TAPS > 0 ? STEP : 1)]", "column[first + j]"),
        ("dilation of the other axis", "next_tap = g.dilation_h *", "next_tap = g.dilation_w *"),
    ),
    *of(
        "cuda_reference/conv2d/parts/runs.cuh",
        "test_groups and float32 and (resnext or dilated or long)",
        ("last rows of the last run written", "if (p + j < g.P) store_together", "store_together"),
        ("above and below the image is not zero", "if (inside >> i & 1) load_together", "if (inside) load_together"),
        ("rows of the image are numbered from the first tap", "unsigned(h + i * apart)", "unsigned(h + i)"),
    ),
    *of(
        "cuda_reference/conv2d/grouped.cuh",
        "test_groups and float32 or test_filters_beyond_shared",
        ("outputs a row apart whatever their step", "column[first + j * STEP][c]", "column[first + j][c]"),
        (
            "group of the first channels",
            "image * stride.input.n + group * c_per_group",
            "image * stride.input.n + 0 * c_per_group",
        ),
        ("bias of the first group", "bias_or_zero(bias, group * per_group + k + i,", "bias_or_zero(bias, k + i,"),
        ("filters of the first channels", "weight + c * stride.weight.c, here", "weight, here"),
        ("filters staged over those in use", "if (c > 0) __syncthreads();", ""),
        ("barrier after the filters removed", "first_k, g, stride);\n        __syncthreads();", "first_k, g, stride);"),
        ("columns beside the image are not zero", "unsigned(first_w + s) < unsigned(g.W) ? rows : 0", "rows"),
        ("lanes past the last group write", "image < g.N && group < g.groups;", "image < g.N;"),
        ("taps of the channels before", "tap += (CT - 1) * taps * PITCH)", "tap += 0)"),
    ),
    *of(
        "cuda_reference/conv2d/parts/filters.cuh",
        "test_groups and float32 or test_remainders and float32",
        (
            "quads of lanes one after the other",
            "column / UNIT % LANES * KT + column / (UNIT * LANES) * UNIT",
            "column / UNIT * UNIT",
        ),
        ("rows apart are taken for neighbours", "bool whole = dense && (rows", "bool whole = (rows"),
        ("rows in another order", "+ column] = quad[j];", "+ column] = quad[j ^ 1];"),
        ("filter flipped", "tap % S * stride.weight.s]);", "(S - 1 - tap % S) * stride.weight.s]);"),
    ),
    *of(
        "cuda_reference/conv2d/grouped.cuh",
        "test_remainders and float32",
        ("outputs of the next group written", "if (p + j < g.P && k + i < per_group)", "if (p + j < g.P)"),
    ),
    *of(
        "cuda_reference/conv2d/grouped.py",
        "test_which_kernel or test_remainders and float32",
        ("columns apart are taken for neighbours", "lanes > 1 or input.stride(3) == 1", "True"),
    ),
    *of(
        "cuda_reference/conv2d/parts/runs.py",
        "test_which_kernel or test_remainders and float32",
        (
            "pixels that are not aligned are taken for such",
            "t.data_ptr() % (piece * t.element_size()) == 0 and",
            "t.data_ptr() and",
        ),
        ("any rows are taken for short ones", "input.element_size() < 2**31", "input.element_size() < 2**63"),
    ),
    *of(
        "cuda_reference/conv2d/depthwise.cuh",
        "test_depthwise_inputs_slide and float32",
        (
            "columns beside a plane are not zero",
            "unsigned(w) < unsigned(g.W), tap, stride.weight.r",
            "true, tap, stride.weight.r",
        ),
    ),
]
