"""The gradients of conv2d, and conv2d under autograd: against float64, against the adjoint, against torch's own autograd."""

import functools
import inspect
import math
import types

import pytest
import torch

import cuda_reference
import tritonkernels
from cuda_reference.launch import LIBRARY as CUDA
from tests import cases
from tests.harness import (
    DEVICES,
    LAYOUTS,
    Size,
    available_on,
    bits,
    changed,
    channels_last,
    designs,
    gradient_call,
    prepare,
    random,
    run_checked,
    run_where_taken,
    short,
    step_two,
    taken,
    thorough,
)
from tritonkernels import numerics
from tritonkernels.errors import GradientError
from tritonkernels.launch import LIBRARY as TRITON
from tritonkernels.operations.conv2d import as_matmul
from tritonkernels.operations.conv2d_input.phases import are_phases_missing, phases
from tritonkernels.operations.conv2d_weight.space import MOST_SPLITS, splits_for
from tritonkernels.target import Target

H200 = Target.named("h200")
GRADIENTS = ("conv2d_input", "conv2d_weight", "conv2d_bias")
on_devices = pytest.mark.parametrize("device", DEVICES)
every_design = pytest.mark.parametrize("library, op, design", designs(*GRADIENTS))
both_packages = pytest.mark.parametrize(
    "package, library", [(tritonkernels, TRITON), (cuda_reference, CUDA)], ids=["triton", "cuda"]
)


def typed(library, op, design, device):
    """(what makes operands of the type that the design takes, how many groups of 4 channels it takes)."""
    dtype, _ = taken(library, op, design)
    groups = 2 if dtype == torch.float32 else 1
    return functools.partial(random, dtype=dtype, device=device), 4 if is_depthwise(op, design) else groups


def is_depthwise(op, design):
    """Whether it takes one channel a group, and no dilation."""
    return (op, design) == ("conv2d_weight", "depthwise")


# The halo is one of the forward pass; the gradient of so large an image takes the interpreter longer than all other cases.
@short(lambda library, op, name: (library, op, name) != (TRITON, "conv2d_input", "halo beyond shared memory"))
@every_design
@pytest.mark.parametrize("name", cases.CONVOLUTIONS)
@on_devices
def test_geometries(library, op, design, device, name):
    available_on(library, device)
    make, groups = typed(library, op, design, device)
    args, kwargs = gradient_call(op, name, make)
    (run_checked if groups == 2 else run_where_taken)(library, op, design, *args, **kwargs)


@every_design
@on_devices
def test_strides_and_dilations_with_a_common_divisor(library, op, design, device):
    """The taps of a phase are then closer together in outputs than in the filter."""
    available_on(library, device)
    make, _ = typed(library, op, design, device)
    image, weight, grad, options = (
        (1, 2, 17, 21),
        (3, 2, 3, 3),
        (1, 3, 8, 3),
        {"stride": (2, 4), "dilation": (2, 6), "padding": 1},
    )
    args = {
        "conv2d_input": (image, make(*weight), make(*grad)),
        "conv2d_weight": (make(*image), weight, make(*grad)),
        "conv2d_bias": (make(*grad),),
    }[op]
    run = run_where_taken if is_depthwise(op, design) else run_checked
    run(library, op, design, *args, **({} if op == "conv2d_bias" else options))


def operands(op, make, layout=lambda t: t, groups=2):
    """Operands of a convolution with asymmetric filters, and with phases of two sizes."""
    image, weight, grad = (3, 4, 13, 17), (12, 4 // groups, 3, 2), layout(make(3, 12, 7, 18))
    options = {"stride": (2, 1), "padding": 1, "groups": groups}
    return {
        "conv2d_input": ((image, layout(make(*weight)), grad), options),
        "conv2d_weight": ((layout(make(*image)), weight, grad), options),
        "conv2d_bias": ((grad,), {}),
    }[op]


@every_design
@pytest.mark.parametrize("layout", (*LAYOUTS, channels_last), ids=lambda f: f.__name__)
@on_devices
def test_layouts(library, op, design, device, layout):
    available_on(library, device)
    make, groups = typed(library, op, design, device)
    args, options = operands(op, make, layout, groups)
    run_checked(library, op, design, *args, **options)


@every_design
@pytest.mark.parametrize("dtype", (torch.float16, torch.bfloat16, torch.float64), ids=str)
@on_devices
def test_types(library, op, design, device, dtype):
    available_on(library, device)
    for layout in (lambda t: t, channels_last):
        args, options = operands(op, functools.partial(random, dtype=dtype, device=device), layout, groups=1)
        run_where_taken(library, op, design, *args, **options)


@every_design
@on_devices
def test_expanded_gradients(library, op, design, device):
    """The gradients of .sum() and .mean((2, 3)), with strides of 0."""
    available_on(library, device)
    make, groups = typed(library, op, design, device)
    args, options = operands(op, make, groups=groups)
    for shape in ((1, 1, 1, 1), (3, 12, 1, 1), (1, 1, 7, 18)):
        run_checked(library, op, design, *args[:-1], make(*shape).expand(3, 12, 7, 18), **options)


@every_design
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@on_devices
def test_a_special_value_reaches_the_results_that_use_it(library, op, design, device, value):
    available_on(library, device)
    make, groups = typed(library, op, design, device)
    args, options = operands(op, make, groups=groups)
    clean, _ = run_checked(library, op, design, *args, **options)
    clean = clean.clone()
    args[-1][1, 2, 3, 4] = value  # of the first group
    result, _ = run_checked(library, op, design, *args, **options)
    touched = ~torch.isfinite(result)
    assert touched.any() and torch.equal(bits(result[~touched]), bits(clean[~touched]))


@pytest.mark.parametrize("library, op, design", designs("conv2d_bias"))
@on_devices
def test_more_splits_than_are_added_up_at_once(library, op, design, device):
    """39 splits of 10 positions each; the kernel, which conv2d_weight uses too, adds 4, 16 or 32 at a time."""
    available_on(library, device)
    grad_output = random(2, 3, 16, 12, device=device)
    call = prepare(op, grad_output)
    (chosen,) = library.designs(op)
    config = next(iter(chosen.configs(call.problem, library.target(call.result.device))))
    config = changed(config, {"SPLITS": 40} if library is CUDA else {"SPLITS": 40, "BLOCK_L": 2})
    for launch in chosen.launches(call.problem, config, *call.parts[0]):
        launch.run()
    assert numerics.judge(call.problem, call.result, grad_output).ok


@thorough  # tests/concurrency has a call of each design
@every_design
@on_devices
def test_every_call_gives_the_same_bits(library, op, design, device):
    """For any number of splits."""
    available_on(library, device)
    make, groups = typed(library, op, design, device)
    args, options = operands(op, make, groups=groups)
    chosen = {d.name: d for d in library.designs(op)}[design]
    call = prepare(op, *args, **options)
    for config in chosen.configs(call.problem, library.target(call.result.device)):
        results = [bits(library.run(prepare(op, *args, **options), design, config)) for _ in range(3)]
        assert all(torch.equal(result, results[0]) for result in results[1:])


@pytest.mark.parametrize("library, op, design", designs("conv2d_weight"))
@on_devices
def test_every_config_in_channels_last(library, op, design, device, everything):
    """In channels_last tiles walk channels first, but partial sums do not. `make test` has the first and the last."""
    available_on(library, device)
    make, _ = typed(library, op, design, device)
    filters, groups = (8, 4) if is_depthwise(op, design) else (5, 1)
    weight, options = (filters, 4 // groups, 3, 3), {"padding": 1, "groups": groups}
    x, grad = (channels_last(make(2, c, 16, 20)) for c in (4, filters))
    chosen = {d.name: d for d in library.designs(op)}[design]
    call = prepare(op, x, weight, grad, **options)
    configs = list(chosen.configs(call.problem, library.target(call.result.device)))
    for i in range(len(configs)) if everything else sorted({0, len(configs) - 1}):
        run_checked(library, op, design, x, weight, grad, config=configs[i], **options)


@pytest.mark.parametrize("name", [name for name, (_, weight, _) in cases.CONVOLUTIONS.items() if weight[0]])
def test_the_reference_is_the_adjoint(name):
    """<conv(x, w), g> = <x, gradient of input> = <w, gradient of weight>, however the reference computes them."""
    image, weight, kwargs = cases.CONVOLUTIONS[name]
    x, w = random(*image).double(), random(*weight).double()
    y = torch.nn.functional.conv2d(x, w, **kwargs)
    g = torch.randn_like(y)
    wanted = (y * g).sum()
    torch.testing.assert_close((x * numerics.reference("conv2d_input", x.shape, w, g, **kwargs)).sum(), wanted)
    torch.testing.assert_close((w * numerics.reference("conv2d_weight", x, w.shape, g, **kwargs)).sum(), wanted)
    torch.testing.assert_close(numerics.reference("conv2d_bias", g), g.sum((-2, -1)).reshape(-1, len(w)).sum(0))


@pytest.mark.parametrize("op", GRADIENTS[:2])
def test_torchs_names_and_order(op):
    ours, torchs = (list(inspect.signature(getattr(of, op)).parameters) for of in (tritonkernels, torch.nn.grad))
    assert ours[: len(torchs)] == torchs


# The convolutions that a gradient with respect to the input consists of.
def problem_of(input_size, weight, grad_output, **options):
    tensors = (torch.empty(shape, device="meta") for shape in (weight, grad_output))
    return prepare("conv2d_input", input_size, *tensors, **options).problem


def phases_of(*args, **options):
    return phases(problem_of(*args, **options))


def test_a_stride_of_one_is_one_convolution():
    (phase,) = phases_of((2, 3, 9, 8), (5, 3, 3, 2), (2, 5, 9, 9), padding=1)
    assert (phase.problem.padding, phase.problem.stride) == ((1, 0), (1, 1))
    assert (phase.problem.c, phase.problem.k, phase.problem.p, phase.problem.q) == (5, 3, 9, 8)


@pytest.mark.parametrize("grad_layout, taps, copied", [(channels_last, 1, 0), (channels_last, 2, 0), (torch.clone, 2, 1)])
def test_a_phase_in_channels_last_is_one_launch_of_long_products(grad_layout, taps, copied):
    """Its columns are apart, and the rows of all images follow each other: a product for each column, not each row or image.
    What does not lie so is copied."""
    for n, h, w, batch, rows in ((64, 14, 14, 7, 64 * 7), (1, 4, 200, 2, 100)):
        grad, weight = torch.empty(n, 48, h // 2, w // 2), channels_last(torch.empty(48, 32, taps, taps))
        call = prepare("conv2d_input", (n, 32, h, w), weight, grad_layout(grad), stride=2)
        (operands,) = call.parts
        for phase in phases(call.problem):
            filters = weight.transpose(0, 1)
            arrange = types.SimpleNamespace(unfold=lambda *copies: copies)
            *copies, product = as_matmul.steps(phase.problem, arrange, *phase.operands(operands[0], filters, *operands[2:]))
            assert len(product.parts) == 1 and (product.problem.batch, product.problem.m) == (batch, rows)
            assert [len(copy) for copy in copies] == [1] * (copied if n > 1 else 0)


@pytest.mark.parametrize("layout", (torch.clone, channels_last))
def test_one_image_in_nchw_keeps_its_pixels_side_by_side(layout):
    """Columns are no batch there, as no operand has lines along channels; forward, too, into a part of a buffer."""
    grad, weight = torch.empty(1, 48, 32, 16), torch.empty(48, 32, 1, 1)
    call = prepare("conv2d_input", (1, 32, 64, 32), weight, grad, stride=2, out=layout(torch.empty(1, 32, 64, 32)))
    (phase,) = phases(call.problem)
    into = torch.empty(1, 48, 66, 34)[:, :, 1:-1, 1:-1]
    forward = prepare("conv2d", layout(torch.empty(1, 32, 64, 32)), torch.empty(48, 32, 1, 1), out=into)
    image, filters, bias, out = forward.parts[0]
    for problem, operands, batch in (
        (phase.problem, phase.operands(call.parts[0][0], weight.transpose(0, 1), None, call.result), 32),
        (forward.problem, (image, filters, bias, out), 64),
    ):
        (product,) = as_matmul.steps(problem, None, *operands)
        assert product.problem.batch == batch and "strided" not in (product.problem.a_layout, product.problem.b_layout)


@pytest.mark.parametrize(
    "size, weight, options",
    [
        ((1, 32, 8, 8), (48, 32, 2, 2), {"stride": 2}),  # one image follows itself
        ((3, 32, 8, 8), (48, 32, 1, 2), {"stride": (1, 2)}),  # columns are evenly spaced
        ((3, 32, 2, 8), (48, 32, 2, 2), {"stride": 2}),  # a row of each image
        ((3, 32, 8, 8), (1, 32, 2, 2), {"stride": 2}),  # one channel lies as it should
        ((3, 32, 8, 8), (48, 32, 1, 1), {"stride": 2}),  # one phase
    ],
    ids=str,
)
def test_what_phases_need_not_copy(size, weight, options):
    forward = prepare("conv2d", torch.empty(size), torch.empty(weight), **options)
    grad = torch.empty(forward.result.shape)
    out = channels_last(torch.empty(size))
    call = prepare("conv2d_input", size, channels_last(torch.empty(weight)), grad, **options, out=out)
    design = {d.name: d for d in TRITON.designs("conv2d_input")}["matmul.pipelined"]
    launched = design.launches(call.problem, next(iter(design.configs(call.problem, H200))), *call.parts[0])
    assert not any("channels_last" in launch.name for launch in launched)


@both_packages
@pytest.mark.parametrize("k", [48, 50])
def test_phases_share_a_copy_of_grad_output(package, library, k):
    for grad_layout, copies in ((channels_last, 0), (torch.clone, 1)):
        operands = channels_last(torch.empty(k, 32, 2, 2)), grad_layout(torch.empty(3, k, 4, 4))
        call = prepare("conv2d_input", (3, 32, 8, 8), *operands, stride=2, precision="tf32")
        design = {d.name: d for d in library.designs("conv2d_input")}["matmul.pipelined"]
        launched = design.launches(call.problem, next(iter(design.configs(call.problem, H200))), *call.parts[0])
        names = [launch.name for launch in launched]
        assert sum("channels_last" in name for name in names) == copies and not any("unfold" in name for name in names)
        assert sum("pipelined" in name for name in names) == 4


@both_packages
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("geometry", [(3, 8, 6), (3, 7, 6), (1, 4, 20)], ids=str)
@pytest.mark.parametrize("grad_layout", (torch.clone, channels_last, step_two))
@pytest.mark.parametrize("filter_layout", (torch.clone, channels_last))
def test_products_of_phases_of_any_layouts(package, library, filter_layout, grad_layout, geometry, device):
    available_on(library, device)
    n, h, w = geometry
    for taps in (1, 2) if h % 2 == 0 else (1,):
        size = (h - taps) // 2 + 1, (w - taps) // 2 + 1
        weight = filter_layout(random(6, 8, taps, taps, dtype=torch.float16, device=device))
        grad = grad_layout(random(n, 6, *size, dtype=torch.float16, device=device))
        run_checked(library, "conv2d_input", "matmul.pipelined", Size((n, 8, h, w)), weight, grad, stride=2)


def test_strides_are_phases_and_what_no_tap_reaches_is_zeroed_once():
    by_two = phases_of((2, 3, 9, 8), (5, 3, 3, 3), (2, 5, 5, 4), stride=2, padding=1)
    assert sorted((p.problem.r, p.problem.s) for p in by_two) == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert sum(p.problem.p * p.problem.q for p in by_two) == 9 * 8
    assert not are_phases_missing(problem_of((2, 3, 9, 8), (5, 3, 3, 3), (2, 5, 5, 4), stride=2, padding=1))
    apart = (1, 2, 150, 260), (3, 2, 2, 2), (1, 3, 3, 6), {"stride": 40, "dilation": (30, 50)}
    assert [(p.problem.r, p.problem.s) for p in phases_of(*apart[:3], **apart[3])] == [(1, 1)] * 4
    every_second = (1, 1, 9, 9), (1, 1, 3, 3), (1, 1, 3, 3), {"stride": 2, "dilation": 2}
    assert len(phases_of(*every_second[:3], **every_second[3])) == 1
    assert all(are_phases_missing(problem_of(*sizes, **options)) for *sizes, options in (apart, every_second))
    (nothing,) = phases_of((1, 2, 1, 1), (3, 2, 1, 1), (1, 3, 2, 2), stride=2, padding=1)  # a pixel between all taps
    assert nothing.problem.c == 0 and (nothing.problem.p, nothing.problem.q) == (1, 1)


@both_packages
@pytest.mark.parametrize("layout", (torch.clone, channels_last, step_two))
@on_devices
def test_what_no_tap_reaches_is_zero_in_any_layout(package, library, layout, device):
    available_on(library, device)
    weight, grad = random(4, 6, 1, 1, device=device), random(2, 4, 3, 5, device=device)
    out = layout(torch.full((2, 6, 6, 9), math.nan, device=device))
    package.conv2d_input(out.shape, weight, grad, stride=2, out=out, design="implicit_gemm")
    expected = torch.zeros_like(out, dtype=torch.float64)
    expected[..., ::2, ::2] = torch.einsum("nkpq,kc->ncpq", grad.double(), weight[:, :, 0, 0].double())
    torch.testing.assert_close(out.double(), expected, rtol=1e-5, atol=1e-5)


@both_packages
@pytest.mark.parametrize("dtype", (torch.float16, torch.float32, torch.float64), ids=str)
@pytest.mark.parametrize("layout", (torch.clone, channels_last))
@on_devices
def test_filters_of_more_than_a_tile_are_flipped(package, library, layout, dtype, device):
    """Channels of both kinds around tiles, of groups, too; a filter with as many columns as a tile."""
    available_on(library, device)
    for channels, filters, groups, taps in ((70, 34, 1, (2, 3)), (66, 6, 3, (3, 1)), (5, 65, 1, (1, 33))):
        shape = filters, channels // groups, *taps
        weight = layout(random(*shape, dtype=dtype, device=device))
        grad = layout(random(1, filters, 2, 2, dtype=dtype, device=device))
        size = 1, channels, taps[0] + 1, taps[1] + 1
        run_checked(library, "conv2d_input", "implicit_gemm", size, weight, grad, groups=groups)


def test_splits_fill_the_gpu_and_are_not_too_short():
    image = prepare("conv2d_weight", *(torch.empty(1, 3, 1080, 1920, device="meta"), (3, 3, 3, 3)),
                    torch.empty(1, 3, 1080, 1920, device="meta"), padding=1).problem  # fmt: skip
    assert splits_for(image, H200, 1, 128, 4) == 4 * H200.sms
    assert splits_for(image, H200, 10**6, 128, 4) == 1
    assert splits_for(image, H200, 1, 2**18, 4) == 1
    assert splits_for(image, H200, 1, 1, 100) == MOST_SPLITS


# Under autograd.
GEOMETRY = {"stride": (2, 1), "padding": 1, "dilation": (1, 2), "groups": 2}


def leaves(*shapes, dtype=torch.float64, device="cpu"):
    return [random(*shape, dtype=dtype, device=device).requires_grad_() for shape in shapes]


LOSSES = {
    "sum": lambda y: y.sum(),  # an expanded gradient
    "mean over positions": lambda y: y.mean((2, 3)).square().sum(),
    "part of a concatenation": lambda y: (torch.cat((y, y[:, :1], y), 1) ** 2).sum(),
    "transposed": lambda y: (y.mT @ y).sum(),
}


@both_packages
@pytest.mark.parametrize("layout", (torch.contiguous_format, torch.channels_last), ids=str)
@pytest.mark.parametrize("loss", LOSSES)
@on_devices
def test_gradients_are_torchs(package, library, device, loss, layout):
    """In the same memory formats."""
    available_on(library, device)
    tensors = leaves((2, 4, 9, 8), (6, 2, 3, 2), (6,), device=device)
    for t in tensors[:2]:
        t.data = t.data.contiguous(memory_format=layout)
    LOSSES[loss](torch.nn.functional.conv2d(*tensors, **GEOMETRY)).backward()
    expected = [t.grad for t in tensors]
    for t in tensors:
        t.grad = None
    LOSSES[loss](package.conv2d(*tensors, **GEOMETRY)).backward()
    for t, grad in zip(tensors, expected):
        torch.testing.assert_close(t.grad, grad)
    assert all(t.grad.is_contiguous(memory_format=layout) for t in tensors[:2])


@pytest.mark.parametrize("wanted", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1)])
def test_only_what_is_needed_is_computed(wanted, monkeypatch):
    computed = []
    monkeypatch.setattr(CUDA.plans, "_plans", {})
    run = CUDA.run.__func__

    def watched(library, call, *args):
        computed.append(call.problem.op)
        return run(library, call, *args)

    monkeypatch.setattr(type(CUDA), "run", watched)
    tensors = [random(*shape).requires_grad_(bool(w)) for shape, w in zip(((1, 2, 5, 5), (3, 2, 2, 2), (3,)), wanted)]
    cuda_reference.conv2d(*tensors).sum().backward()
    assert computed == ["conv2d", *(op for op, w in zip(GRADIENTS, wanted) if w)]
    assert [t.grad is not None for t in tensors] == [bool(w) for w in wanted]


def test_nothing_is_recorded_without_requires_grad():
    x, w = leaves((1, 2, 5, 5), (3, 2, 2, 2))
    with torch.no_grad():
        assert cuda_reference.conv2d(x, w).grad_fn is None
    assert cuda_reference.conv2d(x.detach(), w.detach()).grad_fn is None
    assert cuda_reference.explain("conv2d", x, w)["op"] == "conv2d"


@both_packages
def test_what_has_no_gradient_is_refused(package, library):
    available_on(library, "cpu")
    x, w = leaves((1, 2, 5, 5), (3, 2, 2, 2))
    with pytest.raises(GradientError, match=r"^input: .*out"):
        package.conv2d(x, w, out=torch.empty(1, 3, 4, 4, dtype=torch.float64))
    g = torch.zeros(1, 3, 4, 4, dtype=torch.float64)
    with pytest.raises(GradientError, match=r"^weight: .*out"):
        package.conv2d_input(x.shape, w, g, out=torch.empty_like(x))
    with pytest.raises(GradientError, match=r"^input: .*out"):
        package.conv2d_weight(x, w.shape, g, out=torch.empty_like(w))
    with pytest.raises(GradientError, match=r"^grad_output: .*out"):
        package.conv2d_bias(g.requires_grad_(), out=torch.empty(3, dtype=torch.float64))
