"""Broken CUDA kernels: matmul's designs of TMA and wgmma whose blocks share tiles, stream_k and cluster_split_k."""

from tests.mutants.mutant import of

MUTANTS = [
    *of(
        "cuda_reference/common/runs.cuh",
        "cuda and stream_k_cuda and (edges or few_rows or order or matrix_of_a_batch or half_sums)",
        ("a block's whole tiles are its first one only", "whole += gridDim.x / CLUSTER;", "whole += whole_tiles;"),
        ("every piece begins its tile", "const int first = int(at % of_tile);", "const int first = 0;"),
        ("a piece as long as the rest of the run", "int(min(int64_t(of_tile - first), end - at))", "int(end - at)"),
        ("one place for a run's beginning and end", "2 * block + (block == first && first_ends)", "2 * block"),
        ("every block begins with a whole tile", "block < whole_tiles ? Piece", "true ? Piece"),
    ),
    *of(
        "cuda_reference/common/runs.cuh",
        "cuda and stream_k_cuda and pairs",
        ("every block of a pair walks alone", "const int own = blockIdx.x / CLUSTER;", "const int own = blockIdx.x;"),
        ("pairs pass over every second tile", "whole += gridDim.x / CLUSTER;", "whole += gridDim.x;"),
    ),
    *of(
        "cuda_reference/matmul/parts/shared_tiles.cuh",
        "cuda and stream_k_cuda and (edges or few_rows or order or groups or matrix_of_a_batch or half_sums)",
        ("a piece taken for a whole tile", "if (piece.count == slices) return true;", "return true;"),
        (
            "one place for both warpgroups",
            "int64_t(sharers.slot_of(cluster)) * CLUSTER * CONSUMERS + consumer;",
            "int64_t(sharers.slot_of(cluster)) * CLUSTER * CONSUMERS;",
        ),
        ("one counter for both warpgroups", "counter * CLUSTER * CONSUMERS + consumer;", "counter * CLUSTER * CONSUMERS;"),
        (
            "a group's counter the tile's",
            "group < 0 ? 2 * runs.blocks + shared_tile : sharers.slot_of(group)",
            "2 * runs.blocks",
        ),
    ),
    *of(
        "cuda_reference/matmul/parts/sums_of_others.cuh",
        "cuda and stream_k_cuda and (edges or few_rows or order or groups or matrix_of_a_batch or half_sums)",
        ("groups not added up", "if (m * 64 + row < rows) Own::add_group(", "if (false) Own::add_group("),
        (
            "sixteen rows too few",
            "if (m * 64 + row >= rows) continue;\n#pragma unroll",
            "if (m * 64 + row + 16 > rows) continue;\n#pragma unroll",
        ),
        ("the first part left out", "Own::add(numbers, first, until", "Own::add(numbers, first + 1, until"),
        (
            "its own part last",
            "until, step, [&](int part) { return part_of(part, m); });",
            "until, step, [&](int part) { return part_of(part == first ? last_part : part - 1, m); });",
        ),
        ("parts of the first 64 rows for all", "* BLOCKS + m)", "* BLOCKS)"),
        ("half sums added in half", "__floats2half2_rn(total[0], total[1])", "__floats2half2_rn(0, 0)"),
    ),
    *of(
        "cuda_reference/matmul/parts/shared_tiles.cuh",
        "cuda and stream_k_cuda and (pairs or order or groups)",
        ("both blocks of a pair in one place", "blockIdx.x % CLUSTER * CONSUMERS + threadIdx.x / 128", "threadIdx.x / 128"),
        ("every block of a pair a run of its own", "own = blockIdx.x / CLUSTER, consumer", "own = blockIdx.x, consumer"),
    ),
    *of(
        "cuda_reference/matmul/cluster_split_k.cuh",
        "cluster_split_k_cuda and (finishes or ranges or order or half_sums)",
        ("the same range of K for all", "int64_t(slices) * split / SPLITS)", "int64_t(slices) * 0 / SPLITS)"),
        ("the last slice left out", "int64_t(slices) * (split + 1) / SPLITS)", "int64_t(slices - 1) * (split + 1) / SPLITS)"),
        ("reads what is not written yet", "        cluster_exchange();\n", ""),
        ("its own sums in the place of all", "in_block(numbers, split)", "in_block(numbers, blockIdx.x % SPLITS)"),
        ("sums of the first warpgroup only", "numbers + row * PITCH + lane", "numbers + (row - first_row) * PITCH + lane"),
        ("rows of the first block", "const int row = split * each + i / RUNS", "const int row = i / RUNS"),
        ("added in another order", "in_block(numbers, split)", "in_block(numbers, SPLITS - 1 - split)"),
        ("sums of the lower rows twice", ".at(half * 2))", ".at(0))"),
        ("alpha left out", "result = epilogue.scaled(result); });", "});"),
    ),
    *of(
        "cuda_reference/matmul/parts/consumer.cuh",
        "cluster_split_k_cuda and (finishes or ranges or order)",
        (
            "sums over slices that others read",
            "if (piece.count > 0) mbarrier_wait(memory.empty + last, ring.parity ^ (ring.stage == 0));",
            "",
        ),
    ),
    *of(
        "cuda_reference/matmul/persistent.cuh",
        "cluster_split_k_cuda and (finishes or ranges or order)",
        ("a block that ends before its sums were read", "        __syncwarp();\n        cluster_barrier();\n", ""),
    ),
    *of(
        "cuda_reference/matmul/cluster_split_k.py",
        "cluster_split_k_cuda and configs",
        ("splits of nothing", "splits <= slices and ", ""),
        ("any number of blocks", " <= _WAVES * target.sms", " <= 100 * target.sms"),
    ),
    *of(
        "cuda_reference/matmul/stream_k.py",
        "cuda and stream_k_cuda and (cut or edges or configs)",
        ("any number of parts", ', left * config["PARTS"])', ")"),
        ("parts of few tiles begin anywhere", '(sharers % left if left and config["PARTS"] > MANY else 0)', "0"),
        ("tiles of nothing shared", 'config["WAVES"]) if slices else 0', 'config["WAVES"])'),
    ),
    *of(
        "cuda_reference/matmul/stream_k.py",
        "persistent_transposed and what_is_copied",
        ("stream_k copies a B across K", "b_across_k=across", "b_across_k=False"),
    ),
    *of(
        "cuda_reference/matmul/stream_k.py",
        "cuda and stream_k_cuda and (cut or pairs)",
        ("as many pairs as blocks", 'config["BLOCKS"] // cluster\n    left', 'config["BLOCKS"]\n    left'),
        ("counters of one block of a pair", "* cluster * consumers, out)", "* consumers, out)"),
        ("the parts of one block of a pair", "2 * sharers * cluster, config", "2 * sharers, config"),
    ),
    *of(
        "cuda_reference/matmul/persistent.py",
        "cuda and stream_k_cuda and (cut or pairs)",
        ("a pair's tiles counted singly", 'config["BM"] * share_b, config["BN"] * share_a)', 'config["BM"], config["BN"])'),
    ),
]
