"""Broken kernels of the gradients of conv2d."""

from tests.mutants.mutant import of

MUTANTS = [
    *of(
        "tritonkernels/conv2d/parts/rules.py",
        "cuda_reference and (test_second_order_is_torchs or batches and conv2d or first_and_second and conv2d)",
        ("the operand in the place of the incoming gradient", "grad if name not in forms else tensor", "tensor"),
        ("the memory format of the other operands", "form and form.memory_format", "None"),
        (
            "the gradient of a sum reaches one position",
            'grad[:, None, None].expand(forms["grad_output"].shape)',
            "grad[:, None, None]",
        ),
        (
            "the batch's filters behind each other",
            "return t.movedim(0, at).flatten(at, at + 1)",
            "return t.movedim(0, at + 1).flatten(at, at + 1)",
        ),
    ),
    *of(
        "tritonkernels/conv2d/parts/rules.py",
        "unneeded_second_order or precision_of_the_forward",
        ("gradients in ieee", 'if not name.endswith("_size")', 'if not name.endswith("_size") and name != "precision"'),
        (
            "torch's switch read by backward",
            'switches.settled(arguments["precision"], ',
            '(lambda *_: arguments["precision"])(',
        ),
    ),
    *of(
        "tritonkernels/torch_ops/recorded.py",
        "unneeded_second_order",
        ("gradients that nobody asked for", "if wanted[name] else None", "if forms[name] else None"),
    ),
    *of(
        "tritonkernels/conv2d_weight/parts/prepare.py",
        "test_tf32_is_rounded_to_nearest_and_really_used",
        ("tf32 computed as ieee", "precision = resolved(precision, input.dtype)", "precision = resolved(None, input.dtype)"),
    ),
    *of(
        "tritonkernels/conv2d_input/parts/phases.py",
        "cuda_reference and conv2d_input and direct",
        (
            "phases start a row late",
            "of_result=slice(first, None, stride)",
            "of_result=slice(min(first + 1, size - 1), None, stride)",
        ),
        ("padding of the first tap", "(reached[-1] * dilation - first", "(reached[0] * dilation - first"),
        (
            "taps of the phase before",
            "of_filter=slice(taps - 1 - reached[-1], None, every)",
            "of_filter=slice(0, None, every)",
        ),
        ("taps as far apart as in the filter", "spacing=dilation // common", "spacing=dilation"),
        (
            "what no tap reaches is left as it was",
            "tuple(found) if len(found) == all_phases else",
            "tuple(found) if found else",
        ),
    ),
    *of(
        "tritonkernels/conv2d_input/parts/flipped.py",
        "tritonkernels and conv2d_input and direct",
        ("rows not flipped", "(g.R - 1 - r) * weight.r", "r * weight.r"),
        ("columns not flipped", "(g.S - 1 - s) * weight.s", "s * weight.s"),
        ("channels of the first group", "c // g.c_per_group * g.k_per_group + k", "k"),
    ),
    *of(
        "cuda_reference/conv2d_input/parts/flipped.cuh",
        "cuda_reference and conv2d_input and direct",
        ("rows not flipped", "(g.R - 1 - r) * from.r", "r * from.r"),
        ("channels of the first group", "int64_t(c / c_per_group * k_per_group + k)", "int64_t(k)"),
        ("channels side by side", "filters[c * to.k + k * to.c", "filters[c * to.k + k * g.R * g.S"),
    ),
    *of(
        "tritonkernels/conv2d_weight/naive.py",
        "tritonkernels and conv2d_weight and naive and test_conv2d_gradients",
        ("first group of channels", "input, g, k // g.k_per_group, c", "input, g, 0, c"),
    ),
    *of(
        "tritonkernels/conv2d_weight/implicit_gemm.py",
        "tritonkernels and conv2d_weight and implicit_gemm",
        (
            "last positions dropped",
            "count_positions(g.N, g.P, g.Q, WIDE))",
            "count_positions(g.N, g.P, g.Q, WIDE) - 1)",
        ),
        ("columns in the order of contiguous channels", "s = column // g.c_per_group % g.S", "s = column % g.S"),
        ("splits overlap", "first = split * positions_per_split", "first = split * (positions_per_split - 1)"),
    ),
    *of(
        "tritonkernels/conv2d_weight/parts/gather.py",
        "tritonkernels and conv2d_weight and implicit_gemm",
        ("right edge of the image unmasked", "(w >= 0) & (w < g.W)", "(w >= 0)"),
        ("padding of the other axis", "s * g.dilation_w - g.padding_w", "s * g.dilation_w - g.padding_h"),
        ("dilation of the other axis", "s * g.dilation_w", "s * g.dilation_h"),
        ("group forgotten", "(group * g.c_per_group + c)", "c"),
    ),
    *of(
        "tritonkernels/conv2d/parts/splits.py",
        "tritonkernels and (conv2d_weight or conv2d_bias)",
        ("last split dropped", "inside, splits, total, BLOCK_S)", "inside, splits - 1, total, BLOCK_S)"),
        ("result taken for contiguous", "out.ptr + k * out.k + c * out.c", "out.ptr + k * C * R * S + c * R * S"),
    ),
    *of(
        "cuda_reference/conv2d_weight/naive.cuh",
        "cuda_reference and conv2d_weight and naive and test_conv2d_gradients",
        ("first group of channels", "(k / k_per_group * c_per_group + c) * stride.input.c", "c * stride.input.c"),
        ("stride of the other axis", "w = q * g.step_w", "w = q * g.step_h"),
    ),
    *of(
        "cuda_reference/conv2d_weight/implicit_gemm.cuh",
        "cuda_reference and conv2d_weight and implicit_gemm",
        ("barrier after staging removed", "        __syncthreads();  // the slice is complete\n", ""),
        (
            "barrier before staging removed",
            "        __syncthreads();  // the positions are located, and the previous slice has been read\n",
            "",
        ),
        ("positions past the end of a split", "of_grad[i] = first + i < end ?", "of_grad[i] = first + i < end + 1 ?"),
        ("padding of the other axis", "w[i] = at.q * g.step_w - g.padding_w", "w[i] = at.q * g.step_w - g.padding_h"),
    ),
    *of(
        "cuda_reference/conv2d_weight/parts/thin.cuh",
        "cuda_reference and conv2d_weight and implicit_gemm",
        (
            "last warp forgotten",
            "for (int warp = 1; warp < THREADS / 32; ++warp)",
            "for (int warp = 2; warp < THREADS / 32; ++warp)",
        ),
        ("barrier before warps are added up removed", "    __syncthreads();  // all warps have stored theirs\n", ""),
    ),
    *of(
        "cuda_reference/conv2d_weight/parts/tile.cuh",
        "cuda_reference and conv2d_weight and implicit_gemm",
        ("group forgotten", "return input + int64_t(group) * g.c_per_group() * stride.input.c;", "return input;"),
        ("partial sums in the order of columns", "place[i] = partial ? int64_t(c) * taps + tap :", "place[i] = partial ? n :"),
        ("results past the group", "if (m >= tile.count_m || n >= tile.count_n) return;", "if (n >= tile.count_n) return;"),
    ),
    *of(
        "cuda_reference/conv2d_weight/parts/operands.cuh",
        "cuda_reference and conv2d_weight and implicit_gemm",
        (
            "right edge of the image unmasked",
            "unsigned(h) < unsigned(g.H) && unsigned(w) < unsigned(g.W)",
            "unsigned(h) < unsigned(g.H) && w >= 0",
        ),
    ),
    *of(
        "cuda_reference/conv2d/parts/splits.cuh",
        "cuda_reference and (conv2d_weight or conv2d_bias)",
        ("last split dropped", "split < splits; split += ROWS", "split < splits - 1; split += ROWS"),
        ("a row of partial sums forgotten", "for (int row = 1; row < ROWS; ++row)", "for (int row = 2; row < ROWS; ++row)"),
    ),
    *of(
        "cuda_reference/conv2d/parts/splits.cuh",
        "more_splits",
        ("only the first splits added up", "split += ROWS", "split += splits"),
    ),
    *of(
        "cuda_reference/conv2d_bias/channel_sums.cuh",
        "cuda_reference and conv2d_bias",
        ("positions of the next split", "end = min(first + positions_per_split, positions)", "end = positions"),
        ("channels side by side", "at.image * stride.grad.n + k * stride.grad.c", "at.image * stride.grad.n + k"),
    ),
    *of(
        "tritonkernels/conv2d_bias/channel_sums.py",
        "tritonkernels and conv2d_bias",
        ("channels side by side", "grad.ptr + k * grad.c", "grad.ptr + k"),
        ("first image alone", "image * grad.n + p", "0 * grad.n + p"),
    ),
]
