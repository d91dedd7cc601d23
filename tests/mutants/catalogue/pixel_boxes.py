"""Broken kernels of conv2d: warp_specialized, whose inputs are boxes of pixels, of both packages."""

from tests.mutants.mutant import of

MUTANTS = [
    *of(
        "cuda_reference/conv2d/warp_specialized.cuh",
        "conv2d and test_warp_specialized_cuda and cpu and test_sizes",
        ("every tap the first one's pixels", "(unsigned short)(s * g.dilation_w)", "0"),
        ("every tap the first one's filters", "channel, args.taps.at(r, s), Cluster", "channel, 0, Cluster"),
        ("no next row of taps", "if (s == g.S) s = 0, ++r;", ""),
        (
            "a stage written while it is read",
            "ring.parity ^ 1);  // of the round before",
            "ring.parity);  // of the round before",
        ),
        ("a tile's first pixel without its stride", "at.q * g.step_w - g.padding_w", "at.q - g.padding_w"),
        ("both consumers the first one's positions", "memory.left + down * matmul::SLICE", "memory.left"),
        ("both consumers the first one's filters", "memory.right + across * matmul::SLICE", "memory.right"),
        ("one box for both consumers", "memory.boxes + consumer * matmul::BLOCK_BYTES", "memory.boxes"),
    ),
    *of(
        "cuda_reference/conv2d/warp_specialized.cuh",
        "conv2d and test_warp_specialized_cuda and (test_pieces or test_bf16_and_every_tile and cpu)",
        ("a piece from the first tap on", "const int tap = piece.first / chunks;", "const int tap = 0;"),
        ("biases read before they are there", "bias.share();\n            warpgroup_barrier();", "bias.share();"),
        (
            "halves counted from the first slice of a piece",
            "piece.count, piece.first % chunks, chunks",
            "piece.count, 0, chunks",
        ),
        (
            "a block of a pair ends while the other arrives",
            "if constexpr (Cluster::SIZE > 1)  // the",
            "if constexpr (false)  // the",
        ),
    ),
    *of(
        "cuda_reference/matmul/parts/slice_products.cuh",
        "conv2d and test_warp_specialized_cuda and cpu and test_sizes",
        ("every slice a half", "min(left, period - 1 - first)", "0"),
    ),
    *of(
        "cuda_reference/conv2d/parts/image_results.cuh",
        "conv2d and test_warp_specialized_cuda and (cpu and test_sizes or test_planes)",
        (
            "a box written out before it is full",
            "        Box::fill(box, results, 0);\n        __syncwarp();\n",
            "        Box::fill(box, results, 0);\n",
        ),
        ("filters behind the last", "c < min(left, 8); ++c) to[c]", "c < 8; ++c) to[c]"),
        ("positions behind the last", "if (position >= positions) return -1;", ""),
        (
            "images in a row without a gap",
            "const bool in_a_row = at[0] == first + lane * 2 && at[1] == at[0] + 1;",
            "const bool in_a_row = true;",
        ),
        ("pairs of positions that are apart", "exists[1] && to[1] == to[0] + 1 &&", "exists[1] &&"),
    ),
    *of(
        "tritonkernels/conv2d/parts/pixel_boxes.py",
        "conv2d and test_warp_specialized and not cuda and (sizes or pieces or layouts)",
        ("a place filled before it is empty", "mbarrier.wait(ring.empty.index(at), phase ^ 1)", "pass"),
        (
            "a slice published as it is requested",
            "_publish(ring, at, AHEAD, slices, STAGES)\n            slices",
            "_publish(ring, at, 0, slices, STAGES)\n            slices",
        ),
        (
            "the last slices never published",
            "        async_copy.wait_group(AHEAD - 1 - left)\n        _publish(ring, at, AHEAD - left, slices, STAGES)",
            "        pass",
        ),
        ("copies not waited for", "async_copy.wait_group(AHEAD)", "async_copy.wait_group(AHEAD + 1)"),
        ("a slice given back too early", "ring.empty.index(before), pred=i > 0)", "ring.empty.index(at), pred=True)"),
        ("right edge of the image unmasked", " & _is_below(w + right, g.W)", ""),
        ("channels behind the last", "c + columns // 8 * 8 < g.C", "c + columns // 8 * 8 < g.C + 64"),
        ("a tap's rows in columns", "_wide(right, WIDE) * input.w + c", "_wide(right, WIDE) * input.h + c"),
        ("every tap the first one's filters", "[tap, filter, c]", "[0, filter, c]"),
        ("words beyond the last filter", "(k // 8 * 8 < g.K)", "(k // 8 * 8 < g.K + 8)"),
        ("rows of taps counted from 0", "r = first // chunks // g.S", "r = 0"),
        ("no bias", "mask=k < g.K, other=0).to(gl.float32)[None, :]", "mask=k < 0, other=0).to(gl.float32)[None, :]"),
    ),
    *of(
        "cuda_reference/conv2d/warp_specialized.cuh",
        "test_input_warp_specialized and cuda",
        (
            "the first filters in each tile",
            "args.filters, landed,\n                                                          tile.filter",
            "args.filters, landed,\n                                                          0",
        ),
        (
            "filters taken for lying along C",
            "using Right = matmul::OperandSlice<T, BN, ALONG_C>",
            "using Right = matmul::OperandSlice<T, BN, true>",
        ),
    ),
    *of(
        "cuda_reference/conv2d/parts/geometry.cuh",
        "test_input_warp_specialized and cuda",
        ("taps of the first row", "first + r * down + s * right", "first + s * right"),
        ("taps of the first column", "first + r * down + s * right", "first + r * down"),
    ),
    *of(
        "cuda_reference/conv2d/warp_specialized.py",
        "test_input_warp_specialized and share_rows",
        ("whole boxes for blocks that share their rows", "rows //= shares", "rows //= 1"),
        ("a stage shorter than its boxes", "ceil_div(bn, DEPTH) * DEPTH if across else bn", "bn"),
    ),
    *of(
        "tritonkernels/conv2d/parts/pixel_boxes.py",
        "test_input_warp_specialized and gluon",
        ("channels in the place of filters", "[tap, c, filter]", "[tap, filter, c]"),
        ("every tap the first", "taps.first + r * taps.down + s * taps.right", "taps.first"),
        ("rows of taps in columns", "r * taps.down + s * taps.right", "r * taps.right + s * taps.down"),
    ),
    *of(
        "tritonkernels/operations/conv2d_input/phases.py",
        "test_input_warp_specialized",
        ("taps from the first to the last", "return Taps(problem.r * problem.s - 1 - first, -", "return Taps(first, "),
        ("every tap of a row", "-(columns.step or 1))", "-1)"),
        ("every row of taps", "-(rows.step or 1) * problem.s", "-problem.s"),
    ),
    *of(
        "tritonkernels/operations/conv2d/taps.py",
        "test_input_warp_specialized or test_warp_specialized",
        ("taps that are not evenly apart", "in_chunks and evenly and", "in_chunks and"),
        ("filters that are no whole chunks", "filters.shape[dim] % CHUNK == 0 and", ""),
        ("any stride", "stride > 0 and stride % CHUNK == 0", "True"),
    ),
    *of(
        "tritonkernels/operations/conv2d_input/as_conv2d.py",
        "test_input_warp_specialized or test_conv2d_gradients",
        (
            "a filter of several taps in place for all",
            "problem.groups == 1 and problem.r * problem.s == 1)",
            "problem.groups == 1)",
        ),
        ("filters of groups in place", "(problem.groups == 1 and problem.r", "(problem.r"),
        ("elements that are apart filled as if they were not", "return sum((size - 1)", "return True or sum((size - 1)"),
    ),
]
