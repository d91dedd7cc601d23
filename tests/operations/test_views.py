"""conv1d, conv3d and transposed convolutions: torch's results, by the conv2d and conv2d_input of views that move no data."""

import inspect

import numpy
import pytest
import torch
from torch.nn import functional

import cuda_reference
import tritonkernels
from tests.harness import DEVICES, available_on, designs, prepare, random, run_checked, short
from tritonkernels.errors import ArgumentError, DtypeError, GradientError, OverlapError, ShapeError, UnsupportedError
from tritonkernels.operations.views import VIEWS, viewed

both_packages = pytest.mark.parametrize("package", (tritonkernels, cuda_reference), ids=lambda p: p.__name__)
on_devices = pytest.mark.parametrize("device", DEVICES)
emulated = short(lambda package: package is cuda_reference)
WAYS = "depth in channels", "depth in batch", "columns in rows", "rows in depth"

# (operation, the input's shape, the weight's, options); each geometry is asymmetric, each axis of its own.
CALLS = (
    ("conv1d", (2, 4, 11), (6, 2, 3), {"stride": 2, "padding": (1,), "dilation": 2, "groups": 2}),
    ("conv1d", (4, 11), (6, 4, 4), {"padding": "same", "dilation": (3,)}),
    ("conv1d", (2, 4, 5), (6, 4, 5), {"padding": "valid"}),
    ("conv_transpose1d", (2, 4, 5), (4, 3, 4), {"stride": 3, "padding": 2, "output_padding": 2, "dilation": 2, "groups": 2}),
    ("conv_transpose1d", (4, 5), (4, 3, 2), {"stride": (4,), "padding": (1,), "output_padding": (1,)}),
    (
        "conv_transpose2d",
        (2, 4, 5, 3),
        (4, 3, 3, 2),
        {"stride": (2, 3), "padding": (2, 0), "output_padding": (1, 2), "groups": 2},
    ),
    ("conv_transpose2d", (4, 5, 3), (4, 3, 2, 3), {"stride": 3, "dilation": (2, 4), "padding": 1}),
    ("conv3d", (3, 4, 2, 8, 6), (6, 2, 2, 4, 3), {"stride": (2, 4, 3), "groups": 2}),
    ("conv3d", (2, 3, 6, 4, 3), (4, 3, 3, 2, 2), {"dilation": (2, 1, 1), "padding": (0, 1, 0), "stride": (9, 1, 2)}),
    ("conv3d", (1, 4, 5, 4, 6), (6, 2, 1, 3, 2), {"stride": (2, 1, 3), "padding": (0, 1, 2), "groups": 2}),
    ("conv3d", (2, 3, 5, 4, 6), (4, 3, 1, 3, 2), {"padding": "same"}),
    ("conv3d", (2, 3, 5, 4, 6), (4, 3, 3, 1, 1), {"stride": (2, 1, 1), "padding": (1, 0, 0), "dilation": (2, 5, 5)}),
    ("conv3d", (2, 3, 5, 4, 6), (4, 3, 2, 3, 1), {"padding": (1, 2, 0), "dilation": (2, 3, 1), "stride": (3, 1, 1)}),
    ("conv3d", (2, 3, 5, 4, 6), (4, 3, 2, 1, 3), {"padding": (1, 0, 2), "dilation": (2, 1, 1), "stride": (1, 1, 2)}),
    ("conv3d", (3, 5, 4, 6), (4, 3, 3, 1, 5), {"padding": "same"}),
)
LAST = {("conv3d", (2, 3, 5, 4, 6), (4, 3, 1, 3, 2))}  # whose views need channels_last_3d


def operands(call, dtype=torch.float64, device="cpu"):
    op, input, weight, options = call
    k = weight[1] * options.get("groups", 1) if "transpose" in op else weight[0]
    x, w, bias = (random(*shape, dtype=dtype, device=device) for shape in (input, weight, (k,)))
    return (x.contiguous(memory_format=torch.channels_last_3d) if call[:3] in LAST else x), w, bias


every_call = pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call[0]} {call[1]} {call[2]}")


@both_packages
@every_call
@on_devices
@emulated
def test_results_are_torchs(package, call, device):
    """New ones and in a given tensor, which is returned."""
    available_on(package.launch.LIBRARY, device)
    (op, *_, options), tensors = call, operands(call, device=device)
    wanted = getattr(functional, op)(*tensors, **options)
    torch.testing.assert_close(getattr(package, op)(*tensors, **options), wanted)
    torch.testing.assert_close(getattr(package, op)(*tensors[:2], **options), getattr(functional, op)(*tensors[:2], **options))
    out = torch.full_like(
        wanted, torch.nan, memory_format=torch.channels_last_3d if call[:3] in LAST else torch.contiguous_format
    )
    assert getattr(package, op)(*tensors, **options, out=out) is out
    torch.testing.assert_close(out, wanted)


@both_packages
@pytest.mark.parametrize("call", CALLS[:7], ids=lambda call: f"{call[0]} {call[1]} {call[2]}")
@emulated
def test_any_strides(package, call):
    available_on(package.launch.LIBRARY, "cpu")
    (op, *_, options), (x, w, b) = call, operands(call)
    wanted = getattr(functional, op)(x, w, b, **options)
    inside = x.movedim(-2, -1).contiguous().movedim(-1, -2)
    apart = x.new_full((*x.shape[:-1], 2 * x.shape[-1]), torch.nan)[..., ::2].copy_(x)
    for t in (inside, apart):
        torch.testing.assert_close(
            getattr(package, op)(t, w.transpose(0, 1).contiguous().transpose(0, 1), b, **options), wanted
        )


@emulated
@both_packages
def test_a_signal_is_answered_in_its_layout(package):
    available_on(package.launch.LIBRARY, "cpu")
    x, w = random(2, 5, 4), random(6, 4, 3)
    assert package.conv1d(x.mT.contiguous(), w).is_contiguous() and package.conv1d(x.mT, w).mT.is_contiguous()


@both_packages
@pytest.mark.parametrize("requires_grad", (False, True))
def test_numbers_may_be_numpys(package, requires_grad):
    """Numbers of a view, and sizes of the gradients."""
    available_on(package.launch.LIBRARY, "cpu")
    x, w = random(2, 4, 9), random(4, 3, 3).requires_grad_(requires_grad)
    one, two = numpy.int64(1), numpy.int32(2)
    options = {"stride": two, "padding": (one,), "output_padding": one, "groups": two}
    wanted = functional.conv_transpose1d(x, w, stride=2, padding=1, output_padding=1, groups=2)
    torch.testing.assert_close(package.conv_transpose1d(x, w, **options), wanted)
    torch.testing.assert_close(torch.vmap(lambda x: package.conv_transpose1d(x, w, **options))(x[None])[0], wanted)
    image, filters, grad = x[..., None], random(6, 2, 3, 1).requires_grad_(requires_grad), random(2, 6, 7, 1)
    sizes = ([*map(numpy.int64, t.shape)] for t in (image, filters))
    ours = (
        package.conv2d_input(next(sizes), filters, grad, groups=two),
        package.conv2d_weight(image, next(sizes), grad, groups=two),
    )
    torch.testing.assert_close(ours[0], torch.nn.grad.conv2d_input(image.shape, filters, grad, groups=2))
    torch.testing.assert_close(ours[1], torch.nn.grad.conv2d_weight(image, filters.shape, grad, groups=2))


X, SIGNAL, VOLUME = torch.zeros(2, 4, 5, 6), torch.zeros(2, 4, 9), torch.zeros(2, 4, 5, 6, 7)
MISTAKES = [
    ("conv1d", (X, SIGNAL), {}, ShapeError, r"^input: got rank 4"),
    ("conv1d", (SIGNAL, X), {}, ShapeError, r"^weight: got rank 4"),
    ("conv1d", ("signal", SIGNAL), {}, DtypeError, r"^input: got str"),
    ("conv1d", (SIGNAL, SIGNAL[:, :3, :3]), {}, ShapeError, r"^weight: .*over groups=1"),
    (
        "conv1d",
        (SIGNAL, SIGNAL[..., :3]),
        {"stride": (1, 1)},
        ArgumentError,
        r"^stride: got \(1, 1\); allowed: an int or a tuple",
    ),
    ("conv1d", (SIGNAL, SIGNAL[..., :3]), {"stride": 2, "padding": "same"}, ArgumentError, r"^padding: got 'same'"),
    ("conv1d", (SIGNAL, SIGNAL[..., :3]), {"out": torch.zeros(2, 2, 7, 1)}, ShapeError, r"^out: got rank 4"),
    ("conv1d", (SIGNAL, torch.zeros(2, 4, 10)), {}, ShapeError, r"^weight: got a dilated filter of 10 x 1"),
    ("conv_transpose1d", (SIGNAL, SIGNAL), {}, ShapeError, r"^weight: .*with C = 4"),
    ("conv_transpose1d", (SIGNAL, torch.zeros(4, 3, 3)), {"padding": "same"}, ArgumentError, r"^padding: got 'same'"),
    (
        "conv_transpose2d",
        (X, torch.zeros(4, 3, 3, 3)),
        {"output_padding": 1},
        ArgumentError,
        r"^output_padding: got 1.*1 and 1",
    ),
    ("conv_transpose2d", (X, torch.zeros(4, 3, 3, 3)), {"output_padding": -1}, ArgumentError, r"^output_padding: got -1"),
    (
        "conv_transpose2d",
        (X, torch.zeros(4, 3, 3, 3)),
        {"output_padding": 1, "dilation": 2},
        UnsupportedError,
        "torch.nn.functional",
    ),
    ("conv_transpose2d", (X, torch.zeros(4, 3, 3, 3)), {"padding": 4}, ShapeError, r"^input: got a size of 5.*-1 outputs"),
    ("conv_transpose2d", (X[:, :, :0], torch.zeros(4, 3, 3, 3)), {}, ShapeError, r"^input: got a size of 0"),
    (
        "conv_transpose2d",
        (X, torch.zeros(4, 3, 3, 3)),
        {"groups": 3},
        ArgumentError,
        r"^groups: .*result's 9.*4 input channels",
    ),
    ("conv_transpose2d", (X, torch.zeros(4, 3, 3, 3)), {"groups": "2"}, ArgumentError, r"^groups: got '2'"),
    ("conv_transpose2d", (X, torch.zeros(4, 3, 3, 3)), {"groups": -1}, ArgumentError, r"^groups: got -1"),
    ("conv_transpose1d", (SIGNAL, torch.zeros(4, 3, 3)), {"groups": True}, ArgumentError, r"^groups: got True"),
    (
        "conv_transpose2d",
        (X, torch.zeros(4, 3, 3, 3).half()),
        {},
        DtypeError,
        r"^input: got torch.float32; allowed: torch.float16",
    ),
    ("conv_transpose2d", (X, torch.zeros(4, 3, 3, 3), torch.zeros(2)), {}, ShapeError, r"^bias: got \(2,\); allowed: \(3,\)"),
    ("conv_transpose2d", (X, torch.zeros(4, 4, 1, 1)), {"out": X}, OverlapError, "memory shared with input"),
    ("conv3d", (VOLUME, X), {}, ShapeError, r"^weight: got rank 4"),
    ("conv3d", (VOLUME, torch.zeros(2, 4, 1, 9, 1)), {}, ShapeError, r"dilated filter of 1 x 9 x 1; allowed: .*5 x 6 x 7"),
    ("conv3d", (VOLUME, torch.zeros(2, 4, 0, 1, 1)), {}, ShapeError, r"a filter of at least 1 x 1 x 1"),
    ("conv3d", (VOLUME, torch.zeros(2, 4, 1, 1, 1)), {"padding": "same", "stride": 2}, ArgumentError, r"^padding: got 'same'"),
    ("conv3d", (VOLUME, torch.zeros(2, 4, 1, 1, 1)), {"padding": (1, 1)}, ArgumentError, r"^padding: .*an int or three ints"),
    ("conv3d", (VOLUME, torch.zeros(2, 4, 1, 1, 1)), {"out": X}, ShapeError, r"^out: got rank 4"),
]


@both_packages
@pytest.mark.parametrize("op, args, options, error, says", MISTAKES)
def test_mistakes_are_typed_errors(package, op, args, options, error, says):
    with pytest.raises(error, match=says):
        getattr(package, op)(*args, **options)


LAST_3D = VOLUME.contiguous(memory_format=torch.channels_last_3d)
REFUSED = {  # operands whose views would be another convolution's, or would be copies: the words of the way that comes closest
    "taps in all directions": (VOLUME, (2, 4, 3, 3, 3), {}, "filter of 3 x 3 x 3 is no conv2d"),
    "several outputs along the depth": (VOLUME, (2, 4, 3, 2, 2), {}, "depth in channels: it needs a filter that spans"),
    "padding of a filter that spans the depth": (
        VOLUME,
        (2, 4, 5, 2, 2),
        {"padding": (1, 0, 0), "stride": 9},
        "depth in channels: it",
    ),
    "images apart": (VOLUME, (2, 4, 1, 3, 3), {}, "depth in batch: the strides of input allow no such view"),
    "padding of depth": (LAST_3D, (2, 4, 1, 3, 3), {"padding": 1}, "depth in batch: it needs"),
    "rows with a stride": (VOLUME, (2, 4, 3, 2, 1), {"stride": (1, 2, 1)}, "columns in rows: it needs"),
    "columns with a stride": (VOLUME, (2, 4, 3, 2, 1), {"stride": (1, 1, 2)}, "columns in rows: it needs"),
    "padding of columns": (VOLUME, (2, 4, 3, 2, 1), {"padding": (0, 0, 1)}, "columns in rows: it needs"),
    "slices with a stride": (VOLUME, (2, 4, 3, 1, 2), {"stride": (2, 1, 1)}, "rows in depth: it needs"),
    "more rows below": (VOLUME, (2, 4, 3, 2, 1), {"padding": "same"}, "columns in rows: it needs .*even padding"),
    "more slices behind": (VOLUME, (2, 4, 2, 1, 3), {"padding": "same"}, "rows in depth: it needs .*even padding"),
    "columns between the rows": (VOLUME[..., ::2], (2, 4, 3, 2, 1), {}, "columns in rows: the strides of input allow"),
}


@both_packages
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_conv2d_is_refused_in_the_name_of_torchs(package, name):
    input, filters, options, says = REFUSED[name]
    with pytest.raises(UnsupportedError, match=says) as caught:
        package.conv3d(input, torch.zeros(filters), **options)
    assert tuple(caught.value.refusals) == WAYS and "torch.nn.functional.conv3d" in str(caught.value)


def test_strides_of_any_operand_may_be_why():
    filters = torch.zeros(2, 5, 4, 3, 3).transpose(1, 2)
    with pytest.raises(UnsupportedError, match="depth in channels: the strides of weight allow no such view"):
        cuda_reference.conv3d(VOLUME, filters)
    out = torch.zeros(2, 5, 5, 7, 2).movedim(-1, 1)[..., ::2]
    with pytest.raises(UnsupportedError, match="columns in rows: the strides of input and out allow"):
        cuda_reference.conv3d(VOLUME[..., ::2], torch.zeros(2, 4, 1, 2, 1), out=out)


@both_packages
def test_an_out_gets_no_gradient(package):
    w = torch.zeros(4, 3, 3, 3, requires_grad=True)
    with pytest.raises(GradientError, match=r"^weight: "):
        package.conv_transpose2d(X, w, out=torch.zeros(2, 3, 7, 8))
    with pytest.raises(GradientError, match=r"^input: "):
        package.conv_transpose2d(X.clone().requires_grad_(), w.detach(), out=torch.zeros(2, 3, 7, 8))


@both_packages
def test_nothing_is_copied(package, monkeypatch):
    """The operands of the operation are where the user's are."""
    seen = []
    for name in ("conv2d", "conv2d_input"):
        operator = package.launch.LIBRARY.operators[name]
        monkeypatch.setattr(type(operator), "__call__", lambda self, design, config, **given: seen.append(given) or X)
    for call in CALLS:
        x, w, bias = operands(call)
        monkeypatch.setitem(VIEWS, call[0], VIEWS[call[0]]._replace(given=kept(VIEWS[call[0]].given)))
        getattr(package, call[0])(x, w, bias, **call[3])
        given = seen.pop()
        own = [given[name] for name in ("input", "grad_output") if name in given] + [given["weight"], given["bias"]]
        assert [t.data_ptr() for t in own] == [t.data_ptr() for t in (x, w, bias)]


def kept(given):
    return lambda *args, **kwargs: (given(*args, **kwargs)[0], lambda result: result)


@both_packages
def test_designs_configs_and_explanations_are_the_operation_s(package):
    x, w = SIGNAL, torch.zeros(4, 6, 3)
    assert package.designs("conv3d") == package.designs("conv2d") != package.designs("conv_transpose1d")
    assert package.designs("conv_transpose1d") == package.designs("conv2d_input")
    report = package.explain("conv_transpose1d", x, w, stride=2, target="h200")
    assert report["op"] == "conv_transpose1d" and report["problem"]["h"] == 19 and report["problem"]["w"] == 1
    design, config = report["design"], package.configs("conv_transpose1d", x, w, stride=2, target="h200")[0]
    assert config == report["config"] and design in {d.name for d in package.designs("conv_transpose1d")}
    assert package.explain("conv1d", x, w.mT.mT[:, :4], design="depthwise", target="h200")["design"] == "depthwise"
    with pytest.raises(ArgumentError, match=r"'conv1e'.*Did you mean 'conv1d'"):
        package.explain("conv1e", x, w)


@both_packages
def test_a_design_and_a_precision_reach_the_operation(package):
    available_on(package.launch.LIBRARY, "cpu")
    call = CALLS[0]
    tensors = operands(call, torch.float32)
    for options in ({"design": "depthwise"}, {"precision": "tf32"}, {"design": "depthwise", "config": {}}):
        torch.testing.assert_close(
            package.conv1d(*tensors, **call[3], **options), functional.conv1d(*tensors, **call[3]), rtol=2e-2, atol=2e-2
        )
    with pytest.raises(ArgumentError, match=r"^design: got 'depthwize'"):
        package.conv1d(*tensors, **call[3], design="depthwize")
    with pytest.raises(ArgumentError, match=r"^precision: got 'fp8'"):
        package.conv_transpose1d(tensors[0], torch.zeros(4, 3, 3), precision="fp8")


@pytest.mark.parametrize("call", CALLS[:2] + CALLS[3:5], ids=lambda call: f"{call[0]} {call[1]}")
def test_results_are_judged_by_the_operation_s_bound(call):
    """As tune does, also in TF32, whose bound depends on the operands."""
    tensors, library = operands(call, torch.float32), cuda_reference.launch.LIBRARY
    op, args, kwargs = viewed(call[0], tensors, call[3] | {"precision": "tf32"})
    made = prepare(op, *args, **kwargs)
    library.run(made)
    assert library.judge(made, None, None, *args, **kwargs).ok
    made.result.flatten()[3] += 1
    assert not library.judge(made, None, None, *args, **kwargs).ok


@pytest.mark.parametrize("op", VIEWS)
def test_arguments_are_torchs(op):
    ours, own = (inspect.signature(f).parameters for f in (getattr(tritonkernels, op), getattr(cuda_reference, op)))
    assert ours == own
    names = [name for name, parameter in ours.items() if parameter.kind is not parameter.KEYWORD_ONLY]
    documented = getattr(functional, op).__doc__.strip().partition(")")[0].partition("(")[2]
    assert names == [argument.partition("=")[0] for argument in documented.split(", ")]


@pytest.mark.parametrize("library, op, design", designs("conv2d_input"))
@on_devices
def test_the_bias_of_a_gradient_is_added_by_every_design(library, op, design, device):
    """Also to the rows that no tap reaches, where the stride is longer than the filter."""
    available_on(library, device)
    make = lambda *shape: random(*shape, device=device)  # noqa: E731
    run_checked(library, op, design, (2, 1, 11, 9), make(1, 1, 3, 2), make(2, 1, 3, 8), stride=(4, 1), bias=make(1))
    none = {"stride": (4, 1), "padding": (3, 0)}  # of the only row
    run_checked(library, op, design, (2, 1, 1, 9), make(1, 1, 1, 2), make(2, 1, 2, 8), bias=make(1), **none)
