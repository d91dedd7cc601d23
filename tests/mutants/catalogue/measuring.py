"""Broken measuring, and keys of builds."""

from tests.mutants.mutant import of

MUTANTS = [
    *of(
        "perf/measure/models/predicted.py",
        "test_model_predictions",
        (
            "layers of a kind counted once",
            "collections.Counter(layers(model).values())",
            "dict.fromkeys(layers(model).values(), 1)",
        ),
        ("forward passes taken for steps", ' and row["what"] != "forward"', ""),
        ("the shortest beyond what is predicted", "key=lambda row: row[3] - row[2]", "key=lambda row: row[2] - row[3]"),
        ("one product of a Linear", "predicted[product] += library", "predicted[product] = library"),
        ("what has no time", " if product in took]", "]"),
        ("images have gradients", "layer.is_first and name == PASSES[1]", "False"),
        ("a product of the weight itself", "matmul(gradient, weight, **options)", "matmul(x, weight.t(), **options)"),
        ("each layer counted once", "sum(count * ranked[package][0].cost", "sum(ranked[package][0].cost"),
        ("the layers that lose least", "row[3] - row[4][package][0].cost", "row[4][package][0].cost - row[3]"),
    ),
    *of(
        "perf/measure/comparison.py",
        "test_comparison and poisoned",
        (
            "a timed run without new poison",
            "            self._renew(case, operands, kwargs)\n            entry.poison()\n",
            "            self._renew(case, operands, kwargs)\n",
        ),
        (
            "a timed run of the operands before",
            "            self._renew(case, operands, kwargs)\n            entry.poison()\n",
            "            entry.poison()\n",
        ),
        (
            "torch's result of before left",
            "self.output.poison(*(() if self.writes_out else (self.computed,)))",
            "self.output.poison()",
        ),
    ),
    *of(
        "tritonkernels/native/__init__.py",
        "test_native and name_follows",
        ("a key without the headers", '(SOURCE, *sorted(SOURCE.parent.glob("*.h")))', "(SOURCE,)"),
        ("a key without torch", "*FLAGS, torch.__version__, sys.version", "*FLAGS, sys.version"),
        ("a key without the flags", "(*_compiler(), *FLAGS, torch", "(*_compiler(), torch"),
    ),
    *of(
        "cuda_reference/recipes.py",
        "test_build and follow",
        ("a key without what modules are linked with", "files | sources(_of_runtime(backend))", "files"),
    ),
    *of(
        "tritonkernels/operations/gemv/rules.py",
        "test_batches and fewer",
        ("y of fewer dimensions taken for the batch's", 'y = padded(front(y, dims["y"]), rank)', 'y = front(y, dims["y"])'),
        (
            "y's batch alone lost",
            'a = a if dims["a"] is not None else a.expand(size, *[1] * (rank + 1 - a.ndim), *a.shape)',
            "a = a",
        ),
    ),
    *of(
        "tritonkernels/operations/matmul/rules.py",
        "test_batches and fewer",
        (
            "c of fewer dimensions taken for the batch's",
            'c = padded(c, most - (rank["a"] == 1) - (rank["b"] == 1)) if dims["c"] is not None else c',
            "c = c",
        ),
    ),
    *of(
        "tritonkernels/torch_ops/sharding.py",
        "test_sharding and groups",
        (
            "groups that one dimension of the mesh divides",
            "values[operator.tensors[0]].mesh.size() == 0",
            "values[operator.tensors[0]].mesh.size(0) == 0",
        ),
    ),
]
