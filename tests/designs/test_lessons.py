"""Every lesson of both packages: right within the float64 bound at its tiles' edges, in any layout and type that it takes, and
nothing written outside; used by name only; refused where the problem is not plain."""

import difflib
import functools
import itertools
from pathlib import Path

import pytest
import torch

from tests import cases
from tests.harness import (
    DEVICES,
    LAYOUTS,
    LIBRARIES,
    SMALL,
    Size,
    available_on,
    built,
    channels_last,
    cropped,
    designs,
    gradient_call,
    prepare,
    random,
    refusal,
    run_checked,
    short,
    taken,
)
from tritonkernels import OPS, explanation
from tritonkernels.choice.table import Entry
from tritonkernels.design import as_dict
from tritonkernels.errors import UnsupportedError
from tritonkernels.target import Target

ROOT = Path(__file__).parents[2]
H200 = Target.named("h200")
PRODUCTS = ("gemm", "matmul")
LINES = {"tritonkernels": 80, "cuda_reference": 120}  # of a lesson's file
CHANGED = 80  # lines, removed or added, from one lesson to the next
SUFFIX = {"tritonkernels": ".py", "cuda_reference": ".cuh"}
LESSONS = [
    (library.package, op, rung.name)
    for library in LIBRARIES
    for op in OPS
    for rung in library.operation(op).own
    if rung.kind == "lesson" and rung.is_in(library.package)
]
NEIGHBOURS = [  # rungs of one ladder with no other between them
    (library.package, op, before.name, rung.name)
    for library in LIBRARIES
    for op in OPS
    for before, rung in itertools.pairwise(rung for rung in library.operation(op).own if rung.is_in(library.package))
    if before.kind == rung.kind == "lesson"
]
NOT_PLAIN = {  # what it has, and a call with that
    "gemm": {},
    "matmul": {
        "a batch of 2": (((2, 16, 16), (2, 16, 16)), {}),
        "an activation": (SMALL["matmul"], {"activation": "relu"}),
    },
    "gemv": {
        "a batch of 2": (((2, 16, 16), (16,)), {}),
        "offsets of more than 32 bits": (((2**20, 2**12), (2**12,)), {}),
        "float16 into float16": (SMALL["gemv"], {"dtype": torch.float16}),
    },
    "conv2d": {
        "2 groups": (((1, 2, 8, 8), (2, 1, 3, 3)), {"groups": 2}),
        "precision tf32": (SMALL["conv2d"], {"precision": "tf32"}),
        "offsets of more than 32 bits": (((1, 1, 2**16, 2**15), (1, 1, 3, 3)), {}),
    },
    "conv2d_weight": {
        "2 groups": (((1, 2, 8, 8), Size((2, 1, 3, 3)), (1, 2, 6, 6)), {"groups": 2}),
        "float64 into float64": (SMALL["conv2d_weight"], {"dtype": torch.float64}),
    },
}
for op in PRODUCTS:
    NOT_PLAIN[op]["offsets of more than 32 bits"] = (((2**20, 2**12), (2**12, 8)), {})
ON_EDGES = (
    "tile exact",
    "tile + 1",
    "even filter, asymmetric",
    "padding beyond the filter",
    "stride",
    "dilation beyond the filter",
    "many output channels",
)
on_devices = pytest.mark.parametrize("device", DEVICES)
products = pytest.mark.parametrize("library, op, design", designs(*PRODUCTS, kind="lesson"))


def kinds(library, op, design):
    """The (dtype, options) that a lesson takes, of cases.PRECISIONS."""
    every = cases.PRECISIONS if op == "matmul" else [(torch.float32, {})]
    return [
        (dtype, options)
        for dtype, options in every
        if not refusal(library, op, design, "cuda", *SMALL[op], dtype=dtype, **options)
    ]


def tile(library, op, design, device):
    """(BM, BN, BK) of the config that a call on the device gets."""
    dtype, options = taken(library, op, design)
    call = prepare(op, *built(SMALL[op], lambda *shape: torch.empty(shape, dtype=dtype)), **options)
    target = library.target(torch.empty(0, device=device))
    config = as_dict(library.choose(call.problem, target, design)[1])
    return [next(config[name] for name in names if name in config) for names in (("BM", "BLOCK_M"), ("BN", "BLOCK_N"))] + [
        config.get("BK", config.get("BLOCK_K", 64))
    ]


@products
@on_devices
def test_sizes_around_the_tile(library, op, design, device):
    """Whole tiles, one less, one more, several slices of K and none, in one call each; with and without C."""
    available_on(library, device)
    dtype, options = taken(library, op, design)
    bm, bn, bk = tile(library, op, design, device)
    small = device == "cpu" and bm * bn > 2**16  # the interpreter's tiles
    sizes = [(1, 1, 1), (5, 3, 0), (0, 3, 4), (3, 0, 4), (9, 35, 5 * bk + 3)]
    sizes += [(127, 129, bk + 1)] if small else [(bm, bn, bk), (bm - 1, bn + 1, bk - 1), (bm + 1, bn - 1, 2 * bk + 1)]
    for m, n, k in sizes:
        a, b, c = (random(*shape, dtype=dtype, device=device) for shape in ((m, k), (k, n), (m, n)))
        run_checked(library, op, design, a, b, **options)
        run_checked(library, op, design, a, b, c=c, alpha=-1.5, beta=0.5, **options)


@products
@on_devices
def test_every_other_config(library, op, design, device):
    """Than the one that a call on the device gets; on CPUs that is of small tiles."""
    available_on(library, device)
    dtype, options = taken(library, op, design)
    a, b, c = (random(*shape, dtype=dtype, device=device) for shape in ((133, 20), (20, 140), (133, 140)))
    chosen = {d.name: d for d in library.designs(op)}[design]
    problem, target = prepare(op, a, b, c=c, beta=0.5, **options).problem, library.target(a.device)
    for config in itertools.islice(chosen.configs(problem, target), 1, None):
        run_checked(library, op, design, a, b, c=c, alpha=-1.5, beta=0.5, config=config, **options)


@short(lambda layout: layout.__name__ in ("transposed", "offset_by_one"))
@products
@on_devices
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
def test_operands_in_any_layout(library, op, design, device, layout):
    available_on(library, device)
    for dtype, options in kinds(library, op, design):
        a, b, c = (layout(random(*shape, dtype=dtype, device=device)) for shape in ((70, 41), (41, 133), (70, 133)))
        if options:
            c = c.to(options["out_dtype"])
        run_checked(library, op, design, a, b, c=c, alpha=0.5, beta=-2.0, **options)


@on_devices
@pytest.mark.parametrize("library, op, design", designs("gemv", kind="lesson"))
def test_gemv_of_any_size(library, op, design, device):
    """In every config: the interpreter has one of its own."""
    available_on(library, device)
    chosen, target = {d.name: d for d in library.designs(op)}[design], library.target(torch.empty(0, device=device))
    for m, n in (*cases.GEMV_SIZES, *cases.EMPTY_GEMVS):
        a, x, y = (random(*shape, device=device) for shape in ((m, n), (n,), (m,)))
        for config in chosen.configs(prepare(op, a, x).problem, target):
            run_checked(library, op, design, a, x, config=config)
            run_checked(library, op, design, a, x, y, alpha=-1.5, beta=0.5, config=config)


@on_devices
@pytest.mark.parametrize("library, op, design", designs("gemv", kind="lesson"))
def test_gemv_of_any_layout(library, op, design, device):
    available_on(library, device)
    for layout in LAYOUTS:
        a, (x,), (y,) = (layout(random(*shape, device=device)) for shape in ((37, 141), (1, 141), (1, 37)))
        run_checked(library, op, design, a, x, y, alpha=0.5, beta=-2.0)
    run_checked(library, op, design, a, x[:1].expand(141), y[:1].expand(37), beta=1.0)


@short(lambda name: name in ON_EDGES)
@on_devices
@pytest.mark.parametrize("name", cases.CONVOLUTIONS)
@pytest.mark.parametrize("library, op, design", designs("conv2d", "conv2d_weight", kind="lesson"))
def test_convolutions(library, op, design, device, name):
    """With one group; CUDA's direct and prefetched refuse what is beyond shared memory, too."""
    available_on(library, device)
    make = functools.partial(random, device=device)
    image, weight, kwargs = cases.CONVOLUTIONS[name]
    args = [make(*image), make(*weight), make(weight[0])]
    if op == "conv2d_weight":
        args, kwargs = gradient_call(op, name, make)
    call = prepare(op, *args, **kwargs)
    chosen, target = {d.name: d for d in library.designs(op)}[design], library.target(call.result.device)
    if why := chosen.refuses(call.problem, target):
        assert "groups" in why or (name, design) in (("halo beyond shared memory", d) for d in ("direct", "prefetched"))
        return
    for config in chosen.configs(call.problem, target):
        run_checked(library, op, design, *args, config=config, **kwargs)


@short(lambda layout: layout.__name__ in ("step_two", "channels_last", "cropped"))
@on_devices
@pytest.mark.parametrize("layout", (*LAYOUTS, channels_last, cropped), ids=lambda layout: layout.__name__)
@pytest.mark.parametrize("library, op, design", designs("conv2d", "conv2d_weight", kind="lesson"))
def test_convolutions_in_any_layout(library, op, design, device, layout):
    available_on(library, device)
    x, weight, grad = (layout(random(*shape, device=device)) for shape in ((2, 3, 9, 14), (5, 3, 3, 3), (2, 5, 9, 14)))
    second = (weight, random(10, device=device)[::2]) if op == "conv2d" else (Size(weight.shape), grad)
    run_checked(library, op, design, x, *second, padding=1)


@pytest.mark.parametrize("library, op, design", designs(kind="lesson"))
def test_what_is_not_plain_is_refused_by_one_sentence(library, op, design):
    """A call that names the lesson gets the sentence, and the names of those that take the call."""
    dtype, options = taken(library, op, design)
    for what, (shapes, more) in NOT_PLAIN[op].items():
        more = {"dtype": dtype, **options, **more}
        why = refusal(library, op, design, "cuda", *shapes, **more)
        assert why.startswith("it is a lesson, which takes plain problems of ") and why.endswith(f"and this has {what}")
        tensors = built(shapes, functools.partial(torch.empty, dtype=more.pop("dtype"), device="meta"))
        with pytest.raises(UnsupportedError, match="it is a lesson") as caught:
            library.choose(prepare(op, *tensors, **more).problem, H200, design)
        assert "Name one that can" in str(caught.value)


@pytest.mark.parametrize("library, op, design", designs("gemv", kind="lesson"))
def test_an_int8_matrix_is_not_plain(library, op, design):
    a, x, scale = torch.ones(4, 4, dtype=torch.int8), torch.ones(4), torch.ones(4)
    with pytest.raises(UnsupportedError, match="this has a matrix of another type than x"):
        library.choose(prepare(op, a, x, scale=scale).problem, H200, design)


@pytest.mark.parametrize("library, op, design", designs("matmul", kind="lesson"))
def test_a_product_of_int8_is_not_plain(library, op, design):
    """Its precision follows from its type, and is not said again."""
    a = torch.ones(16, 16, dtype=torch.int8)
    with pytest.raises(UnsupportedError, match="this has sums in int32 and int8 into int32"):
        library.choose(prepare(op, a, a).problem, H200, design)


@pytest.mark.parametrize("library, op, design", designs(kind="lesson", compiled=True))
def test_a_lesson_is_used_by_name_only(library, op, design):
    dtype, options = taken(library, op, design)
    call = prepare(op, *built(SMALL[op], lambda *shape: torch.empty(shape, dtype=dtype)), **options)
    chosen, config = library.choose(call.problem, H200, design)
    assert chosen.is_lesson and config == next(iter(chosen.configs(call.problem, H200)))
    assert 1 <= len(list(chosen.configs(call.problem, H200))) <= 3 and chosen.work is None
    assert not any(choice.design.is_lesson for choice in library.ranking(call.problem, H200))
    assert not any(of_call.is_lesson for of_call, _ in library.candidates(call.problem, H200)[0])
    entry = Entry(library.package, op, H200.name, "", {}, design, as_dict(config), ms=1.0)
    assert library._legal(call.problem, H200, entry) is None


@pytest.mark.parametrize("library, op, design", designs(kind="lesson", compiled=True))
def test_explain_says_that_it_is_one_and_predicts_nothing(library, op, design):
    dtype, options = taken(library, op, design)
    tensors = built(SMALL[op], lambda *shape: torch.empty(shape, dtype=dtype, device="meta"))
    report = explanation.explain(library, op, *tensors, design=design, target="h200", **options)
    assert report["kind"] == "lesson" and "predicted" not in report and report["kernels"]
    assert explanation.explain(library, op, *tensors, target="h200", **options)["kind"] == "contender"


@pytest.mark.parametrize(
    "library, op, design", [p for p in designs(kind="lesson", compiled=True) if p.values[0].package == "tritonkernels"]
)
def test_its_kernels_begin_when_all_before_them_have_ended(library, op, design):
    dtype, options = taken(library, op, design)
    call = prepare(op, *built(SMALL[op], lambda *shape: torch.empty(shape, dtype=dtype, device="meta")), **options)
    chosen, config = library.choose(call.problem, H200, design)
    launches = [launch for part in call.parts for launch in chosen.launches(call.problem, config, *part)]
    assert launches and not any(launch.overlaps for launch in launches)


@pytest.mark.parametrize("package, op, name", LESSONS)
def test_a_lesson_is_one_short_file(package, op, name):
    lines = (ROOT / package / op / f"{name}{SUFFIX[package]}").read_text().splitlines()
    assert len(lines) <= LINES[package]
    assert not any("wait_for_earlier_kernels" in line or "WIDE" in line for line in lines)


@pytest.mark.parametrize("package, op, before, name", NEIGHBOURS)
def test_the_difference_to_the_lesson_before_is_short(package, op, before, name):
    texts = ((ROOT / package / op / f"{each}{SUFFIX[package]}").read_text().splitlines() for each in (before, name))
    changed = [
        line for line in difflib.unified_diff(*texts, lineterm="", n=0) if line[:1] in "+-" and line[:3] not in ("+++", "---")
    ]
    assert 0 < len(changed) <= CHANGED
