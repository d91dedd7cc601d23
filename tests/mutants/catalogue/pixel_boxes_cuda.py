"""Broken CUDA kernels of conv2d: warp_specialized, whose inputs are boxes of pixels."""

from tests.mutants.mutant import of

MUTANTS = [
    *of(
        "cuda_reference/conv2d/warp_specialized.cuh",
        "test_warp_specialized_cuda and cpu and test_sizes",
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
        "test_warp_specialized_cuda and (test_pieces or test_bf16_and_every_tile and cpu)",
        ("a piece from the first tap on", "int tap = piece.first / chunks,", "int tap = 0,"),
        (
            "biases overwritten while they are read",
            "            warpgroup_barrier();  // all have read those of the tile before\n",
            "",
        ),
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
        "test_warp_specialized_cuda and cpu and test_sizes",
        ("every slice a half", "min(left, period - 1 - first)", "0"),
    ),
    *of(
        "cuda_reference/conv2d/parts/image_results.cuh",
        "test_warp_specialized_cuda and (cpu and test_sizes or test_planes or test_layouts)",
        ("a box overwritten while it is written out", "            }\n        __syncwarp();\n", "            }\n"),
        (
            "a box written out before it is full",
            "        Box::fill(box, results, 0);\n        __syncwarp();\n",
            "        Box::fill(box, results, 0);\n",
        ),
        ("filters behind the last", "tile < SOME && left > 0)", "tile < SOME)"),
        ("positions behind the last", "if (position >= positions) return -1;", ""),
        (
            "planes before they are there",
            "        }\n        warpgroup_barrier();\n        constexpr",
            "        }\n        constexpr",
        ),
        (
            "images in a row without a gap",
            "const bool in_a_row = at[0] == first + lane * 2 && at[1] == at[0] + 1;",
            "const bool in_a_row = true;",
        ),
        ("pairs across words", "&& reinterpret_cast<uintptr_t>(to[0]) % sizeof(unsigned) == 0;", ";"),
        ("pairs of positions that are apart", "exists[1] && to[1] == to[0] + 1 &&", "exists[1] &&"),
    ),
]
