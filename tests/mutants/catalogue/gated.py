"""Broken gated linear units: pairs of columns, and what belongs to which."""

from tests.mutants.mutant import of

SIZES = "test_gated and any_size"
MUTANTS = [
    *of(
        "tritonkernels/matmul/parts/epilogue.py",
        f"{SIZES} and tritonkernels-pipelined",
        ("the pair swapped", "        gate, value = result.reshape(", "        value, gate = result.reshape("),
        (
            "the activation of the product",
            "activated(gate, epilogue.ACTIVATION, epilogue.QUICK) * value",
            "activated(gate * value, epilogue.ACTIVATION, epilogue.QUICK)",
        ),
        ("columns of the result up to N", "sizes.OF_SIZES[1]) // 2)[None, :]", "sizes.OF_SIZES[1]))[None, :]"),
        (
            "the last column left out",
            "(cols < multiple(sizes.N, sizes.OF_SIZES[1]) // 2)",
            "(cols + 1 < multiple(sizes.N, sizes.OF_SIZES[1]) // 2)",
        ),
    ),
    *of(
        "tritonkernels/matmul/pipelined.py",
        f"{SIZES} and tritonkernels-pipelined",
        ("tiles of results as far apart as of sums", "span(col // 2, BLOCK_N // 2", "span(col, BLOCK_N // 2"),
    ),
    *of(
        "tritonkernels/matmul/parts/arguments.py",
        f"{SIZES} and tritonkernels-pipelined",
        ("quick in fp32", "problem.out_dtype.itemsize == 2, problem.is_gated", "True, problem.is_gated"),
    ),
    *of(
        "cuda_reference/matmul/parts/pairs.cuh",
        f"{SIZES} and (cuda_reference-pipelined or persistent)",
        ("the activation of values", "if (col % 2 == 0) change", "if (col % 2 == 1) change"),
        ("the activation of both", "if (col % 2 == 0) change", "if (true) change"),
        ("a gate by itself", "results[m][2 * n + i][row + 1];", "results[m][2 * n + i][row];"),
        ("values of the row below", "results[m][2 * n + i][row + 1];", "results[m][2 * n + i][(row + 3) % 4];"),
        ("one exchange of two", "for (int bit = 2; bit > 0; bit /= 2)", "for (int bit = 2; bit > 1; bit /= 2)"),
        ("exchanges the other way round", "for (int bit = 2; bit > 0; bit /= 2)", "for (int bit = 1; bit < 4; bit *= 2)"),
        (
            "the activation before the bias",
            "until_gates.c = nullptr, until_gates.activation = NONE;",
            "until_gates.c = nullptr;",
        ),
    ),
    *of(
        "cuda_reference/matmul/parts/tile_rows.cuh",
        f"{SIZES} and cuda_reference-pipelined",
        ("columns of the result up to N", "first_col / 2, M, N / 2);\n    }", "first_col / 2, M, N);\n    }"),
        (
            "rows up to N columns",
            "rows.store(results, epilogue, row, first_col / 2, M, N / 2)",
            "rows.store(results, epilogue, row, first_col / 2, M, N)",
        ),
        (
            "the bias of columns of results",
            "first_col + lane_col, M, N);\n                rows.store(results, epilogue, row, first_col / 2",
            "first_col / 2 + lane_col, M, N);\n                rows.store(results, epilogue, row, first_col / 2",
        ),
    ),
    *of(
        "cuda_reference/matmul/parts/consumer.cuh",
        f"{SIZES} and persistent",
        (
            "columns of the result up to N",
            "WarpRows<Out>{rows}.store(results, epilogue, row, col / 2, M, N / 2)",
            "WarpRows<Out>{rows}.store(results, epilogue, row, col / 2, M, N)",
        ),
    ),
    *of(
        "cuda_reference/matmul/parts/boxed_result.cuh",
        "test_gated and (any_size or kind_of_tile) and persistent",
        (
            "the bias of the first part of a box",
            "tile_bias.add(results, box_tile + first);\n                gate",
            "tile_bias.add(results, box_tile);\n                gate",
        ),
        ("a box where its sums are", "at.col / 2 + box_tile * 4,", "at.col / 2 + box_tile * 8,"),
        ("parts of a box over each other", "boxes.fill(to, gated, first / 2);", "boxes.fill(to, gated, 0);"),
    ),
    *of(
        "cuda_reference/matmul/parts/wgmma_tiles.py",
        "test_gated and kind_of_tile",
        ("swapped tiles, too", 'return not config.get("SWAPPED") and config["BN"] % 16', 'return config["BN"] % 16'),
        ("tiles of an odd number of eights", 'config["BN"] % 16 == 0 and config["BN"] // 2', 'config["BN"] // 2'),
    ),
    *of(
        "cuda_reference/matmul/cuda_cores.cuh",
        f"{SIZES} and cuda_cores",
        ("the pair of a neighbour", "sum[m][n] * sum[m][n + 1], sum", "sum[m][n] * sum[m][n + 2], sum"),
        (
            "columns of the result up to N",
            "col + n / 4 * Place::GAP_N) / 2, M, N / 2,",
            "col + n / 4 * Place::GAP_N) / 2, M, N,",
        ),
    ),
    *of(
        "tritonkernels/library.py",
        "test_gated and design_that_has_pairs",
        ("designs without pairs", "if problem.is_gated and not design.gates:", "if False:"),
    ),
    *of(
        "tritonkernels/choice/work.py",
        "test_gated and counts",
        ("as many results as sums", "of_a_result = 2 if problem.is_gated else 1", "of_a_result = 1"),
    ),
    *of(
        "tritonkernels/operations/matmul/prepare.py",
        "test_gated and refused",
        ("a c", "    if c is not None:\n        raise ArgumentError", "    if False:\n        raise ArgumentError"),
        ("odd columns", "if b.ndim < 2 or holds(b.shape[-1] % 2 == 1):", "if b.ndim < 2:"),
    ),
    *of(
        "tritonkernels/operations/matmul/rules.py",
        "test_gated and (gradients or transforms or ranks or refused)",
        (
            "the halves instead of pairs",
            "pairs[..., 0::2]) * pairs[..., 1::2]",
            "pairs.chunk(2, -1)[0]) * pairs.chunk(2, -1)[1]",
        ),
        ("a recorded c", "    check_gated(activation, b, c)\n    return functools", "    return functools"),
        ("pairs parted", 'None if label == "n" else label', "label"),
        ("a bias of a batch as c", "takes_no_c = c is not None or activation in GATED", "takes_no_c = c is not None"),
        ("half of the FLOP", "2 * (1 + (activation in GATED))", "2"),
    ),
    *of(
        "tritonkernels/operations/matmul/gated.py",
        "test_gated and which_column",
        ("values first", "torch.stack((gate, value), -1)", "torch.stack((value, gate), -1)"),
    ),
]
