"""Broken CUDA kernels of TMA and wgmma whose blocks share tiles: wgmma_planes, conv2d's warp_specialized, cluster_split_k."""

from tests.mutants.mutant import of

MUTANTS = [
    *of(
        "cuda_reference/common/runs.cuh",
        "test_shared_tiles_cuda",
        ("a block's whole tiles are its first one only", "whole += gridDim.x / CLUSTER;", "whole += whole_tiles;"),
        ("every piece begins its tile", "const int first = int(at % of_tile);", "const int first = 0;"),
        ("a piece as long as the rest of the run", "int(min(int64_t(of_tile - first), end - at))", "int(end - at)"),
        ("one place for a run's beginning and end", "2 * block + (block == first && first_ends)", "2 * block"),
    ),
    *of(
        "cuda_reference/common/runs.cuh",
        "test_warp_specialized_cuda and pieces",
        ("every block of a pair walks alone", "const int own = blockIdx.x / CLUSTER;", "const int own = blockIdx.x;"),
        ("pairs pass over every second tile", "whole += gridDim.x / CLUSTER;", "whole += gridDim.x;"),
    ),
    *of(
        "cuda_reference/matmul/parts/shared_tiles.cuh",
        "test_shared_tiles_cuda or wgmma_planes_cuda and order_of_k",
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
        "test_shared_tiles_cuda or wgmma_planes_cuda and order_of_k",
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
    ),
    *of(
        "cuda_reference/matmul/parts/sums_of_others.cuh",
        "test_warp_specialized_cuda and pieces",
        ("parts of the first 64 rows for all", "* BLOCKS + m)", "* BLOCKS)"),
    ),
    *of(
        "cuda_reference/matmul/parts/shared_tiles.cuh",
        "test_warp_specialized_cuda and (pieces or sizes)",
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
        "cuda_reference/matmul/wgmma_planes.py",
        "test_shared_tiles_cuda",
        ("any number of parts", ', left * config["PARTS"])', ")"),
        ("parts of few tiles begin anywhere", '(sharers % left if left and config["PARTS"] > MANY else 0)', "0"),
        ("tiles of nothing shared", 'config["WAVES"]) if slices else 0', 'config["WAVES"])'),
        ("counters of one consumer", "(2 * sharers + left) * consumers, out)", "2 * sharers + left, out)"),
        ("the parts of half of a block's runs", "partial_sums(2 * sharers, ", "partial_sums(sharers, "),
        ("all blocks share, for the model", '({"sharers": sharers} if left else {})', "{}"),
        ("the same cut twice", "waves == 1 or streamed(count", "True or streamed(count"),
    ),
    *of(
        "cuda_reference/matmul/wgmma_planes.py",
        "test_matmul_shapes and wgmma_planes",
        (
            "tiles of the whole batch in each of its parts",
            "cut(problem, config, out.shape[0])",
            "cut(problem, config, problem.batch)",
        ),
    ),
    *of(
        "cuda_reference/conv2d/warp_specialized.py",
        "test_warp_specialized_cuda and pieces",
        ("as many pairs as blocks", 'config["BLOCKS"] // config["CLUSTER"]\n', 'config["BLOCKS"]\n'),
        ("counters of one block of a pair", "* cluster * consumers, out)", "* consumers, out)"),
        ("the parts of one block of a pair", "2 * sharers * cluster, config", "2 * sharers, config"),
    ),
    *of(
        "cuda_reference/matmul/persistent.py",
        "test_persistent_cuda and (cluster or pair)",
        ("a pair's tiles counted singly", 'config["BM"] * share_b, config["BN"] * share_a)', 'config["BM"], config["BN"])'),
    ),
]
