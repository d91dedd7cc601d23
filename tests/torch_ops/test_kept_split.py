"""nn.Linear with cache_split: it multiplies by planes of its weight that it keeps, as long as they are the weight's."""

import copy
import io
import pickle

import pytest
import torch
from torch.nn.utils import parametrize

from tests.harness import available_on, random
from tests.torch_ops.samples import both_packages, on_devices
from tritonkernels.nn import kept_split
from tritonkernels.operations.matmul.split import Split

IN, OUT = 300, 7


@pytest.fixture
def given(monkeypatch):
    """given(package) -> the classes of B in each call of Linear's function from now on, and "split" for each split. A Split is
    multiplied by its planes: the choice might be a design that reads B."""

    def spied(package, device="cpu"):
        available_on(package.launch.LIBRARY, device)
        seen, linear = [], package.nn.Linear
        function, split = linear.function, linear.split

        def multiply(rows, b, **options):
            seen.append(Split if isinstance(b, Split) else torch.Tensor)
            return function(rows, b, design="planes" if isinstance(b, Split) else None, **options)

        def note(*args, **kwargs):
            seen.append("split")
            return split(*args, **kwargs)

        monkeypatch.setattr(linear, "function", staticmethod(multiply))
        monkeypatch.setattr(linear, "split", staticmethod(note))
        return seen

    return spied


def linear(package, device="cpu", **options):
    return package.nn.Linear(IN, OUT, device=device, **{"precision": "fp32", "cache_split": True} | options)


def check(layer, x):
    """What the layer computes is the product of its weight as it is."""
    wanted = torch.nn.functional.linear(x.double(), layer.weight.double(), layer.bias.double())
    torch.testing.assert_close(layer(x).double(), wanted, rtol=1e-5, atol=1e-4)


@both_packages
@on_devices
@pytest.mark.parametrize("precision", ("fp32", "fp16x3", "tf32x3", "bf16x6", "bf16x9"))
def test_planes_are_made_once(package, precision, device, given):
    seen, x = given(package, device), random(2, 5, IN, device=device)
    layer = linear(package, device, precision=precision).eval()
    with torch.no_grad():
        check(layer, x)
        check(layer, x[0, 0])
        with torch.autocast(device, torch.bfloat16):
            assert layer(x).dtype == torch.float32
        assert seen == ["split", Split, Split, Split]
        planes = package.split(layer.weight.t(), precision=precision)
        assert torch.equal(layer(x[0]), package.matmul(x[0], planes, bias=layer.bias, design="planes"))


@both_packages
@pytest.mark.parametrize(
    "options", ({"cache_split": False}, {"precision": None}, {"precision": "tf32"}, {"dtype": torch.float16}), ids=str
)
def test_nothing_is_kept_unasked_or_without_planes(package, options, given):
    seen, layer = given(package), linear(package, **options)
    with torch.no_grad():
        layer(random(3, IN, dtype=layer.weight.dtype))
    assert seen == [torch.Tensor] and layer.kept is None


def step(layer):
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
    layer(random(3, IN)).square().sum().backward()
    optimizer.step()


CHANGES = {
    "in place": lambda layer: layer.weight.mul_(2),
    "a part in place": lambda layer: layer.weight[2:3].zero_(),
    "a state dict": lambda layer: layer.load_state_dict(torch.nn.Linear(IN, OUT).state_dict()),
    "an assigned state dict": lambda layer: layer.load_state_dict(torch.nn.Linear(IN, OUT).state_dict(), assign=True),
    "another weight": lambda layer: setattr(layer, "weight", torch.nn.Parameter(torch.randn(OUT, IN))),
    "other memory": lambda layer: setattr(layer.weight, "data", torch.randn(OUT, IN)),
    "other strides": lambda layer: setattr(layer.weight, "data", torch.randn(IN, OUT).t()),
    "there and back": lambda layer: layer.double().float(),
    "to another device": lambda layer: layer.to("meta").to_empty(device="cpu").load_state_dict(linear_state()),
    "a step of training": torch.enable_grad()(step),
}


def linear_state():
    return torch.nn.Linear(IN, OUT).state_dict()


@both_packages
@pytest.mark.parametrize("change", CHANGES)
def test_planes_of_a_weight_that_changed(package, change, given):
    seen, layer, x = given(package), linear(package), random(3, IN)
    with torch.no_grad():
        check(layer, x)
        CHANGES[change](layer)
        del seen[:]
        check(layer, x)
        check(layer, x)
    assert seen == ["split", Split, Split]


@both_packages
def test_planes_are_freed_with_the_weight(package):
    available_on(package.launch.LIBRARY, "cpu")
    with torch.no_grad():
        (layer := linear(package))(random(3, IN))
        assert layer.kept
        assert layer.double().kept is None


@both_packages
def test_a_weight_with_the_memory_and_the_count_of_another(package, given):
    """Whose changes torch counts apart."""
    seen, layer, x = given(package), linear(package), random(3, IN)
    with torch.no_grad():
        layer.weight.add_(1)
        check(layer, x)
        layer.weight = torch.nn.Parameter(layer.weight.data)
        while layer.weight._version < layer.kept.weight._version:
            layer.weight.mul_(2)
        check(layer, x)
    assert seen == ["split", Split] * 2


@both_packages
def test_training(package, given):
    """A weight whose gradient is recorded is multiplied itself, and there are no planes then."""
    seen, layer, x = given(package), linear(package), random(3, IN).requires_grad_()
    torchs = torch.nn.Linear(IN, OUT)
    torchs.load_state_dict(layer.state_dict())
    with torch.no_grad():
        layer(x)
    for mode in (True, False):
        own, wanted = (torch.autograd.grad(m(x).square().sum(), (x, *m.parameters())) for m in (layer.train(mode), torchs))
        assert seen.pop() is torch.Tensor and layer.kept is None
        for g, w in zip(own, wanted):
            torch.testing.assert_close(g, w, rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        layer(x)
    layer.requires_grad_(False)
    of_input = torch.autograd.grad(layer(x).square().sum(), x)[0]
    torch.testing.assert_close(of_input, wanted[0], rtol=1e-4, atol=1e-4)
    assert seen == ["split", Split, "split", Split, Split]


def saved_and_loaded(module):
    buffer = io.BytesIO()
    torch.save(module, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=False)


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda module: pickle.loads(pickle.dumps(module)),
    "torch.save": saved_and_loaded,
}


@both_packages
@pytest.mark.parametrize("how", COPIES)
def test_copies_make_their_own(package, how, given):
    seen, layer, x = given(package), linear(package), random(3, IN)
    state = set(layer.state_dict())
    with torch.no_grad():
        wanted, before = layer(x), len(pickle.dumps(linear(package)))
        assert set(layer.state_dict()) == state and len(pickle.dumps(layer)) == pytest.approx(before, abs=99)
        again = COPIES[how](layer)
        assert again.cache_split and again.kept is None and layer.kept is not None
        del seen[:]
        assert torch.equal(again(x), wanted) and torch.equal(layer(x), wanted)
        assert seen == ["split", Split, Split]


def compiled(layer, x):
    torch._dynamo.reset()
    return torch.compile(layer, fullgraph=True, backend="aot_eager")


RECORDED = {
    "compile": compiled,
    "export": lambda layer, x: torch.export.export(layer, (x,)).module(),
    "fx": lambda layer, x: torch.fx.symbolic_trace(layer),
    "make_fx": lambda layer, x: torch.fx.experimental.proxy_tensor.make_fx(layer)(x),
    "jit": lambda layer, x: torch.jit.trace(layer, x, check_trace=False),
}


@both_packages
@pytest.mark.parametrize("how", RECORDED)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_what_is_recorded_reads_the_weight(package, how):
    """Also where there are planes already: the weight may change before it is called."""
    available_on(package.launch.LIBRARY, "cpu")
    layer, x = linear(package).requires_grad_(False), random(3, IN)
    layer(x)
    kept, recorded = layer.kept, RECORDED[how](layer, x)
    recorded(x)
    assert layer.kept.split is kept.split
    torch.testing.assert_close(recorded(x), layer(x), rtol=1e-5, atol=1e-4)
    if how in ("export", "make_fx"):
        text = str(recorded.graph)
        assert "matmul" in text and "planes" not in text
    if how != "make_fx":  # which has copied it
        layer.load_state_dict(linear_state()) if how == "compile" else recorded.load_state_dict(linear_state())
        wanted = torch.nn.functional.linear(x, *(dict(recorded.named_parameters())[name] for name in names(recorded)))
        torch.testing.assert_close(recorded(x), wanted, rtol=1e-5, atol=1e-4)


def names(module):
    return sorted((name for name, _ in module.named_parameters()), reverse=True)


@both_packages
def test_transforms(package, given):
    """Other weights, a batch of them, and derivatives along the weight."""
    seen, layer, x = given(package), linear(package).requires_grad_(False), random(3, IN)
    layer(x)
    weights, bias = torch.randn(2, OUT, IN), layer.bias
    wanted = x @ weights.mT + bias

    def of(weight):
        return torch.func.functional_call(layer, {"weight": weight}, (x,))

    for found in (of(weights[0]), torch.vmap(of)(weights)[0]):
        torch.testing.assert_close(found, wanted[0], rtol=1e-5, atol=1e-4)
    along = torch.func.jvp(of, (weights[0],), (weights[1],))[1]
    torch.testing.assert_close(along, x @ weights[1].mT, rtol=1e-5, atol=1e-4)
    slopes = torch.func.grad(lambda weight: of(weight).sum())(weights[0])
    torch.testing.assert_close(slopes, x.sum(0).expand(OUT, IN), rtol=1e-5, atol=1e-4)
    check(layer, x)
    assert seen.count(Split) == 3 and torch.equal(layer.kept.weight, layer.weight)


@both_packages
def test_weights_that_are_no_parameters_of_its_own(package, given):
    """A parametrization makes another tensor for each call, and an inference tensor does not count its changes."""
    seen, x = given(package), random(3, IN)
    with torch.no_grad():
        twice = linear(package)
        parametrize.register_parametrization(twice, "weight", torch.nn.Identity())
        check(twice, x)
        with torch.inference_mode():
            check(linear(package), x)
        meta = linear(package, "meta")
        assert meta(torch.empty(3, IN, device="meta")).shape == (3, OUT)
    assert seen == [torch.Tensor] * 3


@both_packages
def test_in_inference_mode(package, given):
    seen, layer, x = given(package), linear(package).requires_grad_(False), random(3, IN)
    with torch.inference_mode():
        check(layer, x)
    check(layer, x.requires_grad_())
    assert seen == ["split", Split, Split]


@both_packages
def test_on_another_stream_it_splits_again(package, given, monkeypatch):
    seen, layer, x = given(package), linear(package).requires_grad_(False), random(3, IN)
    layer(x)
    monkeypatch.setattr(kept_split, "stream_of", lambda device: 1)
    layer(x)
    layer(x)
    assert seen == ["split", Split, "split", Split, Split]


@pytest.mark.gpu
@both_packages
@pytest.mark.parametrize("warm", (0, 3))
def test_a_captured_graph_reads_the_weight(package, warm, given):
    seen, layer, x = given(package, "cuda"), linear(package, "cuda").requires_grad_(False), random(64, IN, device="cuda")
    package.nn.Linear.from_torch(torch.nn.Linear(IN, OUT, device="cuda"), precision="fp32")(x)  # builds
    torch.cuda.synchronize()
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(side):
        for _ in range(warm):
            layer(x)
    side.synchronize()
    del seen[:]
    with torch.cuda.graph(graph, stream=side):
        result = layer(x)
    assert seen == [torch.Tensor]
    layer.weight.mul_(-2)
    graph.replay()
    torch.testing.assert_close(result, torch.nn.functional.linear(x, layer.weight, layer.bias), rtol=1e-4, atol=1e-3)
    check(layer, x)


@both_packages
def test_replace_passes_it_on_and_restore_forgets_it(package, given):
    seen, x = given(package), random(3, IN)
    model = torch.nn.Sequential(torch.nn.Linear(IN, OUT), torch.nn.Unflatten(1, (1, OUT)), torch.nn.Conv1d(1, 2, 3)).eval()
    before = [set(vars(module)) for module in model]
    package.nn.replace(model, "fp32", only_where_faster=False, cache_split=True)
    assert "precision=fp32, cache_split=True, " in repr(model[0]) and "cache_split" not in vars(model[2])
    with torch.no_grad():
        model[0](x)
        assert seen == ["split", Split]
        package.nn.restore(model)
    assert [set(vars(module)) for module in model] == before and type(model[0]) is torch.nn.Linear


@both_packages
def test_it_may_be_changed_at_any_time(package, given):
    seen, layer = given(package), package.nn.Linear.from_torch(torch.nn.Linear(IN, OUT), precision="fp16x3")
    with torch.no_grad():
        for layer.cache_split in (False, True, False):
            layer(random(3, IN))
    assert seen == [torch.Tensor, "split", Split, torch.Tensor]
