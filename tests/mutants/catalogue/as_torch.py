"""Calls that stay silent where torch raises, or that torch cannot see, record or batch."""

from tests.mutants.mutant import of

MUTANTS = [
    *of(
        "tritonkernels/library.py",
        "cuda_reference and test_out_counts_as_modified and gemv",
        ("out not counted as modified", 'if arguments["out"] is not None:', "if False:"),
        (
            "out counted on the whole way alone",
            "            result = self._unplanned(key, plan is WATCH, operation, design, config, arguments)\n",
            "            result = self._unplanned(key, plan is WATCH, operation, design, config, arguments)\n"
            "        else:\n"
            "            return result\n",
        ),
    ),
    *of(
        "tritonkernels/library.py",
        "test_a_plan_does_not_hide_a_gradient",
        ("a plan hides a gradient", "tensor.is_meta or tensor.requires_grad", "tensor.is_meta"),
    ),
    *of(
        "tritonkernels/torch_ops/operator.py",
        "cuda_reference and (test_modes_see or forward_mode) and gemm or jit_trace or lowered and conv2d_bias",
        ("modes overlooked", "_C._len_torch_dispatch_stack()\n        or", "False or"),
        ("traces of torch.jit overlooked", "        or _C._get_tracing_state() is not None\n", ""),
        ("forward-mode levels overlooked", "        or forward_ad._current_level >= 0\n", ""),
        ("autocast overlooked", "or _C._is_any_autocast_enabled()", "or False"),
    ),
    *of(
        "tritonkernels/torch_ops/operator.py",
        "cuda_reference and test_tangents_of_compiled_code and gemm",
        ("tangents of compiled code overlooked", "_unpack_dual(tensor, 0)[1] is not None", "is_inference(tensor)"),
    ),
    *of(
        "tritonkernels/torch_ops/rules.py",
        "test_gradient_layouts and cuda_reference and (of_products and columns or copies)",
        ("all gradients by rows", "if not self.by_columns:", "if True:"),
        ("rows and columns of a shared matrix not exchanged", "torch.Size((*batch, n, m))", "torch.Size((*batch, m, n))"),
    ),
    *of(
        "tritonkernels/layouts.py",
        "test_gradient_layouts and cuda_reference",
        ("padded columns taken for whole ones", " and holds(tensor.stride(-1) == tensor.shape[-2])", ""),
        ("images of one channel or pixel always contiguous", "return holds(c * h * w != 1) and", "return False and"),
    ),
    *of(
        "tritonkernels/torch_ops/operator.py",
        "cuda_reference and test_a_profile_names and gemm",
        ("profiles overlooked", "_C._autograd._profiler_enabled()", "False"),
    ),
    *of(
        "tritonkernels/problem.py",
        "cuda_reference and test_all_sizes and gemm",
        ("traces limited to some sizes", "    return isinstance(size, int)", "    return True"),
    ),
    *of(
        "tritonkernels/operations/matmul/rules.py",
        "cuda_reference and test_gradients_of_empty and matmul",
        ("no gradient of empty products", "reshape(count, a_shape[-1])", "reshape(-1, a_shape[-1])"),
    ),
    *of(
        "tritonkernels/torch_ops/operator.py",
        "cuda_reference and (only_what_is_wanted or transforms_of_torch_func) and gemm or recorded_into",
        (
            "gradients into an out dropped",
            "        if out is not None:\n            self._refuse",
            "        if False:\n            self._refuse",
        ),
        ("every tensor kept", "bool(wanted - {name})", "bool(wanted)"),
        ("transforms overlooked", "peek_interpreter_stack() is not None", "False"),
    ),
    *of(
        "tritonkernels/torch_ops/recorded.py",
        "cuda_reference and transforms_of_torch_func and gemm",
        ("the levels around a transform dropped", "if peek_interpreter_stack() is None:", "if True:"),
    ),
    *of(
        "tritonkernels/operations/gemm/rules.py",
        "cuda_reference and (first_and_second_order or forward_mode or operand_may_have) and gemm",
        ("a gradient without alpha", "ops.gemm, grad, b.mT, alpha=alpha)", "ops.gemm, grad, b.mT)"),
        ("a gradient without beta", '"c": lambda: scaled(grad, beta)', '"c": lambda: grad'),
        ("a tangent without beta", "forms, beta, **_: scaled(tangent, beta)", "forms, beta, **_: tangent"),
        ("the batch of C at its end", 'padded(front(c, dims["c"]), 2)', 'front(c, dims["c"])'),
    ),
    *of(
        "tritonkernels/operations/matmul/rules.py",
        "cuda_reference and (first_and_second_order or operand_may_have) and matmul",
        ("the gradient of a row of B", "found if len(b_shape) > 1 else found[..., 0]", "found"),
        ("one matrix taken for a batch", "if len(b_shape) <= 2 and", "if len(b_shape) <= 3 and"),
        ("the activation not recorded", "if activation in (*ACTIVATIONS,) else None", "if False else None"),
    ),
    *of(
        "tritonkernels/batches.py",
        "test_uniform_batches",
        ("sizes of one hide their neighbours", "tensors = [t.squeeze(ones) for t in tensors]", "pass"),
    ),
    *of(
        "tritonkernels/validate.py",
        "test_an_addend_is_added",
        ("the addend ignored", "float(addend is not None) if beta is None", "0.0 if beta is None"),
    ),
    *of(
        "tritonkernels/torch_ops/sharding.py",
        "test_shares_of_four_processes_make_the_whole",
        ("an addend of every rank", "else Partial()\n", "else Replicate()\n"),
        ("an activation of partial results", 'values.get("activation") is None', "True"),
        ("an addend of integers divided", "all(values[name].tensor_meta.dtype.is_floating_point for name in addends)", "True"),
        ("calls of another stride are one", "static_argnum=0", "static_argnum=100"),
        ("calls of another type are one", "static_kwargkey=options", "static_kwargkey=None"),
        ("all groups on every rank", "values[GROUPS] // ranks", "values[GROUPS]"),
        ("groups that are no multiple of the ranks", "values[GROUPS] % values[operator.tensors[0]].mesh.size() == 0", "True"),
    ),
    *of(
        "tritonkernels/torch_ops/rules.py",
        "test_shares_of_four_processes_make_the_whole",
        ("a dimension of size 1 shared out", "None if size == 1 else label", "label"),
    ),
    *of(
        "tritonkernels/torch_ops/operator.py",
        "test_errors_are_those_of_whole_tensors",
        ("an error of DTensor's around ours", "if type(error) is RuntimeError and", "if False and"),
    ),
]
