"""Broken CUDA kernels: matmul's lessons of Hopper, wgmma to in_turn. Each file has its own text of what they share.

Four things make no difference in the emulation, which runs a warpgroup's wgmma once all its threads have come: the barrier
after wgmma's copies, the __syncwarp before an aligned barrier of the cluster, that pairs of results are aligned, and that tma
requests nothing beyond K, which would land after the block's end.
"""

from tests.mutants.mutant import of

RINGS = "tma", "specialized", "tile_loop", "multicast", "in_turn"
SPECIALISED, WALKS, CLUSTERS = RINGS[1:], RINGS[2:], RINGS[3:]
TESTS = "test_hopper_ladder_cuda"
MEMORY = "test_no_access_outside and cuda_reference and matmul"


def each(names, *edits):
    return [mutant for name in names for mutant in of(f"cuda_reference/matmul/{name}.cuh", TESTS, *edits)]


EMPTY = "        mbarrier_wait(empty + stage, n / STAGES % 2 ^ 1);  // of the round before; in the first it returns at once\n"
FULL = "mbarrier_wait(full + stage, n / STAGES % 2);"
MULTIPLIED = "wgmma_wait<1>();  // the slice before has been multiplied"
GIVEN_BACK = "if (slice > 0) give_back((n - 1) % STAGES);"

MUTANTS = [
    *each(
        ("wgmma",),
        ("a slice multiplied before it has landed", "        cp_async_wait<0>();\n", ""),
        ("copies that the async proxy does not see", "        tma_store_fence();  //", "        //"),
        ("a slice overwritten while it is multiplied", "        wgmma_wait<0>();  //", "        //"),
        ("chunks in their own places", "(chunk ^ row % 8)", "chunk"),
        ("elements beyond K", "max(0, min(depth - chunk * CHUNK, CHUNK))", "CHUNK"),
        ("every second slice", "++n) {", "n += 2) {"),
    ),
    *each(
        RINGS,
        ("barriers that the copy engine does not know of", "        mbarrier_init_fence();\n", ""),
        ("a slice multiplied before it has landed", FULL, ""),
        ("the parity of the first round for ever", FULL, "mbarrier_wait(full + stage, 0);"),
        ("full without B", "(BM + BN) * BK", "BM * BK"),
        ("products of the slice before not waited for", MULTIPLIED, ""),
        ("results read before the last products", "wgmma_wait<0>();", ""),
        ("a step of k twice", "step * 32) / 16, b + step * 32 / 16", "step * 32) / 16, b"),
    ),
    *each(
        RINGS[:3],
        ("barriers used before they are made", "    __syncthreads();\n", ""),
    ),
    *each(
        ("tma",),
        ("a stage filled while it is read", "if (n > 0) request(n - 1 + STAGES);", "request(n + STAGES);"),
    ),
    *each(
        SPECIALISED,
        ("nobody waits until a stage is empty", EMPTY, ""),
    ),
    *each(
        ("specialized",),
        ("a stage given back while it is read", "if (n > 0) give_back((n - 1) % STAGES);", "give_back(n % STAGES);"),
        ("a stage never given back", "if (n > 0) give_back((n - 1) % STAGES);", ""),
    ),
    *each(
        ("specialized", "tile_loop"),
        ("a stage empty for one consumer", "mbarrier_init(empty + stage, CONSUMERS);", "mbarrier_init(empty + stage, 1);"),
    ),
    *each(
        RINGS[1:4],
        ("both consumers multiply the same rows", "a_slices + warpgroup * ROWS * BK", "a_slices"),
    ),
    *each(
        WALKS,
        ("a stage given back while it is read", GIVEN_BACK, "give_back(n % STAGES);"),
        ("the last stage of a tile never given back", "give_back((n - 1) % STAGES);  //", "//"),
    ),
    *each(
        CLUSTERS,
        ("barriers that the other block does not have yet", "cluster_barrier();  // also", "__syncthreads();  // also"),
        ("a block that ends before the other has arrived", "    cluster_barrier();  // the other", "    // the other"),
        ("the same half of B from both blocks", "tile.n * BN + rank * PART, 0,", "tile.n * BN, 0,"),
        ("B for its own block only", "(1 << CLUSTER) - 1", "1 << rank"),
        (
            "a stage given back to its own block only",
            "mbarrier_arrive_at(empty + stage, threadIdx.x % 128);",
            "mbarrier_arrive_at(empty + stage, rank);",
        ),
    ),
    *each(
        ("multicast",),
        (
            "a stage empty for one block",
            "mbarrier_init(empty + stage, CLUSTER * CONSUMERS);",
            "mbarrier_init(empty + stage, CONSUMERS);",
        ),
    ),
    *each(
        ("in_turn",),
        ("a stage empty for one block", "mbarrier_init(empty + stage, CLUSTER);", "mbarrier_init(empty + stage, 1);"),
        ("nobody waits for a turn", "            mbarrier_wait(turns + warpgroup, turn);\n", ""),
        ("a second turn that comes at once", "            turn ^= 1;\n", ""),
        ("a turn that is never passed", "if (threadIdx.x % 32 == 0) mbarrier_arrive(turns + (1 - warpgroup));", ""),
        ("a turn passed by one warp", "mbarrier_init(turns + consumer, 4);", "mbarrier_init(turns + consumer, 1);"),
        ("the other's slices", "            n += slices;  // past", "            // past"),
    ),
    *of(
        "cuda_reference/matmul/parts/plain_result.cuh",
        TESTS,
        ("rows beyond M", "            if (row + half * 8 >= M) break;\n", ""),
        ("a pair over the edge", "if (pairs && n + 1 < N) {", "if (pairs) {"),
        ("a first column beyond N", "if (n < N) line", "line"),
        ("a second column beyond N", "if (n + 1 < N) line", "line"),
        ("pairs across columns", "of_out.col == 1 && of_out.row", "of_out.row"),
        ("C without beta", "+= beta * float", "+= float"),
        ("alpha left out", "            number *= alpha;\n", ""),
    ),
    *of(
        "cuda_reference/matmul/parts/plain_result.cuh",
        TESTS,
        ("rows of C beyond M", "r < M && n < N) number", "n < N) number"),
        ("columns of C beyond N", "r < M && n < N) number", "r < M) number"),
    ),
    *of(
        "cuda_reference/matmul/wgmma.cuh",
        MEMORY,
        ("rows beyond the operand", "row < rows ? ", "true ? "),
    ),
]
