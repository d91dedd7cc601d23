"""The calls that the gate makes on a GPU: none is missing, and every fault is noticed."""

import types
from collections import Counter

import pytest
import torch

from tests.gate import build, child
from tests.gate.calls import KINDS, calls, designs
from tests.harness import LIBRARIES, SMALL, built, names, prepare, suited, thorough
from tritonkernels import OPS, backend
from tritonkernels.launch import LIBRARY
from tritonkernels.operations.conv2d.precision import FP32_PRECISIONS
from tritonkernels.operations.conv2d.prepare import DTYPES
from tritonkernels.operations.gemm.prepare import DTYPES as OF_GEMM
from tritonkernels.operations.gemv.prepare import VECTORS
from tritonkernels.operations.matmul.prepare import ACCEPTS
from tritonkernels.target import Target

H200, CPU = Target.named("h200"), torch.device("cpu")
NEVER_EMPTY = {  # an empty K is refused, or cannot be asked for: a filter of one channel has products to add up
    ("tritonkernels", "matmul", "persistent"),
    ("tritonkernels", "matmul", "warp_specialized"),
    *((library.package, op, "depthwise_channels") for library in LIBRARIES for op in ("conv2d", "conv2d_input")),
    *((library.package, op, "warp_specialized") for library in LIBRARIES for op in ("conv2d", "conv2d_weight")),
}


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_every_design_in_every_type_that_it_takes(library, op):
    for design in (d for d in library.designs(op) if d.name in names(library, op)):
        made = list(calls(library, op, design.name, H200))
        assert made and len(set(map(str, made))) == len(made)
        problems = {}
        for call in made:
            problems.setdefault(call.kind, set()).add((call.problem, call.out))
        wanted = {("smallest", False), ("smallest", True), ("ragged", False), ("ragged", True)}
        if (library.package, op, design.name) not in NEVER_EMPTY:
            wanted |= {("no products", False)} | ({("alpha = 0", True)} if op in ("gemm", "gemv", "matmul") else set())
        assert all(wanted <= found for found in problems.values()), (design.name, problems)
        assert len(problems) == sum(takes(library, op, design, *kind) for kind in KINDS[op])


@pytest.mark.parametrize("op", ["conv2d", "matmul"])
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_every_design_of_another_operation(library, op):
    for name in (name for name in designs(library, op) if "." in name):
        problems = {}
        for call in calls(library, op, name, H200):
            problems.setdefault(call.kind, set()).add((call.problem, call.out))
        wanted = {("smallest", False), ("smallest", True), ("ragged", False), ("ragged", True)}
        assert all(wanted <= found for found in problems.values()), (name, problems)
        assert bool(problems) == (not name.endswith("planes")), "which are for precisions that conv2d has not"


def takes(library, op, design, dtype, options):
    """Whether the design accepts a small ordinary call of the kind."""
    shapes, _ = suited(library, op, design.name, SMALL[op])
    args = built(shapes, lambda *shape: torch.empty(shape, dtype=dtype))
    if dtype == torch.int8 and op == "gemv":
        args, options = [args[0], args[1].float()], {"scale": torch.empty(16)}
    return design.refuses(prepare(op, *args, **options).problem, H200) is None


def test_every_type_and_precision_is_a_kind():
    def named(op):
        return {(dtype, options.get("precision")) for dtype, options in KINDS[op]}

    assert named("gemm") == {(dtype, None) for dtype in OF_GEMM}
    assert named("gemv") == {(dtype, None) for dtype in (*VECTORS, torch.int8)}
    assert named("conv2d_bias") == {(dtype, None) for dtype in DTYPES}
    for op in ("conv2d", "conv2d_input", "conv2d_weight"):
        wanted = {*FP32_PRECISIONS[1:]} - {"torch", "fp32"}  # which are others by another name
        assert named(op) == {(dtype, None) for dtype in DTYPES} | {(torch.float32, p) for p in wanted}
    for dtype, (precisions, _) in ACCEPTS.items():
        wanted = {None, *precisions[1:]} - {"torch", "fp32"}
        assert wanted == {precision for kind, precision in named("matmul") if kind == dtype}


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_planes_compute_again_what_they_refuse(library):
    """fp32 is no kind: of short sums it is ieee."""
    for name in {"planes", "persistent_planes"} & {*names(library, "matmul")}:
        made = [call for call in calls(library, "matmul", name, H200) if call.problem == "computed again"]
        assert {call.kind for call in made} == {"float32 fp16x3"} and {call.out for call in made} == {True, False}
        for call in made:
            args, kwargs = call.make()
            assert prepare("matmul", *args, **kwargs).problem.precision == "fp32"
            counted = (args[0] != 0) & (args[0].abs() < 2.0**-26 * args[0].abs().amax(1, keepdim=True))
            assert counted.any(1).all() and (args[0] @ args[1]).abs().min() < 2.0**-40


def test_ragged_results_end_between_vectors():
    """`out` then has rows that begin at multiples of 16 bytes and have other lengths."""
    for library in LIBRARIES:
        for call in calls(library, "matmul", names(library, "matmul")[-1], H200):
            if call.problem.startswith("ragged"):
                args, kwargs = call.make()
                result = prepare("matmul", *args, **kwargs).result
                assert result.shape[-1] * result.element_size() % 16


def test_shares_make_every_call_once():
    wanted = ["gemm/tiled", "gemv/vectorized", "matmul/split_k"]
    groups = child.groups(LIBRARY, wanted, H200)
    every = Counter(str(call) for group in groups for call in group)
    shared = Counter(str(call) for i in range(3) for group in groups[i::3] for call in group)
    assert shared == every and set(every.values()) == {1}
    assert {f"{call.op}/{call.design}" for group in groups for call in group} == set(wanted)


@thorough
def test_modules_of_every_design_are_built(monkeypatch):
    found = build.sources(CPU)
    headers = {header.partition("/")[0] for header, _ in found}
    assert headers == {"common", "gemm", "gemv", "conv2d", "conv2d_input", "conv2d_weight", "conv2d_bias", "matmul"}
    assert len(found) == len(set(found)) > 100


@pytest.fixture
def ragged():
    """A call that gives `out`, and one that does not."""
    if backend.device_type() != "cpu":
        pytest.skip("breaks results of the interpreter's")
    found = {call.out: call for call in calls(LIBRARY, "gemv", "vectorized", LIBRARY.target(CPU)) if call.problem == "ragged"}
    return found[True], found[False]


def broken(harm):
    """The library with designs that write to wrong memory after the call."""

    def run(call, design):
        LIBRARY.run(call, design)
        harm(call)

    return types.SimpleNamespace(choose=LIBRARY.choose, target=LIBRARY.target, run=run)


def spoil(t, index):
    """Write the element `index` elements after the tensor's first."""
    t.as_strided((1,), (1,), t.storage_offset() + index).fill_(7.0)


def test_a_given_out_has_rows_for_vectors():
    """They begin at multiples of 16 bytes and end in between, so that writes of whole vectors show."""
    if backend.device_type() != "cpu":
        pytest.skip("looks at a result of the interpreter's")
    seen = []

    def look(call):
        seen.append((call.result.data_ptr() % 16, call.result.stride(0) * 4 % 16, call.result.shape[1] * 4 % 16))

    call = next(c for c in calls(LIBRARY, "gemm", "naive", LIBRARY.target(CPU)) if c.problem == "smallest" and c.out)
    assert child.fault(broken(look), call, CPU) is None
    assert seen == [(0, 0, 4)]


def test_a_right_call_has_no_fault(ragged):
    assert [child.fault(LIBRARY, call, CPU) for call in ragged] == [None, None]


@pytest.mark.parametrize(
    "harm, why",
    [
        (lambda call: spoil(call.result, 36), "above the bound"),
        (lambda call: spoil(call.result, 37), "memory outside of out was written"),
        (lambda call: spoil(call.result, -1), "memory outside of out was written"),
        (lambda call: spoil(call.parts[0][0], 1100), "1 of its operands changed"),
    ],
    ids=["result", "behind", "before", "operand"],
)
def test_a_fault_is_named(ragged, harm, why):
    assert why in child.fault(broken(harm), ragged[0], CPU)


def test_what_a_design_leaves_out_is_noticed(ragged):
    for call in ragged:
        nothing = types.SimpleNamespace(choose=LIBRARY.choose, target=LIBRARY.target, run=lambda call, design: None)
        assert "above the bound" in child.fault(nothing, call, CPU)


def test_the_program_goes_on_after_an_error(monkeypatch, capsys):
    if backend.device_type() != "cpu":
        pytest.skip("runs on the CPU")
    answers = iter([None, "it is wrong", RuntimeError("no\nluck")])

    def fault(library, call, device):
        answer = next(answers, None)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(child, "fault", fault)
    assert child.main(["tritonkernels", "--designs", "gemv/vectorized", "--problems", "smallest"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if not line.startswith("RUN")] == [
        "WRONG gemv/vectorized float32 smallest, out given: it is wrong",
        "WRONG gemv/vectorized float16 smallest: RuntimeError: no luck",
        "DONE 10 calls, 2 wrong",
    ]
    assert len(lines) == 10 + 3


def test_the_program_goes_on_in_a_new_process_without_a_lost_one_s_calls(monkeypatch, capsys):
    if backend.device_type() != "cpu":
        pytest.skip("runs on the CPU")
    started = []
    monkeypatch.setattr(child, "fault", lambda library, call, device: "lost" if call.kind == "float16" else None)
    monkeypatch.setattr(child, "lost", lambda device: True)
    monkeypatch.setattr(child.os, "execv", lambda program, arguments: started.append(arguments))
    given = ["tritonkernels", "--designs", "gemv/vectorized", "--problems", "smallest", "--new", "--go-on"]
    assert child.main(given) == 1
    ((*command, option, number),) = started
    assert command[1:] == ["-m", child.PROGRAM, *given] and option == "--from"
    every = [line for line in capsys.readouterr().out.splitlines() if line.startswith("RUN")]
    assert child.main([*given, "--kinds", "float32", "float16", "float64", "--from", number]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("RUN")] == [every[3]]
    assert child.main([*given[:-1]]) == 1 and "LOST the CUDA context; 3 calls are left" in capsys.readouterr().out
