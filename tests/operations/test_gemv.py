"""GEMV beyond the tests of every operation: types, batches, edges of vectors, promised loads, the choice."""

import dataclasses
import itertools
import json
import re

import pytest
import torch

from cuda_reference.launch import LIBRARY as CUDA
from tests import nvcc
from tests.compiler import printed
from tests.harness import (
    DEVICES,
    LAYOUTS,
    available_on,
    changed,
    designs,
    offset_by_one,
    one_of_each_program,
    padded,
    prepare,
    random,
    run_checked,
    short,
    small_integers,
    thorough,
    transposed,
)
from tritonkernels import numerics
from tritonkernels.design import as_dict
from tritonkernels.launch import LIBRARY as TRITON
from tritonkernels.operations.gemv.shapes import streams, tile_of_columns
from tritonkernels.target import Target

FLOAT, HALF, INT8 = (torch.float32, torch.float32), (torch.float16, torch.float16), (torch.int8, torch.bfloat16)
OTHERS = ((torch.bfloat16, torch.bfloat16), (torch.int8, torch.float32), (torch.int8, torch.float16))
H200 = Target.named("h200")
on_devices = pytest.mark.parametrize("device", DEVICES)
every_design = pytest.mark.parametrize("library, op, design", designs("gemv"))


def operands(kinds, m, n, a_batch=(), x_batch=(), device="cpu"):
    """(a, x, y) and the options that their types need."""
    a, x = random(*a_batch, m, n, dtype=kinds[0], device=device), random(*x_batch, n, dtype=kinds[1], device=device)
    options = {"scale": random(m, device=device)} if kinds[0] == torch.int8 else {}
    return (a, x, random(m, dtype=kinds[1], device=device)), {"alpha": -1.5, "beta": 0.5, **options}


def check(library, op, design, device, kinds):
    available_on(library, device)
    for m, n in ((1, 1), (33, 64), (9, 129), (37, 70)):
        (a, x, y), options = operands(kinds, m, n, device=device)
        for layout in (lambda t: t, *LAYOUTS):
            run_checked(library, op, design, layout(a), x, y, **options)


@short(lambda library, op, design, kinds: library.names(op).index(design) % 2 == (kinds == INT8))  # each has one of them
@one_of_each_program
@every_design
@pytest.mark.parametrize("kinds", (HALF, INT8), ids=("half", "int8"))
@on_devices
def test_types(library, op, design, device, kinds):
    check(library, op, design, device, kinds)


@short(lambda library, kinds: library is TRITON or kinds == OTHERS[0])
@pytest.mark.parametrize("library", (CUDA, TRITON), ids=lambda library: library.package)
@pytest.mark.parametrize("kinds", OTHERS, ids=str)
@on_devices
def test_other_types(library, device, kinds):
    check(library, "gemv", "vectorized", device, kinds)


@one_of_each_program
@every_design
@pytest.mark.parametrize(
    "a_batch, x_batch",
    [((3,), (3,)), ((), (3,)), ((3,), ()), ((2, 1), (1, 3)), ((0,), (0,)), ((2, 3), (3,))],
    ids=str,
)
@on_devices
def test_batches(library, op, design, device, a_batch, x_batch):
    available_on(library, device)
    (a, x, y), options = operands((torch.float32,) * 2, 9, 37, a_batch, x_batch, device=device)
    for a_layout, x_layout in itertools.product((lambda t: t, transposed, padded), (lambda t: t, offset_by_one)):
        result, _ = run_checked(library, op, design, a_layout(a), x_layout(x) if x.ndim > 1 else x, y, **options)
        assert result.shape == torch.matmul(a, x.unsqueeze(-1)).squeeze(-1).shape


@one_of_each_program
@every_design
@on_devices
def test_every_start_and_length_of_a_row(library, op, design, device, everything):
    """Rows that start and end anywhere between two 16-byte boundaries, and x likewise; in `make test` of each start and length
    one pitch in turn."""
    available_on(library, device)
    flat, x, y = random(5000, device=device), random(300, device=device), random(3, device=device)
    lengths = (1, 2, 3, 4, 5, 7, 8, 127, 128, 131)
    for start, (i, n) in itertools.product(range(5), enumerate(lengths)):
        pitches = n + -n % 4, n + 1
        for pitch in pitches if everything else pitches[(start + i) % 2 :][:1]:
            a = flat[start : start + 3 * pitch].view(3, pitch)[:, :n]
            run_checked(library, op, design, a, x[start % 3 : start % 3 + n], y, beta=2.0)


@every_design
@on_devices
def test_small_integers_are_exact_in_int8(library, op, design, device):
    available_on(library, device)
    a = small_integers(19, 133, dtype=torch.int8, device=device)
    x, scale = small_integers(133, dtype=torch.bfloat16, device=device), torch.full((19,), 0.25, device=device)
    result = library.run(prepare(op, a, x, scale=scale), design)
    assert torch.equal(result, (a.double() @ x.double() / 4).to(torch.bfloat16))


# Configs with more splits than are added at a time, which is by 4 threads, 4 rows of threads, 256 threads, 8 rows of threads.
MANY_SPLITS = {
    ("tritonkernels", "split_n"): {"SPLITS": 11, "BLOCK_M": 2, "LANES": 4},
    ("tritonkernels", "transposed"): {"SPLITS": 11, "LANES": 8, "DEPTH": 4},
    ("cuda_reference", "split_n"): {"SPLITS": 270},
    ("cuda_reference", "transposed"): {"SPLITS": 11, "LANES": 32, "WARPS": 8},
}


@pytest.mark.parametrize("library, op, design", [p for p in designs("gemv") if p.values[2] in ("split_n", "transposed")])
@on_devices
def test_more_splits_than_are_added_up_at_once(library, op, design, device):
    available_on(library, device)
    a, x = random(2, 1080, device=device), random(1080, device=device)  # no split is empty
    call = prepare(op, transposed(a) if design == "transposed" else a, x)
    chosen = {d.name: d for d in library.designs(op)}[design]
    config = next(iter(chosen.configs(call.problem, library.target(call.result.device))))
    config = changed(config, MANY_SPLITS[library.package, design])
    for launch in chosen.launches(call.problem, config, *call.parts[0]):
        launch.run()
    verdict = numerics.judge(call.problem, call.result, a, x)
    assert verdict.ok, verdict


@pytest.mark.parametrize("library, op, design", [p for p in designs("gemv") if p.values[2] in ("split_n", "transposed")])
def test_counters_are_zero_again(library, op, design):
    available_on(library, "cpu")
    call = prepare(op, random(40, 700), random(700))
    chosen = {d.name: d for d in library.designs(op)}[design]
    (launch,) = chosen.launches(call.problem, next(iter(chosen.configs(call.problem, Target.named("simt")))), *call.parts[0])
    given = launch.values.values() if library is TRITON else launch.arguments
    (counters,) = (t for t in given if isinstance(t, torch.Tensor) and t.dtype == torch.int32)
    for _ in range(2):
        launch.run()
        assert not counters.any()


def test_a_transposed_view_is_not_copied():
    matrix = random(64, 32)
    call = prepare("gemv", matrix.t(), random(64))
    assert call.parts[0][0].data_ptr() == matrix.data_ptr() and call.problem.a_layout == "col"


# The loads that designs promise, in the trace of the emulation and in the machine code.
@short(lambda m: m == 32)
@pytest.mark.parametrize("design", ("vectorized", "rows_per_warp", "block_per_row", "split_n", "transposed"))
@pytest.mark.parametrize("m, n", [(32, 512), (64, 64)])
def test_every_load_of_a_is_128_bits_and_whole_sectors(design, m, n):
    from cuda_reference.trace import trace

    a = random(n, m).t() if design == "transposed" else random(m, n)
    call = prepare("gemv", a, random(n))
    chosen = {d.name: d for d in CUDA.designs("gemv")}[design]
    config = next(c for c in chosen.configs(call.problem, H200) if c.get("LANES", 8) == 8)  # a lane alone reads half sectors
    loads = [x for t in trace(*chosen.launches(call.problem, config, *call.parts[0])) for x in t.accesses]
    loads = [x for x in loads if x.array == "argument 0" and x.kind == "read"]
    assert loads and {x.width for x in loads} == {16}
    assert sum(x.units for x in loads) == a.numel() * 4 // 32, "each sector once: 4 per 128 bytes"


VECTOR_DESIGNS = ("vectorized", "rows_per_warp", "block_per_row", "split_n", "transposed")


def loads_at_once(code):
    """The longest run of 128-bit loads without a product in between: these are in flight at the same time."""
    run = longest = 0
    for _, text in code.instructions:
        run = 0 if text.startswith("FFMA") else run + bool(re.match(r"LDG\.E\.(EF\.)?128", text))
        longest = max(longest, run)
    return longest


def first_launches(library, kinds, target):
    """{design: its launch for a 4096 x 4096 of these types}, for the designs that promise vector loads."""
    launches = {}
    for design in VECTOR_DESIGNS:
        a = torch.empty(4096, 4096, dtype=kinds[0], device="meta")
        scale = torch.empty(4096, device="meta") if kinds[0] == torch.int8 else None
        call = prepare(
            "gemv", a.t() if design == "transposed" else a, torch.empty(4096, dtype=kinds[1], device="meta"), scale=scale
        )
        chosen = {d.name: d for d in library.designs("gemv")}[design]
        (launches[design],) = chosen.launches(call.problem, next(iter(chosen.configs(call.problem, target))), *call.parts[0])
    return launches


@thorough
@nvcc.needed
@pytest.mark.parametrize("arch, kinds", [("sm_80", FLOAT), ("sm_90", FLOAT), ("sm_90", HALF), ("sm_90", INT8)], ids=str)
def test_machine_code(arch, kinds):
    from perf.offline import sass

    launches = first_launches(CUDA, kinds, Target.named(arch))
    headers, kernels = zip(*((launch.source.header, launch.expression) for launch in launches.values()))
    cubin = nvcc.compiled(arch.removeprefix("sm_"), headers, kernels, "-Werror", "all-warnings").cubin
    codes = {re.match(r"_ZN4gemv\d+([a-z_]+?)I", code.name)[1]: code for code in sass.read(cubin).values()}
    assert set(codes) == set(VECTOR_DESIGNS)
    for name, code in codes.items():
        assert code.stack_bytes == 0, name
        assert code.shared_bytes == 0 or name not in ("vectorized", "rows_per_warp")
        assert loads_at_once(code) >= 4, f"{name}: {loads_at_once(code)} loads of A and x together"


COMPILE = """
import json
from perf.offline import sass
from perf.offline import compile_launch
from tests.operations.test_gemv import FLOAT, H200, TRITON, first_launches, loads_at_once
codes = {
    name: next(iter(sass.read(compile_launch(launch, H200).asm["cubin"]).values()))
    for name, launch in first_launches(TRITON, FLOAT, H200).items()
}
print(json.dumps({name: loads_at_once(code) for name, code in codes.items()}))
"""


@thorough
def test_triton_keeps_several_loads_in_flight():
    """By default ptxas puts each load next to the use of its value; REGISTERS prevents that."""
    loads = json.loads(printed(COMPILE))
    assert set(loads) == set(VECTOR_DESIGNS) and min(loads.values()) >= 4, f"loads of A and x together: {loads}"


# The shapes that suit a problem.
def problem(m, n, dtype=torch.float32, batch=(), col=False):
    a = torch.empty(*batch, *((n, m) if col else (m, n)), dtype=dtype, device="meta")
    return prepare("gemv", a.mT if col else a, torch.empty(*batch, n, dtype=dtype, device="meta")).problem


@pytest.mark.parametrize("sizes, dtype, wanted", [
    ((4096, 4096), torch.float32, (8, 1024, 1)),  # 128 tiles on 132 SMs: a block per tile
    ((4096, 14336), torch.float16, (8, 256, 8)),  # 64 tiles
    ((16384, 128), torch.float32, (8, 256, 1)),  # 512 tiles
    ((1024, 4096), torch.float16, (8, 256, 16)),  # 16 tiles, split 16 times: no more than two rounds of columns each
    ((16384, 16), torch.float32, (32, 256, 1)),  # 16 columns are too few for 32 threads along N
    ((10**6, 4), torch.float32, (256, 256, 1)),  # a column per thread is all there is
    ((2048, 4096), torch.int8, (8, 256, 16)),
    ((16384, 4096), torch.int8, (8, 256, 4)),  # 128 tiles, whose sums do not fit in shared memory
])  # fmt: skip
def test_blocks_of_contiguous_columns(sizes, dtype, wanted):
    asked = dataclasses.replace(problem(*sizes, col=True), a_dtype=dtype)
    assert tile_of_columns(asked, H200) == wanted
    lanes, threads, splits = wanted
    for library in (TRITON, CUDA):
        chosen = {d.name: d for d in library.designs("gemv")}["transposed"]
        configs = map(as_dict, chosen.configs(asked, H200))
        found = [config for config in configs if (config["LANES"], config["SPLITS"]) == (lanes, splits)]
        warps = {config.get("WARPS") or config["num_warps"] for config in found}
        assert threads // 32 in warps


@pytest.mark.parametrize("columns, wanted", [(16, True), (128, True), (256, False), (384, False), (512, True), (4096, True)])
def test_operands_that_fit_in_l2_are_not_evicted_first(columns, wanted):
    """L2 has 60 MB; 16384 rows of 256 columns are 17 MB, of 384 columns 25 MB."""
    asked = problem(16384, columns)
    assert streams(asked, H200) == wanted
    for library in (TRITON, CUDA):
        for design in library.designs("gemv"):
            streamed = {as_dict(config).get("STREAMS") for config in design.configs(asked, H200)}
            assert streamed == {wanted} or (design.name not in VECTOR_DESIGNS and streamed <= {wanted, None})
    assert not streams(asked, Target.named("interpreter"))
