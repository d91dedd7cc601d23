"""Calls that stay silent where torch raises."""

from tests.mutants.mutant import of

MUTANTS = [
    *of(
        "tritonkernels/library.py",
        "cuda_reference and test_out_counts_as_modified and gemv",
        ("out not counted as modified", 'if arguments["out"] is not None:', "if False:"),
        (
            "out counted on the whole way alone",
            "        result = self._call(operation, design, config, arguments)\n",
            "        known = len(self.plans._plans)\n"
            "        result = self._call(operation, design, config, arguments)\n"
            "        key = key_of((operation.name, self.switches()), (design, config, *arguments.values()))[0]\n"
            "        if known and self.plans.find(key):\n"
            "            return result\n",
        ),
    ),
    *of(
        "tritonkernels/validate.py",
        "test_as_torch and cuda_reference and (gemv or record)",
        ("tangents of the first level overlooked", "forward_ad._current_level < 0", "forward_ad._current_level < 1"),
        ("torch.func overlooked", "within = peek_interpreter_stack() is not None", "within = False"),
        ("new tensors inside of torch.func", "    if within:  #", "    if False:  #"),
    ),
    *of(
        "tritonkernels/conv2d/parts/autograd.py",
        "test_as_torch and would_record",
        ("tangents hidden by a Function", "    validate.no_transform(arguments)  #", "    #"),
    ),
    *of(
        "tritonkernels/validate.py",
        "test_an_addend_is_added",
        ("the addend ignored", "float(addend is not None) if beta is None", "0.0 if beta is None"),
    ),
]
