"""Kernels that may begin while the one before them runs (overlap.cuh) touch no global memory before they wait for it."""

import functools
import itertools
import re

import pytest
import torch

import cuda_reference
from cuda_reference import build
from cuda_reference.launch import LIBRARY
from perf.offline import sass
from tests import nvcc
from tests.compiler import printed
from tests.gate.calls import calls
from tests.harness import prepare
from tritonkernels import OPS
from tritonkernels.errors import UnsupportedError
from tritonkernels.target import Target

H200 = Target.named("h200")
WAITS, LETS = "ACQBULK", "PREEXIT"  # griddepcontrol.wait and .launch_dependents
# Shared and local memory, the constant bank and parameters are not global memory; nor is what only fetches a tensor map.
GLOBAL = re.compile(r"(LDG|STG|LD|ST|ATOM|ATOMG|RED|REDG|LDGSTS|UTMALDG|UTMASTG|UBLKCP|UTMAREDG|CCTL)(\.|\s|$)")
HEADERS = sorted(str(p.relative_to(build.ROOT)) for p in build.ROOT.rglob("*.cuh") if "__global__" in p.read_text())
OVERLAPPING = [h for h in HEADERS if build.ROOT / build.OVERLAP in build._sources([build.ROOT / h])]
KINDS = 3  # of a header's instances


@functools.cache
def expressions():
    """{header: the instances that the gate's ragged calls launch}"""
    found = {header: {} for header in OVERLAPPING}
    for call in (call for op in OPS for name in LIBRARY.names(op) for call in calls(LIBRARY, op, name, H200)):
        args, kwargs = call.make()
        prepared = prepare(call.op, *args, **kwargs)
        design, config = LIBRARY.choose(prepared.problem, H200, call.design)
        for launch in itertools.chain(*(design.launches(prepared.problem, config, *part) for part in prepared.parts)):
            if launch.source.header in found and call.problem.startswith("ragged"):
                found[launch.source.header][launch.expression] = None
    return {header: list(instances) for header, instances in found.items()}


def early(code):
    """The accesses of global memory before the kernel waits."""
    texts = [text for _, text in code.instructions]
    waits = next((i for i, text in enumerate(texts) if text.startswith(WAITS)), len(texts))
    return [text for text in texts[:waits] if GLOBAL.match(text)]


@nvcc.needed
@pytest.mark.parametrize("header", OVERLAPPING)
def test_nothing_is_read_or_written_before_the_wait(header, everything):
    instances = expressions()[header]
    assert instances, "no call of the gate launches it"
    chosen = instances if everything else instances[:: -(-len(instances) // KINDS)]
    codes = sass.read(nvcc.compiled("90a", [header], chosen).cubin)
    assert len(codes) >= len(chosen)
    for name, code in codes.items():
        texts = [text.split()[0] for _, text in code.instructions]
        assert WAITS in texts and LETS in texts, f"{name} never waits"
        assert early(code) == [], name


@nvcc.needed
def test_a_kernel_that_does_not_wait_is_seen():
    codes = sass.read(nvcc.compiled("90a", ["gemv/naive.cuh"], ["gemv::naive<float, float, 128>"]).cubin)
    assert all(early(code) for code in codes.values())


COMPILED = """
import re, sys
from perf.offline import compile_launch, representative_calls, sass, unusual_calls
from tests.designs.test_overlap import early
from tritonkernels import OPS
from tritonkernels.launch import LIBRARY
from tritonkernels.target import Target

target, (op,), compiled, never = Target.named("h200"), sys.argv[1:], set(), set()
for call in (*representative_calls(op), *unusual_calls(op)):
    for design in LIBRARY.designs(op):
        if design.refuses(call.problem, target) is None:
            config = LIBRARY.choose(call.problem, target, design.name)[1]
            for launch in (launch for part in call.parts for launch in design.launches(call.problem, config, *part)):
                kind = launch.kernel.__name__, design.name, call.problem.dtype
                if kind not in compiled:
                    compiled.add(kind)
                    (code,) = sass.read(compile_launch(launch, target).asm["cubin"]).values()
                    if not launch.waits or early(code):
                        never.add(launch.kernel.__name__)
print(len(compiled), *sorted(never))
"""


@pytest.mark.parametrize("op", OPS)
def test_no_triton_kernel_reads_or_writes_before_it_waits(op):
    count, *never = printed(COMPILED, op).split()
    assert int(count) > 0 and never == []


@pytest.mark.gpu
@pytest.mark.parametrize("op", ("gemv", "matmul"))
@pytest.mark.parametrize("package", (cuda_reference,), ids=lambda package: package.__name__)
def test_calls_wait_for_each_other(package, op):
    """A long chain, each call of what the one before has written, in place of what another may still read; in a graph, too."""
    size, names = 512, package.launch.LIBRARY.names(op)
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
