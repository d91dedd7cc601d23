"""Kernels that may begin while the one before them runs (overlap.cuh) touch no global memory before they wait for it."""

import ast
import functools
import itertools
import re
from pathlib import Path

import pytest
import torch

import cuda_reference
import tritonkernels
from cuda_reference import recipes
from cuda_reference.launch import LIBRARY
from perf.offline import sass
from tests import nvcc
from tests.compiler import printed
from tests.gate.calls import calls
from tests.harness import DEVICES, prepare, short, thorough
from tritonkernels import OPS, launch
from tritonkernels.errors import UnsupportedError
from tritonkernels.target import Target

H200 = Target.named("h200")
WAITS, LETS = "ACQBULK", "PREEXIT"  # griddepcontrol.wait and .launch_dependents
# Shared and local memory, the constant bank and parameters are not global memory; nor is what only fetches a tensor map, or
# forgets what L1 holds (CCTL.IVALL), as a barrier of a cluster does.
GLOBAL = re.compile(r"(LDG|STG|LD|ST|ATOM|ATOMG|RED|REDG|LDGSTS|UTMALDG|UTMASTG|UBLKCP|UTMAREDG|CCTL(?!\.IVALL))(\.|\s|$)")
BRANCH = re.compile(r"(BRA|BSSY|CALL|WARPSYNC|JMP)\b")  # BSYNC goes where its BSSY says
INDIRECT, ENDS = re.compile(r"(BRX|JMX|JMXU|BRXU)\b"), re.compile(r"(BRA|EXIT|RET|JMP)\b")
RELEASED = 24  # instructions from the barrier to the branch, at most
CONDITION = re.compile(r"BRA\S* U?P\d|BRA\.DIV")
DEFINITION = re.compile(r"__global__[^{]*?\b(\w+)\((?=[^()]*\b(?:const|int|float|Scalar|Sum)\b)", re.DOTALL)
NAMESPACE = re.compile(r"^namespace (\w+) \{", re.MULTILINE)
LESSONS = {f"{op}/{rung.name}" for op in OPS for rung in LIBRARY.operation(op).own if rung.kind == "lesson"}


def waits(path):
    """Whether a file, of either package, has kernels that must wait: a lesson's are launched without overlap."""
    return f"{path.parent.name}/{path.stem}" not in LESSONS


DEFINED = {  # "gemv::split_n", and the header that defines it
    f"{NAMESPACE.search(text)[1]}::{name}": path
    for path, text in ((path, path.read_text()) for path in sorted(recipes.ROOT.rglob("*.cuh")))
    for name in DEFINITION.findall(text)
}
KERNELS = {name: path for name, path in DEFINED.items() if waits(path)}
LIBRARIES = {tritonkernels: launch.LIBRARY, cuda_reference: LIBRARY}
KINDS = 3  # of a kernel's instances


@functools.cache
def instances(*ops):
    """{kernel: {instance: the header that it is built from}} of all that the gate's ragged calls of these can launch."""
    found = {name: {} for name in KERNELS}
    for call in (call for op in ops for name in LIBRARY.names(op) for call in calls(LIBRARY, op, name, H200)):
        if call.problem.startswith("ragged") and f"{call.op}/{call.design}" not in LESSONS:
            args, kwargs = call.make()
            prepared = prepare(call.op, *args, **kwargs)
            design = LIBRARY.choose(prepared.problem, H200, call.design)[0]
            for config, part in itertools.product(design.configs(prepared.problem, H200), prepared.parts):
                for one in design.launches(prepared.problem, config, *part):
                    found[one.expression.partition("<")[0]][one.expression] = one.source.header
    return found


def early(code):
    """The accesses of global memory that a thread can reach without having waited."""
    places = {address: i for i, (address, _) in enumerate(code.instructions)}
    found, todo, reached = [], [0], set()
    while todo:
        i = todo.pop()
        if i in reached or i == len(code.instructions):
            continue
        reached.add(i)
        address, text = code.instructions[i]
        if text.startswith(WAITS):
            continue
        if GLOBAL.match(text):
            found.append(text)
        if INDIRECT.match(text):  # warps of a partition, which the first ones release when they have waited
            before = [other for _, other in code.instructions[max(0, i - RELEASED) : i]]
            assert any(other.startswith("BAR.SYNC") for other in before), f"where {text} goes is not known"
            continue
        todo += [places[int(target, 16)] for target in re.findall(r"\b0x[0-9a-f]+", text) if BRANCH.match(text)]
        if not ENDS.match(text) or address in code.predicates or CONDITION.match(text):
            todo.append(i + 1)
    return found


@thorough
def test_the_kernels_are_found():
    defined = sum(path.read_text().count("__global__") for path in recipes.ROOT.rglob("*.cuh"))
    assert len(DEFINED) == defined > len(KERNELS) > 40 and all(instances(*OPS).values())


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_cuda_kernel_waits(kernel):
    name = kernel.partition("::")[2]
    pattern = rf"__global__[^{{}}]*\b{name}\([^{{}}]*{{\n(.*?)^}}"
    body = re.search(pattern, KERNELS[kernel].read_text(), re.DOTALL | re.MULTILINE)[1]
    assert "wait_for_earlier_kernels();" in body or "multiply_tiles<" in body


def test_every_triton_kernel_waits():
    kernels = []
    for path in filter(waits, Path(tritonkernels.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            is_kernel = isinstance(node, ast.FunctionDef) and node.name.endswith("_kernel") and node.decorator_list
            if is_kernel and ast.unparse(node.decorator_list[0]).endswith(".jit"):
                first = node.body[1 if ast.get_docstring(node) else 0]
                kernels.append((node.name, ast.unparse(first)))
    assert len(kernels) > 30 and {first for _, first in kernels} == {"wait_for_earlier_kernels()"}


@nvcc.needed
@short(lambda kernel: kernel in ("gemv::split_n", "conv2d_bias::channel_sums"))
@pytest.mark.parametrize("kernel", KERNELS)
def test_nothing_is_read_or_written_before_the_wait(kernel, everything):
    found = instances(*(OPS if everything else kernel.split("::")[:1]))[kernel]
    chosen = list(found) if everything else list(found)[:: -(-len(found) // KINDS)]
    codes = sass.read(nvcc.compiled("90a", [found[name] for name in chosen], chosen).cubin)
    assert len(codes) >= len(chosen) > 0
    for name, code in codes.items():
        texts = [text.split()[0] for _, text in code.instructions]
        assert WAITS in texts and LETS in texts, f"{name} never waits"
        assert early(code) == [], name


@thorough
def test_all_kernels_are_launched_as_such():
    headers = {header for of_kernel in instances(*OPS).values() for header in of_kernel.values()}
    assert all(recipes.ROOT / recipes.OVERLAP in recipes.sources([recipes.ROOT / header]) for header in headers)


@nvcc.needed
@pytest.mark.parametrize(
    "body", ("*to = *from; wait_for_earlier_kernels();", "int x = *from; wait_for_earlier_kernels(); *to = x;")
)
def test_a_kernel_that_waits_too_late_is_seen(tmp_path, body):
    header = tmp_path / "late.cuh"
    header.write_text(f'#include "common/overlap.cuh"\n__global__ void late(const int* from, int* to) {{ {body} }}')
    (code,) = sass.read(nvcc.compiled("90a", [header], ["late"]).cubin).values()
    assert early(code)


COMPILED = """
import re, sys
from perf.offline import compile_launch, representative_calls, sass, unusual_calls
from tests.designs.test_waits import WAITS, early
from tritonkernels import OPS
from tritonkernels.launch import LIBRARY
from tritonkernels.target import Target

target, (op,), compiled, never = Target.named("h200"), sys.argv[1:], set(), set()
for call in (*representative_calls(op), *unusual_calls(op)):
    for design in LIBRARY.designs(op):
        if not design.is_lesson and design.refuses(call.problem, target) is None:
            config = LIBRARY.choose(call.problem, target, design.name)[1]
            for launch in (launch for part in call.parts for launch in design.launches(call.problem, config, *part)):
                kind = launch.kernel.__name__, design.name, call.problem.dtype
                if kind not in compiled:
                    compiled.add(kind)
                    (code,) = sass.read(compile_launch(launch, target).asm["cubin"]).values()
                    if not any(text.startswith(WAITS) for _, text in code.instructions) or early(code):
                        never.add(launch.kernel.__name__)
print(len(compiled), *sorted(never))
"""


@short(lambda op: op == "conv2d_bias")
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("device", DEVICES)  # a GPU's machine has its own version of Triton
def test_no_triton_kernel_reads_or_writes_before_it_waits(op, device):
    count, *never = printed(COMPILED, op).split()
    assert int(count) > 0 and never == []


@pytest.mark.gpu
@pytest.mark.parametrize("op", ("gemv", "matmul"))
@pytest.mark.parametrize("package", (tritonkernels, cuda_reference), ids=lambda package: package.__name__)
def test_calls_wait_for_each_other(package, op):
    """A long chain, each call of what the one before has written, in place of what another may still read; in a graph, too."""
    size, names = 512, LIBRARIES[package].names(op)
    a = torch.eye(size, device="cuda").roll(1, 0).half()
    for name in names:
        try:
            package.explain(op, a, a[0] if op == "gemv" else a, design=name)
        except UnsupportedError:
            continue
        start = torch.randn(size, *([size] * (op == "matmul")), device="cuda").half()
        one, other = start.clone(), torch.empty_like(start)

        def chain(name=name, one=one, other=other):
            for _ in range(32):
                getattr(package, op)(a, one, out=other, design=name)
                getattr(package, op)(a, other, out=one, design=name)

        chain()
        assert torch.equal(one, start.roll(64, 0)), name
        torch.cuda.synchronize()
        with torch.cuda.graph(graph := torch.cuda.CUDAGraph()):
            chain()
        graph.replay()
        assert torch.equal(one, start.roll(128, 0)), name
