"""The drawing of docs/architecture.md: the modules that a call of gemm passes, and their imports."""

import ast
import functools

from .. import ROOT

PACKAGES = ("tritonkernels", "cuda_reference", "perf")
# the modules in the drawing and their labels; all others are left out
BOXES = {
    "tritonkernels.gemm": "gemm/__init__.py: the user function, the ladder",
    "tritonkernels.gemm.tiled": "gemm/tiled.py: a design",
    "tritonkernels.operations.gemm.prepare": "operations/gemm/prepare.py",
    "tritonkernels.operations.gemm.work": "operations/gemm/work.py: counts for the model",
    "tritonkernels.gemm.parts.tile": "gemm/parts/tile.py",
    "tritonkernels.language.structs": "language/structs.py",
    "tritonkernels.launch": "launch.py: TritonLaunch",
    "tritonkernels.torch_ops.operator": "torch_ops/operator.py: what torch sees",
    "tritonkernels.library": "library.py: the path of a call",
    "tritonkernels.plans": "plans.py: repeated calls",
    "tritonkernels.watch": "watch.py",
    "tritonkernels.operation": "operation.py: Operation, Rung, Call",
    "tritonkernels.design": "design.py: Design",
    "tritonkernels.choice.choose": "choice/choose.py: the ranking",
    "tritonkernels.choice.model": "choice/model.py: the model of time",
    "tritonkernels.choice.efficiency": "choice/efficiency.py: what designs sustain",
    "tritonkernels.choice.learned": "choice/learned.py: what it gets wrong",
    "tritonkernels.choice.table": "choice/table.py: the user's tuned table",
    "tritonkernels.choice.shipped": "choice/shipped.py: the package's tuned tables",
    "tritonkernels.validate": "validate.py",
    "tritonkernels.numerics": "numerics/: references, bounds",
    "tritonkernels.problem": "problem.py: Problem",
    "tritonkernels.target": "target.py: Target",
    "tritonkernels.errors": "errors.py",
}


@functools.cache
def imports(packages=PACKAGES):
    """{module: the modules of these packages that its file imports}, also inside functions."""
    files = {}
    for path in (path for package in packages for path in sorted((ROOT / package).rglob("*.py"))):
        parts = path.relative_to(ROOT).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return {module: _imported(module, path, files) for module, path in files.items()}


def _imported(module, path, known):
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            above = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names |= {f"{base}.{name.name}" if f"{base}.{name.name}" in known else base for name in node.names}
        elif isinstance(node, ast.Import):
            names |= {name.name for name in node.names}
    return (names & known.keys()) - {module}


def reachable(graph, start):
    """All modules that `start` imports, directly or indirectly."""
    modules, todo = set(), [start]
    while todo:
        new = graph[todo.pop()] - modules
        modules |= new
        todo += new
    return modules


def drawing():
    """A Mermaid flowchart of BOXES: an arrow where one imports another, directly or through modules that have no box."""
    graph = imports()
    below = {box: reachable(graph, box) & BOXES.keys() for box in BOXES}
    numbers = {box: f"n{number}" for number, box in enumerate(BOXES)}
    lines = [f'    {numbers[box]}["{text}"]' for box, text in BOXES.items()]
    for box, others in below.items():
        direct = sorted(other for other in others if not any(other in below[between] for between in others - {other}))
        lines += [f"    {numbers[box]} --> {numbers[other]}" for other in direct]
    return "\n".join(["```mermaid", "flowchart TD", *lines, "```"])
