"""Broken kernels of conv2d: warp_specialized, whose inputs are boxes of pixels, of both packages."""

from tests.mutants.mutant import of

MUTANTS = [
    *of(
        "cuda_reference/conv2d/warp_specialized.cuh",
        "conv2d and test_warp_specialized_cuda and cpu and test_sizes",
        ("every tap the first one's pixels", "(unsigned short)(s * g.dilation_w)", "0"),
        ("every tap the first one's filters", "tile.filter, channel, tap, Cluster", "tile.filter, channel, 0, Cluster"),
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
        ("a piece from the first tap on", "int tap = piece.first / chunks,", "int tap = 0,"),
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
        "tritonkernels/language/ring.py",
        "conv2d and test_warp_specialized and not cuda and (sizes or pieces or layouts)",
        ("the last slices announced in disorder", "at, AHEAD - i, AHEAD - i - 1", "at, i + 1, AHEAD - i - 1"),
        ("the last copies not waited for", "AHEAD - i - 1, slices", "AHEAD - i, slices"),
        ("a place before the ring's first", "at - before + STAGES)", "at - before)"),
        ("a slice before the first one", "pred=slices >= before", "pred=True"),
        ("the phase never changes", "phase ^ 1, phase)", "phase, phase)"),
    ),
    *of(
        "tritonkernels/conv2d/parts/pixel_boxes.py",
        "conv2d and test_warp_specialized and not cuda and (sizes or pieces or layouts)",
        ("a place filled before it is empty", "mbarrier.wait(ring.empty.index(at), phase ^ 1)", "pass"),
        (
            "a slice announced as it is requested",
            "announce(ring.full, at, AHEAD, AHEAD, slices, STAGES)",
            "announce(ring.full, at, 0, AHEAD, slices, STAGES)",
        ),
        ("the last slices never announced", "    announce_last(ring.full, at, AHEAD, slices, STAGES)\n", ""),
        ("copies not waited for", "at, AHEAD, AHEAD, slices", "at, AHEAD, AHEAD + 1, slices"),
        ("a slice given back too early", "ring.empty.index(before), pred=i > 0)", "ring.empty.index(at), pred=True)"),
        ("right edge of the image unmasked", " & is_below(w + right, g.W)", ""),
        ("channels behind the last", "c + columns // 8 * 8 < g.C", "c + columns // 8 * 8 < g.C + 64"),
        ("a tap's rows in columns", "wide(right, WIDE) * input.w + c", "wide(right, WIDE) * input.h + c"),
        ("every tap the first one's filters", "[tap, filter, c]", "[0, filter, c]"),
        ("words beyond the last filter", "(k // 8 * 8 < g.K)", "(k // 8 * 8 < g.K + 8)"),
        ("no bias", "mask=k < g.K, other=0).to(gl.float32)[None, :]", "mask=k < 0, other=0).to(gl.float32)[None, :]"),
    ),
]
