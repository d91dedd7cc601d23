"""Broken CUDA kernels: C, which TMA brings into stages after a tile's slices."""

from tests.mutants.mutant import of

MUTANTS = [
    *of(
        "cuda_reference/matmul/parts/addend.cuh",
        "persistent_addend_cuda",
        ("the rows of another consumer", "(i % SHARING * BLOCKS + i / SHARING / ACROSS)", "(i / ACROSS)"),
        ("the first columns in all boxes", "first_tile(i / SHARING % ACROSS, OF_A_BOX, TILES) * 8", "0"),
        (
            "boxes that begin where whole ones would",
            "first_tile(i / SHARING % ACROSS, OF_A_BOX, TILES)",
            "i / SHARING % ACROSS * OF_A_BOX",
        ),
        ("the boxes of the first consumer for all", "i * Block::SHARING + part;", "i * Block::SHARING;"),
        ("all boxes of a consumer in the first stage", "if (at < index / Addend::OF_A_STAGE) next();", "if (at < 0) next();"),
        ("a stage kept for ever", "if (!is_there()) return;\n        while", "return;\n        while"),
        ("a stage given back before all have seen that it landed", "            warpgroup_barrier();  //", "            //"),
        (
            "boxes read before they land",
            "if (++at < Addend::STAGES) mbarrier_wait(memory.full + ring.stage, ring.parity);",
            "++at;",
        ),
    ),
    *of(
        "cuda_reference/matmul/parts/boxed_result.cuh",
        "persistent_addend_cuda and any_addend",
        ("C that TMA does not bring left out", "epilogue.add_c(all,", "if (false) epilogue.add_c(all,"),
        (
            "C in code that has none of it",
            "(epilogue.c == nullptr && epilogue.activation <= RELU)",
            "epilogue.activation <= RELU",
        ),
        ("the first two tiles' addends in all of a box", "box_col + first * 8 + lane % 4 * 2", "box_col + lane % 4 * 2"),
        ("addends of the tile's first columns in all boxes", "box_col + first * 8 + lane % 4", "at.col + first * 8 + lane % 4"),
    ),
    *of(
        "cuda_reference/matmul/parts/boxed_result.cuh",
        "persistent_addend_cuda and may_be_c",
        ("a box written before the next one's C landed", "box % ACROSS == ACROSS - 2", "false"),
    ),
    *of(
        "cuda_reference/matmul/parts/boxed_result.cuh",
        "persistent_addend_cuda and exponential",
        (
            "C of the box's first tiles in all of it",
            "Boxes::add(results, epilogue.beta, added, first);",
            "Boxes::add(results, epilogue.beta, added, 0);",
        ),
        ("an exponential in straight code with C", "} else if (is_short) {", "} else if (epilogue.c == nullptr) {"),
        (
            "C that TMA brings left out of a quick activation",
            "IS_QUICK<typename Block::Out> && epilogue.c == nullptr && !addend.is_there()",
            "IS_QUICK<typename Block::Out> && epilogue.c == nullptr",
        ),
    ),
    *of(
        "cuda_reference/matmul/parts/boxed_result.cuh",
        "persistent_addend_cuda and each_number",
        ("C that TMA brings left out", "if (is_short && !addend.is_there()) {", "if (is_short) {"),
        ("all of C by pointers", "WHAT == C_IN_BOXES || (WHAT == EVERYTHING && added != nullptr)", "false"),
    ),
    *of(
        "cuda_reference/matmul/parts/producer.cuh",
        "persistent_addend_cuda",
        ("a batch's own matrix of a C that is one for all", "args.stride.c.batch == 0 ? 0 : batch);", "batch);"),
        ("bytes of a whole stage", "boxes * BLOCK_BYTES", "Addend::OF_A_STAGE * BLOCK_BYTES"),
        (
            "C that lands on slices",
            "mbarrier_wait(memory.empty + ring.stage, ring.parity ^ 1);\n            const int boxes",
            "const int boxes",
        ),
        ("every stage with the first boxes", "Addend::row(first + i), col", "Addend::row(i), col"),
    ),
    *of(
        "cuda_reference/matmul/parts/out_boxes.cuh",
        "persistent_addend_cuda and each_number",
        (
            "halves of C of another row",
            "place(box, half * 8 + lane / 4, (first + n) * 32",
            "place(box, lane / 4, (first + n) * 32",
        ),
        (
            "C of the next tile",
            "ldmatrix<false>(words, place(box, lane % 16, (first + n + lane / 16) * 16));",
            "ldmatrix<false>(words, place(box, lane % 16, (first + n + 1 - lane / 16) * 16));",
        ),
        ("C as it is", "results[0][n + i / 4][i % 4] += beta * widen", "results[0][n + i / 4][i % 4] += widen"),
    ),
    *of(
        "cuda_reference/matmul/parts/block_memory.cuh",
        "persistent_addend_cuda and each_number",
        ("all boxes where slices of A are", "return i < IN_A ? a_slices", "return true ? a_slices"),
    ),
    *of(
        "cuda_reference/matmul/parts/consumer.cuh",
        "persistent_addend_cuda",
        ("C of others not passed over", "piece.count + addend.stages()", "piece.count"),
    ),
    *of(
        "cuda_reference/matmul/persistent.cuh",
        "persistent_addend_cuda",
        ("C of a map where it is none", "c == nullptr && beta != 0 ? &c_map", "beta != 0 ? &c_map"),
    ),
    *of(
        "cuda_reference/matmul/persistent.py",
        "persistent_addend_cuda",
        ("C of rows that lie on each other by TMA", "c is not None and as_tma_reads(c, 1)", "c is not None"),
        ("C of every batch from a map of one", "else c if c.stride(0) else c[:1]", "else c[:1]"),
    ),
]
