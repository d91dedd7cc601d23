"""Broken Splits: planes of an operand that are made once (operations/matmul/split.py)."""

from tests.mutants.mutant import of

MUTANTS = [
    *of(
        "tritonkernels/operations/matmul/split.py",
        "reused_operand and tensor_that_changed",
        ("writes unseen", "return tensor._version, tensor.data_ptr()", "return tensor.data_ptr()"),
        ("other memory unseen", "tensor._version, tensor.data_ptr(), ", "tensor._version, "),
        ("other strides unseen", "tensor.shape, tensor.stride()\n", "tensor.shape\n"),
    ),
    *of(
        "tritonkernels/operations/matmul/split.py",
        "reused_operand and refusals",
        ("any precision", "if precision not in (None, b.precision):", "if False:"),
        ("tensors of inference", "if b.is_inference():", "if False:"),
        ("tensors of other classes", "if not is_plain(b) or is_functorch_wrapped_tensor(b):", "if False:"),
    ),
    *of(
        "tritonkernels/operations/matmul/split.py",
        "reused_operand and (gradients or wraps or negated or what_it_says)",
        ("the caller's precision", "return tensor, b.precision, {", "return tensor, precision, {"),
        ("gradients of B forgotten", "if tensor.requires_grad and torch.is_grad_enabled():", "if False:"),
        ("no gradients of B wanted", "if tensor.requires_grad and torch.is_grad_enabled():", "if tensor.requires_grad:"),
        ("signs as they lie", ".detach().resolve_neg()", ".detach()"),
        ("bytes of planes alone", "for t in (self.planes, self.ranges)", "for t in (self.planes,)"),
    ),
    *of(
        "tritonkernels/operations/matmul/split.py",
        "reused_operand and planes_of_another",
        ("planes of any form", "if given != (None", "if False and given != (None"),
        ("planes of any strides", "t.device, t.is_contiguous())", "t.device, True)"),
    ),
    *of(
        "tritonkernels/operations/matmul/prepare.py",
        "reused_operand and planes_of_another",
        ("out over planes", '"scale_b": scale_b, **planes}', '"scale_b": scale_b}'),
        ("planes unchecked", "        check_planes(b, precision, b_planes, b_ranges)\n", "        pass\n"),
    ),
    *of(
        "tritonkernels/operations/matmul/prepare.py",
        "reused_operand and (edges or without_b or not_split_again)",
        (
            "planes without alpha",
            "None, None, None\n",
            "None, None, b_planes\n",
        ),
        ("planes in IEEE arithmetic", 'precision, b_planes = "ieee", None', 'precision = "ieee"'),
        ("planes that no problem has", "b_split=b_planes is not None", "b_split=False"),
    ),
    *of(
        "tritonkernels/operations/matmul/schemes.py",
        "reused_operand and (either or not_split_again)",
        ("planes in another order", ".permute(2, 0, 1, 3)", ".flip(2).permute(2, 0, 1, 3)"),
    ),
    *of(
        "tritonkernels/library.py",
        "reused_operand and any_design and bits",
        ("planes for designs that read B", " if design.reads_split else _of_b_itself(design.launches)", ""),
        (
            "planes for none",
            "design.launches if design.reads_split else _of_b_itself(design.launches)",
            "_of_b_itself(design.launches)",
        ),
        ("ranges for designs that read B", "tensors[:-2] if problem.b_split", "tensors[:-1] if problem.b_split"),
    ),
    *of(
        "tritonkernels/operations/matmul/work.py",
        "reused_operand and (not_split_again or predicted)",
        ("the splitting of B counted", "[: 1 if problem.b_split else 2]", ""),
    ),
    *of(
        "tritonkernels/library.py",
        "tuning_of_a_split",
        ("planes for designs that read B, in tuning", " if design.reads_split else _of_b_itself(design.launches)", ""),
    ),
    *of(
        "tritonkernels/operations/views.py",
        "(reused_operand and not_split_again) or tuning_of_a_split",
        ("explain knows no Split", "return op, *unpacked_call(args, kwargs)", "return op, args, kwargs"),
    ),
    *of(
        "tritonkernels/matmul/planes.py",
        "reused_operand and (not_split_again or what_follows) and tritonkernels",
        ("B split again", "if problem.b_split:", "if False:"),
        ("rows of B as long as K", "[None, :] * b.row", "[None, :] * sizes.K"),
    ),
    *of(
        "tritonkernels/matmul/parts/fp32_planes.py",
        "reused_operand and either",
        ("rows of planes as long as K", "rows[:, None] * planes.row", "rows[:, None] * padded_k"),
    ),
    *of(
        "cuda_reference/matmul/planes.py",
        "reused_operand and not_split_again",
        ("B split again", "if problem.b_split:", "if False:"),
    ),
    *of(
        "cuda_reference/matmul/persistent_planes.py",
        "reused_operand and bits_of_the_plain and persistent",
        ("B split again, into the low plane", "if not problem.b_split:", "if problem.b_split:"),
    ),
    *of(
        "tritonkernels/nn/kept_split.py",
        "kept_split and tritonkernels and (changed or count or stream or training)",
        ("planes of another weight", "kept and kept.weight is weight and", "kept and"),
        ("planes of another stream", " and kept.stream == stream", ""),
        ("planes of a weight that changed", " and is_of(kept.split, b)", ""),
        ("planes of a weight with a gradient", "if weight.requires_grad and torch.is_grad_enabled():", "if False:"),
        ("planes while weights are trained", "        module.kept = None\n        return b", "        return b"),
    ),
    *of(
        "tritonkernels/nn/kept_split.py",
        "kept_split and (no_parameters or transforms or unasked or jit or make_fx)",
        ("planes of what is no parameter", 'module._parameters.get("weight")', "module.weight"),
        ("planes of an inference tensor", " and not weight.is_inference()", ""),
        ("planes without memory", "is_plain(weight) and ", ""),
        ("planes of any type", " and weight.dtype == torch.float32", ""),
        ("planes of any precision", " and precision in SCHEMES", ""),
        ("planes in traces", "return is_traced() or (", "return ("),
    ),
    *of(
        "tritonkernels/nn/kept_split.py",
        "kept_split and once",
        ("planes for one call", "kept and kept.weight is weight and", "False and"),
    ),
    *of(
        "tritonkernels/nn/modules.py",
        "kept_split and tritonkernels and (compile or fx or unasked or copies or restore or freed)",
        ("planes unasked", "if self.cache_split and batch is input", "if batch is input"),
        ("planes in compiled code", " and not torch.compiler.is_compiling():", ":"),
        ("planes of a Proxy", " and batch is input and", " and"),
        ("planes in copies", ' if name != "kept"}', "}"),
        ("planes of a weight that is gone", "        self.kept = None\n        return super()", "        return super()"),
        ("planes of torch's module", '(*cls.own, "kept")', "cls.own"),
        ("options of convolutions", "{name: options[name] for name in cls.own}", "options"),
    ),
    *of(
        "tritonkernels/nn/swap.py",
        "kept_split and replace and tritonkernels",
        ("no planes for what replace swaps", '"cache_split": cache_split}', '"cache_split": False}'),
    ),
    *of(
        "cuda_reference/nn.py",
        "kept_split and replace and cuda_reference",
        ("no planes for what replace swaps", "inputs, budget, cache_split)", "inputs, budget)"),
    ),
    *of(
        "tritonkernels/torch_ops/operator.py",
        "reused_operand and (tangent or wraps)",
        ("planes of B with its tangent", '*self.rules.constants, "beta"', '"beta"'),
        (
            "planes cast",
            'name.startswith(("scale", "b_"))',
            'name.startswith("scale")',
        ),
    ),
]
