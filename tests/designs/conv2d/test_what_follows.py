"""conv2d's residual and activation in every design that takes them: around the edges of tiles, once where sums are shared."""

import itertools

import pytest
import torch

import cuda_reference
import tritonkernels
from tests.harness import (
    DEVICES,
    LIBRARIES,
    assert_poisoned_outside,
    available_on,
    changed,
    channels_last,
    designs,
    poisoned,
    prepare,
    random,
    run_checked,
    run_where_taken,
    short,
)
from tests.memory.guarded import end_of, guarded
from tritonkernels import backend
from tritonkernels.errors import UnsupportedError
from tritonkernels.numerics import ACTIVATIONS, judge
from tritonkernels.target import Target

REFUSING = {  # designs that end with the bias
    "tritonkernels": ("winograd",),
    "cuda_reference": ("winograd",),
}
CASES = {  # image, filters, options
    "ragged": ((2, 5, 7, 9), (67, 5, 3, 3), {"padding": 1}),
    "steps": ((1, 8, 9, 36), (6, 8, 2, 3), {"stride": 2, "dilation": (2, 1)}),
    "one tap": ((2, 8, 5, 13), (65, 8, 1, 1), {}),
    "patches": ((1, 3, 8, 12), (10, 3, 4, 4), {"stride": 4}),
    "groups": ((1, 6, 6, 7), (10, 3, 2, 2), {"groups": 2}),
    "groups of whole vectors": ((2, 8, 5, 7), (16, 4, 3, 3), {"groups": 2, "padding": 1}),
    "a filter a channel": ((2, 36, 9, 5), (36, 1, 3, 3), {"groups": 36, "padding": 1}),
    "one image": ((4, 6, 7), (5, 4, 3, 3), {}),
}
GROUPED = ("groups", "groups of whole vectors", "a filter a channel")
LAYOUTS = {"nchw": torch.clone, "channels_last": channels_last}
every_design = pytest.mark.parametrize("library, op, design", designs("conv2d"))
on_devices = pytest.mark.parametrize("device", DEVICES)
both = pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)


# Residuals with the values of a contiguous one, each element between others that are NaN.
def every_other(t):
    wide = torch.full((*t.shape, 2), torch.nan, dtype=t.dtype, device=t.device)
    wide[..., 1] = t
    return wide[..., 1]


def turned_round(t):
    """Rows along H, which no design expects."""
    return t.mT.contiguous().mT


def repeated(t):
    """One line for all channels and rows."""
    return t[..., :1, :1, :].expand(t.shape)


RESIDUALS = (torch.clone, every_other, turned_round, repeated)


def operands(case, layout, dtype=torch.float32, device="cpu"):
    image, filters, options = CASES[case]
    make = LAYOUTS[layout] if len(image) == 4 else torch.clone
    tensors = make(random(*image, dtype=dtype, device=device)), make(random(*filters, dtype=dtype, device=device))
    shape = prepare("conv2d", *tensors, **options).result.shape
    return (
        tensors,
        random(filters[0], dtype=dtype, device=device),
        make(random(*shape, dtype=dtype, device=device)),
        dict(options),
    )


def taken_by(library, design, case):
    if design.startswith("matmul"):
        return case in ("one tap", "patches")
    if design in REFUSING[library.package]:
        return False
    if design == "depthwise_channels":
        return case == "a filter a channel"
    if design == "register_blocked" and library.package == "cuda_reference" and case == "patches":
        return False  # a tile's inputs would not fit
    return case not in GROUPED or design != "warp_specialized"


@every_design
@pytest.mark.parametrize("activation", (None, *ACTIVATIONS))
@pytest.mark.parametrize("layout", LAYOUTS)
@on_devices
def test_every_residual(library, op, design, layout, activation, device):
    available_on(library, device)
    precision = {"precision": "tf32"} if design == "warp_specialized" else {}
    first = list((None, *ACTIVATIONS)).index(activation)  # so that each case meets each residual
    for number, case in enumerate(CASES, first):
        (x, filters), bias, residual, options = operands(case, layout, device=device)
        follows = {"residual": RESIDUALS[number % 4](residual), "activation": activation}
        given = x, filters, bias if number % 3 else None
        taken = run_where_taken(library, op, design, *given, **follows, **options, **precision)
        assert taken == taken_by(library, design, case)


@every_design
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", (torch.float16, torch.bfloat16, torch.float64), ids=str)
@on_devices
def test_types(library, op, design, dtype, activation, device):
    """With an activation alone, and with all that follows."""
    available_on(library, device)
    channels_inside = ("one tap", "groups of whole vectors", "a filter a channel")
    for case, layout in (("ragged", "nchw"), *((case, "channels_last") for case in channels_inside)):
        (x, filters), bias, residual, options = operands(case, layout, dtype, device)
        for follows in ({}, {"residual": every_other(residual) if layout == "nchw" else residual}):
            taken = run_where_taken(library, op, design, x, filters, bias, activation=activation, **follows, **options)
            assert not taken or taken_by(library, design, case)


def in_splits(library, call):
    """A config of implicit_gemm in three splits."""
    design = {d.name: d for d in library.designs("conv2d")}["implicit_gemm"]
    configs = design.configs(call.problem, library.target(call.result.device))
    name = "SPLITS" if library is LIBRARIES[0] else "SPLIT_K"
    return design, changed(next(iter(configs)), {name: 3})


@both
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", (torch.float32, torch.float16), ids=str)
@on_devices
def test_sums_of_splits_are_finished_once(library, dtype, activation, device):
    available_on(library, device)
    for case, layout in itertools.product(("ragged", "steps", "groups"), LAYOUTS):
        (x, filters), bias, residual, options = operands(case, layout, dtype, device)
        options |= {"residual": every_other(residual), "activation": activation}
        call = prepare("conv2d", x, filters, bias, **options)
        design, config = in_splits(library, call)
        call.result.fill_(torch.nan)
        for launch in design.launches(call.problem, config, *call.parts[0]):
            launch.run()
        assert judge(call.problem, call.result, x, filters, bias, **options).ok


@every_design
@pytest.mark.parametrize("layout", LAYOUTS)
@on_devices
def test_over_the_residual(library, op, design, layout, device):
    """`out` may be the residual, as an addend of a product may be."""
    available_on(library, device)
    for case in ("one tap", "ragged", "groups"):
        (x, filters), bias, residual, options = operands(case, layout, device=device)
        options |= {"activation": "relu"} | ({"precision": "tf32"} if design == "warp_specialized" else {})
        out, buffer, where = poisoned(residual.shape, residual.dtype, residual.device)
        call = prepare("conv2d", x, filters, bias, residual=out.copy_(residual), out=out, **options)
        chosen = {d.name: d for d in library.designs(op)}[design]
        if chosen.refuses(call.problem, library.target(out.device)) is None:
            assert library.run(call, design) is out
            assert library.judge(call, design, None, x, filters, bias, residual=residual, **options).ok
            assert_poisoned_outside(buffer, where)


@every_design
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.skipif(backend.device_type() != "cpu", reason="guards CPU memory")
@short(lambda library: library.package == "cuda_reference")
def test_no_read_past_the_residual(library, op, design, layout):
    """Its last element ends a page, and the next cannot be read."""
    available_on(library, "cpu")
    precision = {"precision": "tf32"} if design == "warp_specialized" else {}
    calls = []
    for case in (case for case in CASES if taken_by(library, design, case)):
        (x, filters), bias, residual, options = operands(case, layout)
        options |= precision | {"residual": guarded(residual, "end", read_only=True)}
        calls.append(prepare("conv2d", x, filters, bias, **options))
    assert end_of(lambda: [library.run(call, design) for call in calls]) == 0


def test_relu_keeps_nan_and_the_residual_s_infinities():
    for library in LIBRARIES:
        available_on(library, "cpu")
        (x, filters), bias, residual, options = operands("one image", "nchw")
        residual[0, 0, 0], residual[1, 0, 0], residual[2, 0, 0] = torch.nan, -torch.inf, torch.inf
        result, _ = run_checked(library, "conv2d", None, x, filters, bias, residual=residual, activation="relu", **options)
        assert result[0, 0, 0].isnan() and result[1, 0, 0] == 0 and result[2, 0, 0] == torch.inf


@both
@pytest.mark.parametrize("what", ({"activation": "silu"}, {"residual": True}), ids=("activation", "residual"))
def test_designs_that_end_with_a_bias_refuse(library, what):
    """Also lessons; and none of them is chosen."""
    refusing = REFUSING[library.package]
    x, filters = channels_last(random(1, 8, 9, 9)), random(8, 1, 3, 3)
    if "residual" in what:
        what = {"residual": random(1, 8, 7, 7)}
    call = prepare("conv2d", x, filters, groups=8, **what)
    for target in (Target.named("h200"), library.target(x.device)):
        found = {quote.design.name for quote in library.ranking(call.problem, target)}
        assert found and found.isdisjoint(refusing)
    word = "an activation" if "activation" in what else "a residual"
    for design in library.designs("conv2d"):
        if design.is_lesson or design.name in refusing:
            with pytest.raises(UnsupportedError, match=word):
                library.run(call, design.name)


@pytest.mark.parametrize("package", (tritonkernels, cuda_reference), ids=lambda package: package.__name__)
@pytest.mark.parametrize("activation", (None, *ACTIVATIONS))
@short(lambda package, activation: package is cuda_reference)
def test_gradients_are_torch_s(package, activation):
    tensors = [t.requires_grad_() for t in (random(2, 3, 6, 5), random(4, 3, 3, 3), random(4), random(2, 4, 4, 3))]
    torchs = [t.detach().clone().requires_grad_() for t in tensors]
    function = getattr(torch.nn.functional, activation) if activation else lambda t: t
    *given, residual = tensors
    result = package.conv2d(*given, residual=residual, activation=activation)
    exact = function(torch.nn.functional.conv2d(*torchs[:3]) + torchs[3])
    assert torch.allclose(result, exact, atol=1e-5)
    result.pow(2).sum().backward()
    exact.pow(2).sum().backward()
    assert all(torch.allclose(ours.grad, torchs.grad, atol=1e-4) for ours, torchs in zip(tensors, torchs))
