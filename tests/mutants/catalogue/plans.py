"""Broken plans of repeated calls: incomplete keys, and plans that repeat something else."""

from tests.mutants.mutant import of

MUTANTS = [
    *of(
        "tritonkernels/plans.py",
        "keys_differ",
        (
            "alignment left out of the key",
            "value.dtype, value.device, alignment, value",
            "value.dtype, value.device, value",
        ),
        (
            "the numbers of a config left out of the key",
            "(kind, repr(value))",
            "(kind, repr(value if kind is not dict else [*value]))",
        ),
        ("strides left out of the key", "(value.shape, value.stride(), ", "(value.shape, "),
        ("dtype left out of the key", "value.dtype, value.device", "value.device"),
        ("device left out of the key", "value.dtype, value.device", "value.dtype"),
        ("lazy sign left out of the key", "alignment, value.is_neg()))", "alignment))"),
        ("numbers told apart by value", "(kind, repr(value))", "value"),
        ("torch's switches left out of the key", 'elif kind is str and value == "torch"', 'elif value == "none"'),
    ),
    *of(
        "tritonkernels/switches.py",
        "keys_differ",
        (
            "torch's switch for convolutions left out of the key",
            "return of_products(), of_convolutions()",
            "return of_products()",
        ),
    ),
    *of(
        "tritonkernels/plans.py",
        "launches_what_triton_launches",
        (
            "alignment left out of the key, launched",
            "value.dtype, value.device, alignment, value",
            "value.dtype, value.device, value",
        ),
        ("offsets forgotten", "address = addresses[slot] + offset", "address = addresses[slot]"),
        (
            "the stream of the first call",
            "stream = stream_of(self.device)",
            "stream = self.__dict__.setdefault('s', stream_of(self.device))",
        ),
    ),
    *of(
        "tritonkernels/watch.py",
        "launches_what_triton_launches",
        ("temporaries kept in another order", "new_slot = {old: new for", "new_slot = {old: -1 - new for"),
        ("views taken for new tensors' work", "if self._making or func.is_view:", "if self._making:"),
    ),
    *of(
        "tritonkernels/watch.py",
        "share_memory or copies_have or overlaps_is_an_error or may_overlap",
        ("shared memory overlooked", "all(end <= start for", "all(end <= start or True for"),
        ("copies at another alignment", "(tensor.data_ptr() - memory.data_ptr()) % ALIGNMENT", "0"),
        (
            "the first two operands compared, for a plan",
            "if not is_out])\n        self._rep",
            "if not is_out][:2])\n        self._rep",
        ),
        ("the first two operands compared, for copies", "if are_disjoint(tensors) or", "if are_disjoint(tensors[:2]) or"),
        ("an out that overlaps hidden by copies", "or any(with_out)", ""),
    ),
    *of(
        "tritonkernels/launch.py",
        "launches_what_triton_launches or another_launcher",
        ("hooks passed over", "return idle, runtime.debug", "return True, runtime.debug"),
        ("launchers not compared", "return calls == [", "return bool(calls) or calls == ["),
    ),
    *of(
        "tritonkernels/plans.py",
        "hide_an_error",
        (
            "out not compared with operands",
            "if self.spans and _out_overlaps",
            "if not self.spans and _out_overlaps",
        ),
    ),
    *of(
        "tritonkernels/plans.py",
        "writes_over_its_addend",
        ("a result over an addend as any other", "key.append(tuple(own == address for own in addresses))", "pass"),
    ),
    *of(
        "tritonkernels/watch.py",
        "writes_over_its_addend",
        ("an addend that is overwritten is copied", "isinstance(out, torch.Tensor) and tensor", "False and tensor"),
    ),
    *of(
        "tritonkernels/validate.py",
        "writes_over_its_addend",
        ("an addend in other strides", "one == other for one, other, size in steps if size > 1", "True for _ in steps"),
        ("no addend may be overwritten", "(argument == addend and _are_same(out, value))", "False"),
    ),
    *of(
        "tritonkernels/plans.py",
        "hide_an_overlap",
        ("overlap of out's last element overlooked", "address < end and", "address < end - 4 and"),
        ("overlap of out's first element overlooked", "start < address + span for", "start < address + span - 4 for"),
    ),
    *of(
        "tritonkernels/native/key.h",
        "test_native",
        ("torch's switches left out of native keys", 'if (std::strcmp(text, "torch")) return true;', "return true;"),
        ("alignment left out of native keys", "address_of(t) % ALIGNMENT,", "0,"),
        ("modes overlooked by native calls", "c10::impl::TorchDispatchModeTLS::any_modes_set() ||", ""),
        (
            "a lazy sign overlooked by native calls",
            "c10::DispatchKey::Conjugate, c10::DispatchKey::Negative",
            "c10::DispatchKey::Conjugate",
        ),
    ),
    *of(
        "tritonkernels/native/repeat.cpp",
        "test_native",
        ("gradients dropped by native calls", "uint64_t(tensors[i]->requires_grad()) << i", "uint64_t(0)"),
        (
            "native calls keep what no gradient needs",
            "found[i] = PyTuple_GET_ITEM(answer.get(), i) == Py_True",
            "found[i] = true",
        ),
        (
            "the last arguments left out of an overload's key",
            "append_all(values, all, key, tensors)",
            "append_all(values, 2, key, tensors)",
        ),
        ("an overload's names left out of its key", "(!names || append(names, key, tensors)) &&", ""),
    ),
    *of(
        "tritonkernels/native/recipe.h",
        "test_native_gradients",
        (
            "which gradients are wanted left out of a recipe's key",
            "key.insert(key.end(), wanted.begin(), wanted.end());",
            "",
        ),
        ("switches left out of a recipe's key", "return append(switches.get(), key, none);", "return true;"),
        ("gradients of gradients dropped by a recipe", "if (at::GradMode::is_enabled() || ", "if ("),
        ("an operand of two tensors taken for the second's", "if (found || whole", "if (whole"),
    ),
]
