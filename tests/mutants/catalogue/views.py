"""Calls of an operation on wrong views: another size, padding, stride or tap, and what should be refused."""

from tests.mutants.mutant import of

MUTANTS = [
    *of(
        "tritonkernels/operations/views.py",
        "test_views and cuda_reference and (results or mistakes)",
        ("a stride more than the inputs have", "(size - 1) * step", "size * step"),
        ("padding of one side", "- 2 * padding", "- padding"),
        ("padding added", "- 2 * padding", "+ 2 * padding"),
        ("output_padding left out", "+ more + 1", "+ 1"),
        ("a result of the size of undilated filters", "apart * (taps - 1)", "(taps - 1)"),
        ("channels of one group", " * validate.groups(groups)", ""),
        ("other channels accepted", "if differ(weight.shape[0], c):", "if False:"),
        ("output_padding up to the dilation", "if more >= step:", "if False:"),
        ("output_padding of any size", "if more >= max(step, apart):", "if False:"),
        ("empty results accepted", "if holds(size < 1) or holds(result < 1):", "if False:"),
        ("a view of out returned", "restored(result) if out is None else out", "restored(result)"),
        ("errors in the words of the gradient", "error.reworded(view.words)", "error"),
    ),
    *of(
        "tritonkernels/operations/views.py",
        "test_views and torch_fx",
        ("torch.fx's values taken for mistakes", "if has_torch_function(traced):", "if False:"),
    ),
    *of(
        "tritonkernels/operations/volumes.py",
        "test_views and cuda_reference and (results or refused)",
        ("filters that span some of the depth", "v.padding[0] or not holds(v.outputs(0) == 1)", "v.padding[0]"),
        ("padding of a spanned depth ignored", "v.padding[0] or not holds(", "not holds("),
        ("slices between those of the taps", ": v.extent(0) : v.dilation[0]", ": v.extent(0)"),
        ("all slices in the batch", ":: v.stride[0]", "::"),
        ("slices and images exchanged", "unflatten(0, slices.shape[:2]).transpose(1, 2)", "unflatten(0, slices.shape[:2])"),
        ("padding of depth ignored", " and self.padding[axis] == 0", ""),
        ("rows next to each other", "(1, width), lambda", "(1, 1), lambda"),
        ("slices next to each other", "(height, 1), lambda", "(1, 1), lambda"),
        ("a row of zeros for a slice", "v.padding[axis] // 2 * times", "v.padding[axis] // 2"),
        ("zeros of both sides on each", "v.padding[axis] // 2 * times", "v.padding[axis] * times"),
        ("stride of rows ignored", "v.stride[1:] == (1, 1)", "v.stride[2] == 1"),
        ("stride of columns ignored", "v.stride[1:] == (1, 1)", "v.stride[1] == 1"),
        ("stride of slices ignored", "v.stride[:2] == (1, 1)", "v.stride[1] == 1"),
        ("uneven padding taken for even", "return self.padding[axis] % 2 == 0", "return True"),
        ("copies instead of views", "if merges(t, dim) or holds(t.numel() == 0) else None", "if True else None"),
        ("a batch of one for none", "if input.ndim == 5 else", "if True else"),
    ),
    *of(
        "tritonkernels/operations/conv2d_input/phases.py",
        "cuda_reference and test_the_bias_of_a_gradient and implicit_gemm",
        ("no bias where no tap reaches", "slice(0), *self.taps)], bias, out", "slice(0), *self.taps)], None, out"),
    ),
    *of(
        "tritonkernels/operations/conv2d/rules.py",
        "cuda_reference and first_and_second and conv_transpose2d",
        ("the bias's gradient of the operand", "ops.conv2d_bias(grad)", "ops.conv2d_bias(g)"),
    ),
]
