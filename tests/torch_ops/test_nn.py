"""nn.Linear and nn.Conv2d are torch's in all but who computes them."""

import copy
import io
import itertools
import pickle

import pytest
import torch

from tests.harness import available_on, random
from tests.torch_ops.samples import both_packages, on_devices
from tritonkernels.errors import ArgumentError, DtypeError

SMALL = {
    "Linear": (6, 5),
    "Conv1d": (8, 6, 3),
    "Conv2d": (4, 6, 3),
    "Conv3d": (4, 6, (2, 3, 3), (2, 1, 1)),
    "ConvTranspose1d": (8, 6, 5, 2),
    "ConvTranspose2d": (4, 6, 3, 2),
}
INPUTS = {
    "Linear": (3, 6),
    "Conv1d": (2, 8, 9),
    "Conv2d": (2, 4, 6, 5),
    "Conv3d": (2, 4, 2, 6, 5),
    "ConvTranspose1d": (2, 8, 9),
    "ConvTranspose2d": (2, 4, 3, 4),
}
KINDS = tuple(SMALL)
TOLERANCES = {torch.float64: 1e-12, torch.float32: 2e-5, torch.float16: 1e-2}


@pytest.fixture(autouse=True)
def ieee():
    """On a GPU torch convolves in TF32 by default. The older switch: torch.export reads it, and refuses a mixture."""
    before, torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.allow_tf32, False
    yield
    torch.backends.cudnn.allow_tf32 = before


def pair(package, kind, *args, device="cpu", precision=None, **kwargs):
    """(torch's module, ours with the same values)."""
    available_on(package.launch.LIBRARY, device)
    torchs = getattr(torch.nn, kind)(*args, device=device, **kwargs)
    ours = getattr(package.nn, kind)(*args, device=device, precision=precision, **kwargs)
    ours.load_state_dict(torchs.state_dict())
    return torchs, ours


def are_close(got, wanted, dtype):
    torch.testing.assert_close(got, wanted, rtol=TOLERANCES[dtype], atol=TOLERANCES[dtype])


def check(torchs, ours, *shape, layout=torch.contiguous_format):
    """Results and all gradients are torch's."""
    weight = torchs.weight
    x = random(*shape, dtype=weight.dtype, device=weight.device)
    x = x.contiguous(memory_format=layout)
    xs = [x.clone().requires_grad_() for _ in range(2)]
    results = [module(own) for module, own in zip((torchs, ours), xs)]
    assert results[1].shape == results[0].shape
    are_close(results[1], results[0], weight.dtype)
    grad = random(*results[0].shape, dtype=weight.dtype, device=weight.device)
    wanted, got = (
        torch.autograd.grad(result, (own, *module.parameters()), grad)
        for module, own, result in zip((torchs, ours), xs, results)
    )
    for g, w in zip(got, wanted):
        are_close(g, w, weight.dtype)


@both_packages
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("shape", ((6,), (3, 6), (2, 3, 6), (2, 1, 3, 6), (0, 6), (2, 0, 6)))
@pytest.mark.parametrize("bias", (True, False))
@on_devices
def test_linear_is_torchs(package, dtype, shape, bias, device):
    check(*pair(package, "Linear", 6, 5, bias, device=device, dtype=dtype), *shape)


@both_packages
@on_devices
def test_linear_takes_any_strides(package, device):
    torchs, ours = pair(package, "Linear", 6, 5, device=device)
    for x in (random(6, 4, 2, device=device).movedim(0, -1), random(1, 1, 6, device=device).expand(3, 2, 6)):
        are_close(ours(x), torchs(x), torch.float32)


GEOMETRIES = [  # arguments after the filter's size; each option with the others' defaults, and together
    {},
    {"stride": 2, "padding": (1, 2)},
    {"dilation": (2, 1), "groups": 2, "bias": False},
    {"padding": "same"},
    {"padding": "same", "dilation": 2, "groups": 2},
    {"padding": "valid", "stride": (2, 1)},
    *({"padding": p, "padding_mode": m} for p, m in itertools.product(((1, 2), "same"), ("reflect", "replicate", "circular"))),
    {"padding": 1, "padding_mode": "circular", "stride": 2, "groups": 2, "dilation": (1, 2)},
]


@both_packages
@pytest.mark.parametrize("options", GEOMETRIES, ids=str)
@on_devices
def test_every_option_of_conv2d_is_torchs(package, options, device):
    modules = pair(package, "Conv2d", 4, 6, (3, 2), device=device, dtype=torch.float64, **options)
    check(*modules, 2, 4, 6, 7)
    check(*modules, 4, 6, 7)


@both_packages
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("layout", (torch.contiguous_format, torch.channels_last))
@on_devices
def test_conv2d_is_torchs_in_every_type_and_layout(package, dtype, layout, device):
    modules = pair(package, "Conv2d", 4, 6, 3, padding=1, device=device, dtype=dtype)
    check(*modules, *INPUTS["Conv2d"], layout=layout)


@both_packages
@on_devices
def test_a_call_of_conv2d_may_have_more_than_a_bias(package, device):
    torchs, ours = pair(package, "Conv2d", 4, 6, 3, padding=1, padding_mode="circular", device=device)
    x, residual = (random(2, channels, 6, 5, device=device).requires_grad_() for channels in (4, 6))
    got, wanted = ours(x, residual, activation="relu"), (torchs(x) + residual).relu()
    are_close(got, wanted, torch.float32)
    for g, w in zip(*(torch.autograd.grad(result.sum(), (x, residual)) for result in (got, wanted))):
        are_close(g, w, torch.float32)


@both_packages
@pytest.mark.parametrize("kind", KINDS)
def test_state_dicts_go_both_ways(package, kind):
    torchs, ours = pair(package, kind, *SMALL[kind])
    assert list(ours.state_dict()) == list(torchs.state_dict())
    again = getattr(torch.nn, kind)(*SMALL[kind])
    again.load_state_dict(ours.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), torchs.parameters()))


@both_packages
@pytest.mark.parametrize("kind", KINDS)
def test_from_torch_shares_parameters_and_leaves_the_module(package, kind):
    available_on(package.launch.LIBRARY, "cpu")
    own, called = getattr(package.nn, kind), []
    torchs = getattr(torch.nn, kind)(*SMALL[kind]).eval()
    torchs.register_forward_hook(lambda *_: called.append(1))
    ours = own.from_torch(torchs, precision="tf32")
    assert (type(torchs), type(ours)) == (getattr(torch.nn, kind), own) and not ours.training
    assert all(a is b for a, b in zip(ours.parameters(), torchs.parameters()))
    assert "precision" not in vars(torchs) and package.__name__ not in repr(torchs)
    assert repr(ours) == repr(torchs)[:-1] + f", precision=tf32, {package.__name__})"
    assert repr(own(*SMALL[kind])) == repr(torchs)[:-1] + f", {package.__name__})"
    ours(random(*INPUTS[kind]))
    assert called == [1]
    ours.weight = None
    assert torchs.weight is not None
    with pytest.raises(ArgumentError, match="a subclass may compute another thing"):
        own.from_torch(ours)


@both_packages
@pytest.mark.parametrize("kind", KINDS)
def test_precision(package, kind):
    """For float32 alone: other types have one. It is checked where it is given, and kept by copies and pickles."""
    own = getattr(package.nn, kind)
    with pytest.raises(ArgumentError, match="precision: got 'fp8'; allowed: 'ieee', 'tf32'"):
        own(*SMALL[kind], precision="fp8")
    _, ours = pair(package, kind, *SMALL[kind], precision="tf32")
    x = random(*INPUTS[kind])
    plain = own.from_torch(getattr(torch.nn, kind)(*SMALL[kind]))
    plain.load_state_dict(ours.state_dict())
    assert not torch.equal(ours(x), plain(x))
    for again in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours)), saved_and_loaded(ours)):
        assert type(again) is own and torch.equal(again(x), ours(x))
    assert torch.equal(ours.half()(x.half()), plain.half()(x.half()))


def saved_and_loaded(module):
    buffer = io.BytesIO()
    torch.save(module, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=False)


@both_packages
@pytest.mark.parametrize("kind", KINDS)
def test_made_on_the_meta_device_and_filled_later(package, kind):
    available_on(package.launch.LIBRARY, "cpu")
    torchs = getattr(torch.nn, kind)(*SMALL[kind])
    ours = getattr(package.nn, kind)(*SMALL[kind], device="meta")
    assert ours(torch.empty(INPUTS[kind], device="meta")).shape == torchs(random(*INPUTS[kind])).shape
    ours = ours.to_empty(device="cpu")
    ours.load_state_dict(torchs.state_dict())
    check(torchs, ours, *INPUTS[kind])


@both_packages
@on_devices
def test_compiled_and_exported(package, device):
    torch._dynamo.reset()
    available_on(package.launch.LIBRARY, device)
    model = torch.nn.Sequential(
        package.nn.Conv2d(4, 6, 3, padding=1, padding_mode="circular"), torch.nn.ReLU(), package.nn.Linear(5, 3)
    ).to(device)
    x = random(*INPUTS["Conv2d"], device=device)
    wanted = model(x)
    torch.testing.assert_close(torch.compile(model, fullgraph=True, backend="aot_eager")(x), wanted)
    exported = torch.export.export(model, (x,))
    assert package.__name__ in str(exported.graph) and set(exported.state_dict) == set(model.state_dict())
    torch.testing.assert_close(exported.module()(x), wanted)


@both_packages
def test_autocast_lowers_what_has_no_precision(package):
    available_on(package.launch.LIBRARY, "cpu")
    x = random(*INPUTS["Linear"])
    with torch.autocast("cpu", torch.bfloat16):
        lowered, kept = (package.nn.Linear(6, 5, precision=p)(x).dtype for p in (None, "tf32"))
    assert (lowered, kept) == (torch.bfloat16, torch.float32)


@both_packages
@pytest.mark.parametrize("precision", (None, "tf32"))
def test_torch_fx_traces_modules(package, precision):
    """For inputs of any rank; the graph is pickled."""
    linear, images = package.nn.Linear(6, 5, precision=precision), package.nn.Conv2d(*SMALL["Conv2d"], precision=precision)
    reflected = package.nn.Conv2d(*SMALL["Conv2d"], padding=1, padding_mode="reflect", precision=precision)
    inputs = [(linear, random(*shape)) for shape in ((6,), (3, 6), (2, 3, 6), (0, 6))]
    for module, x in (*inputs, *((module, random(2, 4, 6, 5)) for module in (images, reflected))):
        traced = pickle.loads(pickle.dumps(torch.fx.symbolic_trace(module)))
        assert torch.equal(traced(x), module(x))
    traced = torch.fx.symbolic_trace(torch.nn.Sequential(images, torch.nn.ReLU(), torch.nn.Flatten(2), torch.nn.Flatten(0, 1)))
    assert traced(random(2, 4, 6, 5)).shape == (12, 12)


@both_packages
def test_torch_fx_traces_transposed_modules(package):
    """By themselves, for any output_size; and in a model that gives one."""
    available_on(package.launch.LIBRARY, "cpu")
    x, up = random(2, 4, 5), package.nn.ConvTranspose1d(4, 3, 3, stride=2, dtype=torch.float64)
    traced = pickle.loads(pickle.dumps(torch.fx.symbolic_trace(up)))
    for output_size in (None, [12], (2, 3, 11)):
        assert torch.equal(traced(x.double(), output_size), up(x.double(), output_size))

    class Model(torch.nn.Module):
        def forward(self, x):
            return self.up(x, output_size=[12])

    model = Model()
    model.up = up
    assert torch.equal(torch.fx.symbolic_trace(model)(x.double()), up(x.double(), [12]))


@both_packages
def test_typed_errors(package):
    with pytest.raises(DtypeError):
        package.nn.Linear(6, 5)(random(3, 6, dtype=torch.float16))
    with pytest.raises(DtypeError), torch.no_grad():
        package.nn.Linear(6, 5, dtype=torch.complex64)(torch.zeros(3, 6, dtype=torch.complex64))


@both_packages
@pytest.mark.parametrize(
    "x, says",
    [
        (torch.zeros(2, 3, 7), "input: got shape (2, 3, 7); allowed: a last size of 6, as weight is (5, 6). "),
        (torch.zeros(3, 6).half(), "input: got torch.float16; allowed: torch.float32, the dtype of weight. "),
        (torch.tensor(1.0), "input: got rank 0"),
        ([[1.0] * 6], "input: got list; allowed: a torch.Tensor. "),
        (torch.nested.nested_tensor([torch.zeros(2, 6)], layout=torch.jagged), "input: got a nested tensor"),
    ],
    ids=("size", "dtype", "rank", "list", "nested"),
)
def test_linear_s_errors_name_its_own_tensors(package, x, says):
    with pytest.raises(ArgumentError) as caught:
        package.nn.Linear(6, 5)(x)
    assert str(caught.value).startswith(says) and caught.value.__suppress_context__


@both_packages
def test_under_autocast_linear_blames_no_dtype(package):
    """It would cast it."""
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(ArgumentError, match="input: got shape"):
        package.nn.Linear(6, 5)(torch.zeros(3, 7).half())


@both_packages
@pytest.mark.parametrize("kind", KINDS[1:])
def test_convolutions_errors_blame_the_input(package, kind):
    module = getattr(package.nn, kind)(*SMALL[kind])
    x = torch.zeros(INPUTS[kind])
    channels, weight = x.shape[1], tuple(module.weight.shape)
    for bad, says in (
        (x.half(), "got torch.float16; allowed: torch.float32, the dtype of weight. "),
        (x.to("meta"), "got meta; allowed: cpu, the device of weight. "),
        (x[:, 1:], f"got shape {tuple(x[:, 1:].shape)}; allowed: {channels} channels, as weight is {weight}. "),
        (x[0, 0], f"got rank {x.ndim - 2}"),
        (x.tolist(), "got list; allowed: a torch.Tensor. "),
    ):
        with pytest.raises(ArgumentError) as caught:
            module(bad)
        assert str(caught.value).startswith(f"input: {says}") and caught.value.__suppress_context__
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(ArgumentError, match="input: got shape"):
        module(x[:, 1:].half())
