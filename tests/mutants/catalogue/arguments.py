"""Broken checks of arguments."""

from tests.mutants.mutant import of

TESTS = "test_every_tensor"
MUTANTS = [
    *of(
        "tritonkernels/operations/conv2d/prepare.py",
        TESTS,
        ("out over bias", '"bias": bias, "residual": residual}', '"residual": residual}'),
        ("out over the residual", '"bias": bias, "residual": residual}', '"bias": bias}'),
        ("a residual of another device", 'ranks=(len(shape),), like=("input", input))', "ranks=(len(shape),))"),
        ("a residual of another shape", "if any(map(differ, residual.shape, shape)):", "if False:"),
        ("a bias of another device", 'ranks=(1,), like=("input", input))', "ranks=(1,))"),
        ("a weight of another device", 'ranks=(4,), like=("input", input))', "ranks=(4,))"),
    ),
    *of(
        "tritonkernels/operations/conv2d_input/prepare.py",
        TESTS,
        (
            "out over the filter",
            '{"weight": weight, "grad_output": grad_output, "bias": bias}',
            '{"grad_output": grad_output, "bias": bias}',
        ),
        ("out over the bias", ', "bias": bias}', "}"),
        ("a gradient of another device", 'ranks=(len(input_size),), like=("weight", weight))', "ranks=(len(input_size),))"),
        ("a bias of another device", 'ranks=(1,), like=("weight", weight))', "ranks=(1,))"),
    ),
    *of(
        "tritonkernels/operations/conv2d_weight/prepare.py",
        TESTS,
        ("out over the gradient", "memory_format, input=input, grad_output=grad_output)", "memory_format, input=input)"),
    ),
    *of(
        "tritonkernels/operations/conv2d_bias/prepare.py",
        TESTS,
        ("out over the gradient", "device, grad_output=grad_output)", "device)"),
    ),
    *of(
        "tritonkernels/operations/gemm/prepare.py",
        TESTS,
        ("out over b", 'addend="c", a=a, b=b, c=c)', 'addend="c", a=a, c=c)'),
    ),
    *of(
        "tritonkernels/operations/gemv/prepare.py",
        TESTS,
        ("a scale of any device", '        validate.same_device("scale", scale, "a", a)\n', ""),
        ("x of another device", '    validate.same_device("x", x, "a", a)\n', ""),
        ("out over the scale", "x=x, y=y, scale=scale)", "x=x, y=y)"),
        (
            "scales of any type",
            '"scale", scale, dtypes=(torch.float32,)',
            '"scale", scale, dtypes=(torch.float32, scale.dtype)',
        ),
    ),
    *of(
        "tritonkernels/operations/matmul/prepare.py",
        TESTS,
        ("out over bias", '"bias": bias, "scale_a"', '"scale_a"'),
        ("out over a scale", '"scale_a": scale_a, "scale_b": scale_b,', '"scale_a": scale_a,'),
        ("scales of another device", '    validate.same_device(argument, value, "a", a)\n', ""),
        ("b of another device", '    validate.same_device("b", b, "a", a)\n', ""),
        (
            "a bias of another type",
            '"bias", bias, dtypes=(out_dtype,), ranks=(1,), like=("a", result_like)',
            '"bias", bias, dtypes=(out_dtype, bias.dtype), ranks=(1,)',
        ),
    ),
    *of(
        "tritonkernels/validate.py",
        TESTS,
        ("out of another device", "if out.device != device:", "if False:"),
    ),
]
