"""The CUDA design grouped: both layouts, unrolled and other filters, remainders, its accesses, its machine code; and the parts
that depthwise and depthwise_channels share with it."""

import itertools

import pytest
import torch

from cuda_reference.conv2d.grouped import DESIGN
from cuda_reference.launch import LIBRARY
from perf.offline import sass
from tests import nvcc
from tests.harness import (
    channels_last,
    first_dim_inside,
    offset_by_one,
    padded,
    prepare,
    random,
    run_checked,
    short,
    step_two,
    thorough,
)
from tritonkernels.target import Target

DESIGNS = {design.name: design for design in LIBRARY.designs("conv2d")}
FEW_WORDS = 8  # bytes of the stack outside the hot loop, as in test_compile.py
SIMT = Target.named("simt")
TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def only_launch(design, call):
    config = next(iter(DESIGNS[design].configs(call.problem, SIMT)))
    (launch,) = DESIGNS[design].launches(call.problem, config, *call.parts[0])
    return launch


def launch_of(*operands, config=None, **options):
    call = prepare("conv2d", *operands, **options)
    chosen = next(c for c in DESIGN.configs(call.problem, SIMT) if (config or {}).items() <= c.items())
    (launch,) = DESIGN.launches(call.problem, chosen, *call.parts[0])
    return launch


def template_of(*operands, **options):
    """The numbers after T: KT, CT, LANES, TAPS, STEP."""
    return tuple(map(int, launch_of(*operands, **options).expression.rstrip(">").split(", ")[1:]))


# Images, filters, options: groups with fewer, as many and more output channels than a thread; partial runs and blocks
CASES = {
    "resnext": ((2, 16, 15, 9), (16, 8, 3, 3), {"groups": 2, "padding": 1}),
    "resnext, stride": ((3, 16, 17, 12), (16, 8, 3, 3), {"groups": 2, "padding": 1, "stride": 2}),
    "more lanes than tiles": ((2, 12, 9, 5), (12, 4, 3, 3), {"groups": 3, "padding": (2, 0)}),
    "tiles of two blocks": ((1, 40, 8, 6), (40, 4, 3, 3), {"groups": 10, "stride": (2, 1)}),
    "more outputs than inputs": ((2, 8, 7, 7), (48, 4, 3, 3), {"groups": 2, "padding": 1}),
    "five taps": ((2, 8, 13, 9), (8, 4, 5, 5), {"groups": 2, "padding": 2, "stride": (1, 2)}),
    "five taps, stride": ((1, 8, 17, 6), (8, 4, 5, 5), {"groups": 2, "padding": (2, 4), "stride": (2, 1)}),
    "other filters": ((3, 8, 9, 10), (8, 4, 2, 4), {"groups": 2, "padding": (0, 3)}),
    "dilated": ((2, 16, 15, 13), (8, 8, 3, 3), {"groups": 2, "padding": 2, "dilation": (2, 3)}),
    "long steps": ((2, 8, 19, 13), (8, 4, 3, 3), {"groups": 2, "padding": (2, 1), "stride": 3}),
}
# Cases with partial blocks of lanes along W, or none at all
REST = {
    "outputs left over": ((1, 8, 9, 9), (14, 4, 3, 3), {"groups": 2, "padding": 1}),
    "inputs left over": ((1, 6, 9, 9), (8, 3, 3, 3), {"groups": 2, "padding": 1, "stride": (2, 1)}),
    "depthwise": ((1, 5, 9, 8), (10, 1, 3, 3), {"groups": 5, "padding": 1}),
    "one group": ((1, 3, 8, 9), (5, 3, 3, 3), {"padding": 2}),
}


# Filters of 5 x 5, which are one more build per type: of one type only
@short(lambda dtype, name: dtype == torch.float32 or name == "resnext")
@pytest.mark.parametrize("layout", (torch.clone, channels_last))
@pytest.mark.parametrize(
    "dtype, name",
    [pytest.param(t, n, id=f"{t}-{n}") for n in CASES for t in (TYPES[:1] if n.startswith("five") else TYPES)],
)
def test_groups(dtype, layout, name):
    image, filters, options = CASES[name]
    input, weight, bias = layout(random(*image, dtype=dtype)), random(*filters, dtype=dtype), random(filters[0], dtype=dtype)
    call = prepare("conv2d", input, weight, **options)
    assert sum(call.result.shape) % 2 == 0, "run_checked's results are aligned"
    for kt in {config["KT"] for config in DESIGN.configs(call.problem, SIMT)}:
        whole = layout is channels_last and filters[0] // options["groups"] % kt == 0
        assert template_of(input, weight, config={"KT": kt}, **options)[2] == (8 if whole else 1)
        run_checked(LIBRARY, "conv2d", "grouped", input, weight, bias, config={"KT": kt}, **options)


@short(lambda dtype, name: dtype == torch.float32 or name == "outputs left over")
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("layout", (torch.clone, channels_last, first_dim_inside, offset_by_one, padded, step_two))
@pytest.mark.parametrize("name", REST)
def test_remainders_and_any_strides(dtype, layout, name):
    image, filters, options = REST[name]
    input, weight = layout(random(*image, dtype=dtype)), layout(random(*filters, dtype=dtype))
    run_checked(LIBRARY, "conv2d", "grouped", input, weight, **options)


def test_filters_beyond_shared_memory_are_staged_in_parts():
    input, weight = random(1, 320, 8, 5), random(16, 160, 3, 3)
    for layout in (torch.clone, channels_last):
        for kt in (4, 8):
            launch = launch_of(layout(input), weight, config={"KT": kt}, groups=2)
            assert launch.shared_bytes <= 48 * 1024
            assert (launch.arguments[6] < 160) == (layout is channels_last or kt == 8), "staged channels"
            run_checked(LIBRARY, "conv2d", "grouped", layout(input), weight, config={"KT": kt}, groups=2)
    large, filters = random(1, 2, 40, 41), random(6, 2, 33, 34)  # filters of 4 output channels fit, of 8 not
    for layout in (torch.clone, channels_last):
        run_checked(LIBRARY, "conv2d", "grouped", layout(large), filters)


def test_filters_that_do_not_fit_are_refused():
    def refusal(taps):
        operands = (torch.empty(*shape, device="meta") for shape in ((1, 1, 99, 99), (1, 1, *taps)))
        return DESIGN.refuses(prepare("conv2d", *operands).problem, SIMT)

    assert refusal((48, 64)) is None and "shared memory" in refusal((49, 64))


def test_no_channels_give_the_bias():
    run_checked(LIBRARY, "conv2d", "grouped", random(2, 0, 9, 9), random(3, 0, 3, 3), random(3))


def test_which_kernel_a_call_gets():
    image, weight = random(1, 16, 9, 9), random(16, 8, 3, 3)
    assert template_of(image, weight, config={"KT": 8}, groups=2) == (8, 1, 1, 3, 1)
    assert template_of(channels_last(image), weight, groups=2) == (4, 4, 8, 3, 1)
    assert template_of(channels_last(image).double(), weight.double(), groups=2, stride=2) == (4, 2, 8, 3, 2)
    assert template_of(step_two(image), weight, groups=2)[2:] == (1, 0, 1), "columns are not contiguous"
    wide = channels_last(random(1, 24, 9, 10))
    for first, lanes in ((4, 8), (2, 1)):  # 16 and 8 bytes past an aligned address
        out = channels_last(torch.empty(1, 16, 7, 7))
        assert template_of(wide[:, first : first + 16, :, 1:], weight, groups=2, out=out)[2] == lanes
        assert template_of(image.contiguous(memory_format=torch.channels_last), weight, groups=2, out=out)[2] == 8
    further = channels_last(random(1, 17, 9, 9))[:, 1:]
    assert template_of(further, weight, groups=2)[2:] == (1, 0, 1), "pixels of 68 bytes"
    tall = torch.empty(1, 16, 9, 2**29, device="meta")[..., :9]
    assert template_of(tall, weight.to("meta"), groups=2)[3] == 0, "bytes between rows need more than 31 bits"


@short(lambda kt, stride: (kt, stride) == (8, 2))
@pytest.mark.parametrize("kt", (4, 8))
@pytest.mark.parametrize("stride", (1, 2))
def test_accesses_of_channels_last(kt, stride):
    """Pixels, taps and results by 128 bits, without bank conflicts; no more sectors than the lanes need; no races."""
    from cuda_reference.trace import trace

    input, weight = channels_last(random(2, 64, 15, 17)), random(16 * kt, 4, 3, 3)
    (traced,) = trace(launch_of(input, weight, config={"KT": kt}, groups=16, stride=stride))
    assert traced.races == ()
    pixels = [x for x in traced.accesses if x.array == "argument 0"]
    assert {x.width for x in pixels} == {16} and all(x.units == x.ideal_units for x in pixels)
    taps = [x for x in traced.accesses if x.space == "shared" and x.kind == "read"]
    assert {x.width for x in taps} == {16} and all(x.units == x.ideal_units for x in taps)
    results = [x for x in traced.accesses if x.kind == "write" and x.space == "global"]
    assert {x.width for x in results} == {16}
    staged = [x for x in traced.accesses if x.space == "shared" and x.kind == "write"]
    assert staged and all(x.units == x.ideal_units for x in staged)


@short(lambda kt: kt == 8)
@pytest.mark.parametrize("kt", (4, 8))
def test_accesses_of_nchw(kt):
    """Neighbouring lanes read neighbouring inputs; taps are a broadcast; no races."""
    from cuda_reference.trace import trace

    input, weight = random(1, 16, 16, 34), random(16, 8, 3, 3)
    (traced,) = trace(launch_of(input, weight, config={"KT": kt}, groups=2))
    assert traced.races == ()
    inputs = [x for x in traced.accesses if x.array == "argument 0"]
    assert inputs and sum(x.units for x in inputs) <= 1.25 * sum(x.ideal_units for x in inputs), (
        "taps shift columns off sectors"
    )
    taps = [x for x in traced.accesses if x.space == "shared" and x.kind == "read"]
    assert taps and all(x.units == x.ideal_units for x in taps)
    results = [x for x in traced.accesses if x.kind == "write" and x.space == "global"]
    assert results and all(x.units == x.ideal_units for x in results)


# Runs of 7 and of 14, whole and partial, with steps in both dimensions; of 9 taps and more a run of 14 at a stride of 2 meets
# more rows than a word has bits
RUNS = [
    (3, 1, 29),
    (3, 2, 31),
    (3, (2, 1), 9),
    (5, (1, 2), 6),
    (5, 2, 32),
    (7, 1, 15),
    (9, 2, 32),
    (11, (1, 2), 16),
    (13, 2, 31),
]


@short(lambda dtype, taps, stride: dtype == torch.float32 or (taps, stride) == (3, 1))
@pytest.mark.parametrize("layout", (torch.clone, channels_last))
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("taps, stride, rows", RUNS)
def test_depthwise_inputs_slide(dtype, layout, taps, stride, rows):
    input, weight, bias = (random(*shape, dtype=dtype) for shape in ((2, 12, rows, 7), (12, 1, taps, taps), (12,)))
    options = {"padding": taps // 2, "stride": stride, "groups": 12}
    call = prepare("conv2d", layout(input), weight, bias, **options)
    assert sum(call.result.shape) % 2 == 0, "run_checked's results are aligned"
    design = "depthwise" if layout is torch.clone else "depthwise_channels"
    step = stride if isinstance(stride, int) else stride[0]
    run = 14 if layout is torch.clone and call.problem.p > 7 else 7
    config = {"THREADS": 128} | ({"RUN": run} if layout is torch.clone else {})
    (launch,) = DESIGNS[design].launches(call.problem, config, *call.parts[0])
    assert f"128, {taps}, {step}, {run}" in launch.expression
    run_checked(LIBRARY, "conv2d", design, layout(input), weight, bias, config=config, **options)


# In fp32, (KT, CT, LANES, TAPS, STEP): share of FFMA in the hot loop
SHARES = {
    (8, 4, 8, 3, 1): 0.85,
    (4, 4, 8, 3, 1): 0.78,
    (8, 4, 8, 3, 2): 0.8,
    (8, 1, 1, 3, 1): 0.75,
    (4, 1, 1, 3, 1): 0.65,
}


def codes_of(architecture, header, kernels):
    """The machine code of the kernels, by mangled name."""
    codes = sass.read(nvcc.compiled(architecture.removeprefix("sm_"), [header], kernels).cubin)
    assert len(codes) == len(set(kernels))
    return codes


@thorough
@nvcc.needed
@pytest.mark.parametrize("architecture, types", [("sm_90", TYPES), ("sm_80", TYPES[:1]), ("sm_120", TYPES[:1])])
def test_machine_code(architecture, types):
    """For every layout: no spills, the widest possible loads of inputs and taps, and mostly multiply-adds."""
    kernels = []
    for dtype in types:
        for layout in (torch.clone, channels_last):
            for size in (3, 5, 2):
                image = layout(random(1, 16, 9, 9, dtype=dtype))
                kernels += launch_of(image, random(16, 8, size, size, dtype=dtype), groups=2).source.expressions
    codes = codes_of(architecture, "conv2d/grouped.cuh", kernels)
    for code in codes.values():
        assert code.stack_bytes <= FEW_WORDS and not sass.count(code.hot_loop(), sass.LOCAL), f"spills: {code.name}"
    for numbers, least in SHARES.items():
        mangled = "groupedIf" + "".join(f"Li{n}E" for n in numbers) + "EEv"
        (loop,) = (code.hot_loop() for name, code in codes.items() if mangled in name)
        assert sass.share(loop, ("FFMA",)) >= least, f"{numbers}: {loop}"
        assert sass.count(loop, ("LDS.128",)), f"{numbers}: {loop}"
        assert numbers[2] == 1 or sass.count(loop, ("LDG.E.128",)), f"{numbers}: {loop}"


@thorough
@nvcc.needed
@pytest.mark.parametrize("architecture", ("sm_80", "sm_90", "sm_120"))
def test_machine_code_of_depthwise_channels(architecture):
    """No spills; for 3 x 3 taps all columns of inputs are loaded together, by 128 bits, for longer ones each input of a column
    once."""
    input, weight = channels_last(random(1, 8, 9, 9)), random(8, 1, 3, 3)
    call = prepare("conv2d", input, weight, groups=8)
    expressions = only_launch("depthwise_channels", call).source.expressions
    codes = codes_of(architecture, "conv2d/depthwise_channels.cuh", expressions)
    assert all(code.stack_bytes <= FEW_WORDS for code in codes.values())
    for taps, step, loaded in ((3, 1, 3 * 9), (3, 2, 3 * 15), (7, 1, 13), (13, 2, 25)):
        (code,) = (code for name, code in codes.items() if f"Li128ELi{taps}ELi{step}ELi7E" in name)
        loads = [text for _, text in code.instructions if text.startswith("LDG.E.128")]
        assert len(loads) == loaded


@pytest.mark.parametrize("layout", ["contiguous_format", "channels_last"])
@pytest.mark.parametrize("design", ["depthwise", "depthwise_channels", "grouped"])
def test_work_counts_the_trips_of_the_kernel_that_runs(design, layout):
    """An unrolled one loads a column of inputs at once, the other one a tap after the other."""
    own, target, unrolled = DESIGNS[design], Target.named("h200"), set()
    for (r, s), dilation in itertools.product(((3, 3), (3, 1), (13, 1), (13, 13), (7, 5), (2, 2)), (1, (1, 2), (2, 1))):
        x = torch.empty(1, 64, 40, 40).to(memory_format=getattr(torch, layout))
        call = prepare("conv2d", x, torch.empty(64, 1, r, s), groups=64, dilation=dilation)
        config = next(iter(own.configs(call.problem, target)))
        (launch,), (work,) = own.launches(call.problem, config, *call.parts[0]), own.work(call.problem, config, target)
        taps = int(launch.expression.split(", ")[4 if design == "grouped" else 2])
        trips = s * (1 if taps else r) + (design != "depthwise")  # others bring filters to shared memory first
        assert taps in (0, r) and work.steps == trips + 2, (r, s, dilation)
        assert design == "depthwise" or not taps or r == s, "others are unrolled for square filters"
        unrolled.add(taps)
    assert 0 in unrolled and (len(unrolled) > 1 or (design, layout) == ("grouped", "channels_last"))
