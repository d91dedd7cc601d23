"""nn.Linear and nn.Conv2d are torch's in all but who computes them, and replace says what it swapped, what not, and why."""

import copy
import io
import itertools
import pickle

import pytest
import torch
from torch.nn.utils import parametrize

import cuda_reference.nn
import tritonkernels.nn
from perf.measure import baselines
from tests.harness import available_on, random
from tests.torch_ops.samples import on_devices
from tritonkernels.choice import torch_times
from tritonkernels.errors import ArgumentError, DtypeError

both_packages = pytest.mark.parametrize("package", (tritonkernels, cuda_reference), ids=lambda p: p.__name__)
KINDS = ("Linear", "Conv2d")
SMALL = {"Linear": (6, 5), "Conv2d": (4, 6, 3)}
INPUTS = {"Linear": (3, 6), "Conv2d": (2, 4, 6, 5)}
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


GEOMETRIES = [  # arguments after the filter's size; each option beside the others' defaults, and together
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
    assert "precision" not in vars(torchs) and "precision=tf32" in repr(ours) and "precision" not in repr(own(*SMALL[kind]))
    ours(random(*INPUTS[kind]))
    assert called == [1]
    ours.weight = None
    assert torchs.weight is not None
    with pytest.raises(ArgumentError, match="a subclass may compute another thing"):
        own.from_torch(ours)


@both_packages
@pytest.mark.parametrize("kind", KINDS)
def test_precision(package, kind):
    """Of float32 alone: other types have one. It is checked where it is given, and kept by copies and pickles."""
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


class Twice(torch.nn.Linear):
    def forward(self, input):
        return 2 * super().forward(input)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.first, self.tied, self.subclass, self.odd, self.unused = (
            kind(8, 8) for kind in (torch.nn.Linear, torch.nn.Linear, Twice, torch.nn.Linear, torch.nn.Linear)
        )
        self.again, self.tied.weight = self.first, self.first.weight
        self.odd.forward = lambda input: input
        self.complex = torch.nn.Linear(2, 2, dtype=torch.complex64)

    def forward(self, images, scale=1.0):
        x = torch.relu(self.norm(self.convolution(images))).mean((2, 3))
        return self.odd(self.subclass(self.tied(self.again(self.first(x))))) * scale


OUTCOMES = {"subclass": "a subclass", "odd": "its forward is replaced", "complex": "complex64 weights"}


@both_packages
def test_replace_swaps_in_place(package):
    available_on(package.launch.LIBRARY, "cpu")
    model, images = Model(), random(2, 3, 6, 6)
    before, seen = model(images), []
    model.eval()
    model.first.train()
    modules, handle = dict(model.named_modules()), model.first.register_forward_hook(lambda *_: seen.append(1))
    parameters, modes = list(model.parameters()), [module.training for module in model.modules()]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rows = package.nn.replace(model, only_where_faster=False)
    assert {row.name: row.why for row in rows if not row.swapped} == OUTCOMES
    swapped = {row.name: row.kind for row in rows if row.swapped}
    assert swapped == {"convolution": "Conv2d", "first, again": "Linear", "tied": "Linear", "unused": "Linear"}
    assert type(model.first) is package.nn.Linear and type(model.convolution) is package.nn.Conv2d
    assert modules == dict(model.named_modules()) and modes == [module.training for module in model.modules()]
    assert all(a is b for a, b in zip(model.parameters(), parameters)) and model.tied.weight is model.first.weight
    model.train()
    torch.testing.assert_close(model(images), before)
    assert seen == [1, 1]  # it is called twice
    handle.remove()
    model(images).sum().backward()
    optimizer.step()
    assert not torch.allclose(model(images), before)
    left = {row.why for row in package.nn.replace(model, only_where_faster=False)}
    assert f"already {package.nn.Linear.__module__}.Linear" in left and "asked for" not in left


@both_packages
def test_replace_swaps_a_model_that_is_one_module(package):
    model = torch.nn.Linear(4, 4)
    (row,) = package.nn.replace(model, "tf32", only_where_faster=False)
    assert type(model) is package.nn.Linear and model.precision == "tf32" and row.name == ""


def test_a_parametrized_module_is_a_subclass():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4))
    parametrize.register_parametrization(model[0], "weight", torch.nn.Identity())
    (row,) = tritonkernels.nn.replace(model, only_where_faster=False)
    assert not row.swapped and row.why == "a subclass"


@both_packages
def test_precisions_that_only_one_kind_has(package):
    model = Model()
    rows = {row.name: row for row in package.nn.replace(model, "bf16x9", only_where_faster=False)}
    assert rows["convolution"].why == "conv2d has no precision bf16x9" and model.first.precision == "bf16x9"
    with pytest.raises(ArgumentError, match="precision: got 'fast'"):
        package.nn.replace(model, "fast")


@both_packages
@pytest.mark.parametrize(
    "options, why",
    (
        ({}, "on cpu: nothing says what is faster there"),
        ({"target": "h200"}, "sizes are unknown: pass inputs="),
        ({"target": "l4", "inputs": torch.zeros(2, 3, 6, 6)}, "no recorded times of torch on l4"),
    ),
)
def test_nothing_is_swapped_where_nothing_is_known(package, options, why):
    rows = package.nn.replace(model := Model(), **options)
    assert {row.why for row in rows if row.name not in OUTCOMES} == {why} and not any(row.swapped for row in rows)
    assert type(model.first) is torch.nn.Linear


@both_packages
def test_bad_arguments_of_replace(package):
    model = Model()
    with pytest.raises(ArgumentError, match=r"target: got 'h2000'.*did you mean"):
        package.nn.replace(model, target="h2000")
    with pytest.raises(ArgumentError, match="inputs: got RuntimeError"):
        package.nn.replace(model, inputs=torch.zeros(2, 5, 6, 6), target="h200")


@both_packages
@pytest.mark.parametrize("how", (lambda x: x, lambda x: (x, 2.0), lambda x: {"images": x, "scale": 2.0}))
def test_example_inputs_change_nothing(package, how):
    """They may be a tensor, a tuple or a dict; modules that they do not reach are left."""
    model = Model()
    before = copy.deepcopy(model.state_dict())
    rows = {row.name: row for row in package.nn.replace(model, inputs=how(random(64, 3, 32, 32)), target="h200")}
    assert rows["unused"].why == "not called with these inputs" and rows["convolution"].ours_us > 0
    assert rows["first, again"].ours_us == pytest.approx(2 * rows["tied"].ours_us)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not model.first._forward_pre_hooks and type(model.norm.running_mean) is torch.Tensor


@both_packages
def test_what_is_predicted_faster_is_swapped(package, monkeypatch):
    """By the very times that the rows show, and by more than torch's may be off: in doubt torch stays."""
    model = torch.nn.Sequential(*(torch.nn.Linear(4096, 4096, dtype=torch.bfloat16) for _ in range(2)))
    inputs = torch.zeros(4096, 4096, dtype=torch.bfloat16)
    ours = package.nn.replace(copy.deepcopy(model), inputs=inputs, target="h200")[0].ours_us / 1e6
    for over, swapped, word in (
        (1.31, True, "faster"),
        (1.29, False, "as fast"),
        (1.01, False, "as fast"),
        (0.99, False, "slower"),
    ):
        theirs = over * ours
        monkeypatch.setattr(torch_times, "predicted", lambda *_, theirs=theirs: torch_times.TorchTime(theirs, 1.3))
        rows = package.nn.replace(own := copy.deepcopy(model), inputs=inputs, target="h200")
        assert [row.swapped for row in rows] == [swapped] * 2 == [type(m) is package.nn.Linear for m in own]
        assert {row.why for row in rows} == {f"predicted {word}; torch's time within a factor of 1.30"}
        assert rows[0].torch_us == pytest.approx(1e6 * theirs)


def test_torchs_time_is_at_torchs_own_precision(monkeypatch):
    """Of float32: what torch's switches say, whatever precision we would have."""
    asked = []
    monkeypatch.setattr(torch_times, "predicted", lambda problem, target: asked.append(problem.precision))
    model = torch.nn.Sequential(torch.nn.Conv2d(8, 8, 3), torch.nn.Flatten(2), torch.nn.Linear(900, 64))
    for switched in ("tf32", "ieee"):
        with baselines.precision(switched):
            tritonkernels.nn.replace(model, inputs=torch.zeros(8, 8, 32, 32), target="h200")
    assert asked == ["tf32", "tf32", "ieee", "ieee"]


def test_the_table_prints():
    rows = tritonkernels.nn.replace(torch.nn.Sequential(torch.nn.Linear(4, 4)), only_where_faster=False)
    text = str(rows).splitlines()
    assert text[0].split()[:3] == ["module", "kind", "outcome"] and text[2].split() == [
        "0",
        "Linear",
        "swapped",
        "asked",
        "for",
    ]
    rich = pytest.importorskip("rich.console")
    console = rich.Console(file=io.StringIO(), width=200)
    console.print(rows)
    assert [line.split() for line in console.file.getvalue().splitlines()][1] == text[2].split()


@both_packages
def test_typed_errors(package):
    with pytest.raises(DtypeError):
        package.nn.Linear(6, 5)(random(3, 6, dtype=torch.float16))
    with pytest.raises(DtypeError), torch.no_grad():
        package.nn.Linear(6, 5, dtype=torch.complex64)(torch.zeros(3, 6, dtype=torch.complex64))
