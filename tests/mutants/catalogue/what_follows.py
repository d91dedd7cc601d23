"""Broken residuals and activations of conv2d."""

from tests.mutants.mutant import of

ACTIVATED = "acc = activated(acc, ACTIVATION, out.ptr.dtype.element_ty.primitive_bitwidth == 16)\n"
ADDED = """    if added is not None:
        acc += widened(load_along(False, *added, pixel_inside & k_inside), acc.dtype)
"""
FOLLOW = """        if constexpr (FOLLOWS) {
            const T* const of_group = residual == nullptr ? nullptr : residual + group * filters_of_group * of_residual.c;
            const Follows<T> follows{of_group, of_residual, activation, results.pixels, results.channels, g.P, g.Q};
            follow(sum, results, follows, first_pixel + row, first_filter + col);
        }
"""
LAST = "        if (!::add_splits<THREADS, 2>(sum, partial, counters)) return;\n"
MUTANTS = [
    *of(
        "tritonkernels/conv2d/implicit_gemm.py",
        "test_what_follows and tritonkernels",
        ("the activation before the residual", f"{ADDED}    {ACTIVATED}", f"    {ACTIVATED}{ADDED}"),
        (
            "the activation in each split",
            "tl.store(place + split * SIZE, acc)",
            "tl.store(place + split * SIZE, activated(acc, how.ACTIVATION, False))",
        ),
        ("the residual at the result's strides", "residual.ptr, places(residual,", "residual.ptr, places(out,"),
        (
            "the residual of the first group",
            "places(residual, image, p, q, group * g.k_per_group + k, OUT_AXIS)",
            "places(residual, image, p, q, k, OUT_AXIS)",
        ),
    ),
    *of(
        "tritonkernels/conv2d/parts/tile.py",
        "test_what_follows and tritonkernels",
        (
            "the activation before the residual",
            "sums += widened(added, sums.dtype)",
            "sums = activated(sums, ACTIVATION, False) + widened(added, sums.dtype)",
        ),
        ("the residual's channels side by side", "k * residual.c", "k"),
        ("the residual's rows side by side", "p * residual.h", "p"),
    ),
    *of(
        "tritonkernels/conv2d/parts/cuda_cores.py",
        "test_cuda_cores_triton and follows",
        (
            "the activation in each split",
            "gl.store(place + split * SIZE, acc)",
            "gl.store(place + split * SIZE, activated(acc, after.ACTIVATION, False))",
        ),
        ("the residual at the result's strides", "residual.ptr + _places(residual,", "residual.ptr + _places(out,"),
    ),
    *of(
        "tritonkernels/conv2d/parts/pixel_boxes.py",
        "test_warp_specialized and follows",
        ("no activation of whole tiles", "        acc = activated(acc, tile.ACTIVATION, tile.QUICK)\n", ""),
        ("the residual by 16 bytes wherever it lies", "tile.ADDED_WORDS, g", "tile.WORDS, g"),
        ("the residual at the result's strides", "_places(residual, position,", "_places(out, position,"),
    ),
    *of(
        "tritonkernels/conv2d/warp_specialized.py",
        "test_warp_specialized and follows",
        (
            "the residual of shared tiles left out",
            "        total += tl.load(added, mask=inside, other=0)\n",
            "        total += 0\n",
        ),
        ("the activation of shared tiles left out", '"ACTIVATION": problem.activation, "WIDE"', '"ACTIVATION": None, "WIDE"'),
    ),
    *of(
        "tritonkernels/operations/conv2d/as_matmul.py",
        "test_what_follows and matmul",
        (
            "a bias lost where there is a residual",
            "channels_inside or (bias is not None and residual is not None)",
            "channels_inside",
        ),
        ("the activation left out", '"activation": problem.activation}', '"activation": None}'),
    ),
    *of(
        "tritonkernels/operations/conv2d/shapes.py",
        "test_what_follows and refuse",
        ("designs without an epilogue chosen", "if problem.after else None", "if False else None"),
    ),
    *of(
        "tritonkernels/operations/conv2d/rules.py",
        "test_what_follows or test_batches or test_gradients",
        ("no gradient of the residual", '"residual": lambda: grad', '"residual": lambda: 0 * grad'),
        ("a batch of residuals along images", "as_groups(added, added_at, size, 1)", "as_groups(added, added_at, size, 0)"),
    ),
    *of(
        "cuda_reference/conv2d/parts/residual.cuh",
        "test_what_follows and cuda_reference",
        ("the residual's channels side by side", "place(pixel) + channel * stride.c", "place(pixel) + channel"),
        ("the residual of the first image", "pixel / Q / P * stride.n", "0 * stride.n"),
        ("rows of one image side by side", "p * stride.h + q * stride.w;", "p * Q + q * stride.w;"),
        ("channels of one image side by side", "image * stride.n + channel * stride.c", "image * stride.n + channel"),
        ("the first of all images", "residual + image * stride.n", "residual + 0 * stride.n"),
        (
            "no activation",
            "epilogue(nullptr, nullptr, nullptr, 1, 0, activation,",
            "epilogue(nullptr, nullptr, nullptr, 1, 0, 0,",
        ),
    ),
    *of(
        "cuda_reference/conv2d/parts/residual.cuh",
        "past_the_residual and cuda_reference",
        ("pixels past the last", "min(first_pixel + row, pixels - 1)", "first_pixel + row"),
        ("channels past the last", "min(first_channel + col, channels - 1)", "first_channel + col"),
        ("channels of one image past the last", "min(first_channel + channel, channels - 1)", "first_channel + channel"),
        ("rows of one image past the last", "min(first_p + p, P - 1)", "first_p + p"),
        ("columns of one image past the last", "min(first_q + q, Q - 1)", "first_q + q"),
    ),
    *of(
        "cuda_reference/conv2d/parts/runs.cuh",
        "(past_the_residual or every_residual) and cuda_reference and depthwise",
        ("the residual past the last row", "if (p + j < g.P) load_together(added", "load_together(added"),
        ("the residual of a run's first row", "at + j * follows.stride.h", "at"),
    ),
    *of(
        "cuda_reference/conv2d/depthwise_channels.py",
        "test_what_follows and cuda_reference and depthwise",
        ("the residual by vectors wherever it lies", "(input, out, residual)", "(input, out)"),
    ),
    *of(
        "cuda_reference/conv2d/grouped.py",
        "test_what_follows and cuda_reference and grouped",
        ("the residual by vectors wherever it lies", "kt, input, out, residual)", "kt, input, out)"),
    ),
    *of(
        "cuda_reference/conv2d/grouped.cuh",
        "test_what_follows and cuda_reference and grouped",
        ("the residual of the first group's vectors", "follows, image, group * per_group + k,", "follows, image, k,"),
        ("the residual of the first group", "(for_all, image, group * per_group + k,", "(for_all, image, k,"),
        ("the residual of the next group's channels", "(group + 1) * per_group, g.P", "g.K + per_group, g.P"),
    ),
    *of(
        "cuda_reference/conv2d/register_blocked.cuh",
        "test_what_follows and cuda_reference and register_blocked",
        ("the residual of neighbouring columns", "UNIT ? j : j * LANES_W)", "j)"),
        ("the residual of the first tile's channels", "tile.image, first_k, tile.p", "tile.image, 0, tile.p"),
        ("the residual past the last channel", "0, first_k + left_k, g.P", "0, g.K + KT, g.P"),
    ),
    *of(
        "cuda_reference/conv2d/implicit_gemm.cuh",
        "test_what_follows and cuda_reference",
        ("what follows, in each split", LAST + FOLLOW, FOLLOW + LAST),
        ("the residual of the first group", "residual + group * filters_of_group", "residual + 0 * filters_of_group"),
        (
            "the activation before the residual",
            "    follows.add(for_all, pixel + lane_row(), first);\n    follows.activate(for_all);\n",
            "    follows.activate(for_all);\n    follows.add(for_all, pixel + lane_row(), first);\n",
        ),
        ("the activation of tensor cores' sums left out", "    to.activation = follows.activation;\n", ""),
    ),
    *of(
        "cuda_reference/conv2d/parts/image_results.cuh",
        "test_what_follows and cuda_reference and warp_specialized",
        ("the residual of the first channels", "filter + FIRST * 8 + lane % 4 * 2", "filter + lane % 4 * 2"),
        (
            "the residual of the first warp's positions",
            "position + threadIdx.x % 128 / 32 * ROWS + lane / 4;",
            "position + lane / 4;",
        ),
    ),
]
