"""nn.replace swaps what is faster, and says what it swapped, what not, and why; nn.restore undoes it.

Without a GPU times are planned: modules let a simulated GPU work for as long as a test says.
"""

import copy
import io

import pytest
import torch
from torch.nn.utils import parametrize

import tritonkernels.nn
from perf.measure import baselines
from tests.choice.stand_ins import SimulatedGpu
from tests.harness import available_on, random
from tests.torch_ops.samples import both_packages
from tritonkernels.choice import bench
from tritonkernels.errors import ArgumentError, BuildError
from tritonkernels.nn import swap

KINDS = "Linear", "Conv1d", "Conv2d", "ConvTranspose1d", "ConvTranspose2d"
FAST, SLOW = (5e-3, 6e-3), (10e-3, 12e-3)  # seconds of a forward: in a CUDA graph, and eagerly


class Gpu(SimulatedGpu):
    """One where a forward of ours and of torch's take as long as planned, and which keeps what they are called with."""

    l2_bytes = 1024

    def __init__(self, patch, package, ours=FAST, torchs=SLOW, captures=True):
        super().__init__(noise=0)
        self.kinds, self.seen = tuple(getattr(package.nn, kind) for kind in KINDS), []
        self._captured, self._captures = False, captures
        patch.setattr(bench, "ROUNDS", (2, 2))  # its times are exact
        for kind in KINDS:
            forward = getattr(torch.nn, kind).forward
            patch.setattr(getattr(torch.nn, kind), "forward", self._taking(torchs, forward, "torch"))
            patch.setattr(getattr(package.nn, kind), "forward", self._taking(ours, forward, "ours"))

    def _taking(self, seconds, forward, whose):
        def planned(module, input, **output_size):
            if isinstance(seconds, Exception):
                raise seconds
            self.seen.append((whose, module, input))
            self.work((seconds(input) if callable(seconds) else seconds)[not self._captured])
            return forward(module, input, **output_size)

        return planned

    def waits(self, call):
        return not self._captures

    def replay(self, call):
        def run():
            self._captured = True
            call()
            self._captured = False

        return run if self._captures else None

    def replace(self, model, inputs, precision=None, budget=60.0):
        return swap.swap(model, self.kinds, precision, True, inputs, budget, clock=self)


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


class Quantized(torch.Tensor):
    """A weight that knows F.linear alone, as those of quantized models."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function is not torch.nn.functional.linear:
            return super().__torch_function__(function, types, args, kwargs)
        input, weight, bias = args
        return torch.nn.functional.linear(input, 2 * weight.as_subclass(torch.Tensor), bias)


@both_packages
def test_weights_of_another_class_are_left(package):
    model, x = torch.nn.Linear(4, 3), random(2, 4)
    model.weight = torch.nn.Parameter(model.weight.detach().as_subclass(Quantized))
    before = model(x)
    (row,) = package.nn.replace(model, only_where_faster=False)
    assert not row.swapped and "its weight is a Quantized" in row.why
    assert torch.equal(model(x), before)


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
def test_restore_undoes_it(package):
    model = Model()
    wanted, before = repr(model), {name: set(vars(module)) for name, module in model.named_modules()}
    rows = package.nn.replace(model, "tf32", only_where_faster=False)
    assert repr(model) != wanted and f"precision=tf32, {package.__name__})" in repr(model)
    assert package.nn.restore(model) == [row.name.split(", ")[0] for row in rows if row.swapped]
    assert repr(model) == wanted and {name: set(vars(module)) for name, module in model.named_modules()} == before
    assert package.nn.restore(model) == []


@both_packages
@pytest.mark.parametrize("inputs, why", ((None, "sizes are unknown: pass inputs="), (torch.zeros(2, 3, 6, 6), "not called")))
def test_nothing_is_swapped_where_nothing_is_known(package, inputs, why, monkeypatch):
    """Without a GPU: nothing is. With one: what is not measured is not."""
    rows = package.nn.replace(model := Model(), inputs=inputs)
    wanted = {"on cpu: what is faster is measured on a GPU only"}
    assert {row.why for row in rows if row.name not in OUTCOMES} == wanted and not any(row.swapped for row in rows)
    rows = {row.name: row for row in Gpu(monkeypatch, package).replace(model.eval(), inputs)}
    assert rows["unused"].why.startswith(why) and not rows["unused"].swapped
    assert type(model.unused) is torch.nn.Linear


@both_packages
def test_bad_arguments_of_replace(package, monkeypatch):
    with pytest.raises(ArgumentError, match="budget: got 0; allowed: a positive number of seconds"):
        package.nn.replace(Model(), budget=0)
    with pytest.raises(ArgumentError, match="inputs: got RuntimeError"):
        Gpu(monkeypatch, package).replace(model := Model(), torch.zeros(2, 5, 6, 6))
    assert type(model.first) is torch.nn.Linear


QUICK = (SLOW[0] / 1.009, SLOW[1] / 1.009)  # ahead, but not by more than the noise


@both_packages
@pytest.mark.parametrize(
    "ours, captures, why",
    (
        (FAST, True, "faster: torch / ours 2.00 in a CUDA graph, 2.00 eagerly"),
        (FAST, False, "faster: torch / ours 2.00 eagerly, as no CUDA graph can capture it"),
        ((FAST[0], SLOW[1]), True, "not faster: torch / ours 2.00 in a CUDA graph, 1.00 eagerly"),
        ((SLOW[0], FAST[1]), True, "not faster: torch / ours 1.00 in a CUDA graph, 2.00 eagerly"),
        (QUICK, True, "not faster: torch / ours 1.01 in a CUDA graph, 1.01 eagerly"),
        ((2 * SLOW[0], 2 * SLOW[1]), True, "not faster: torch / ours 0.50 in a CUDA graph, 0.50 eagerly"),
    ),
)
def test_what_is_faster_in_every_way_is_swapped(package, ours, captures, why, monkeypatch):
    model = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Linear(6, 6)).eval()
    rows = Gpu(monkeypatch, package, ours, captures=captures).replace(model, random(3, 6))
    faster = why.startswith("faster")
    assert [row.why for row in rows] == [why, why] and [row.swapped for row in rows] == [faster] * 2
    assert [type(module) for module in model] == [package.nn.Linear if faster else torch.nn.Linear] * 2
    assert [rows[0].ours_us, rows[0].torch_us] == pytest.approx([1e6 * own[not captures] for own in (ours, SLOW)], rel=0.01)
    if faster:
        assert rows.whole.swapped and rows.whole.torch_us == pytest.approx(2 * 1e6 * SLOW[not captures], rel=0.01)
        assert str(rows).splitlines()[-1].split()[:5] == [
            "(the",
            "model)",
            "Sequential",
            "swapped",
            f"{rows.whole.ours_us:.1f}",
        ]
    else:
        assert rows.whole is None


class Signals(torch.nn.Module):
    """Down and up again, as a decoder of sound; `odd` is no call of a convolution's gradient."""

    def __init__(self):
        super().__init__()
        self.down, self.up = torch.nn.Conv1d(2, 4, 3, stride=2), torch.nn.ConvTranspose1d(4, 2, 3, stride=2)
        self.sized = torch.nn.ConvTranspose1d(4, 2, 3, stride=2)
        self.images = torch.nn.ConvTranspose2d(2, 3, 2, stride=2, groups=1, bias=False)
        self.odd = torch.nn.ConvTranspose2d(3, 2, 2, dilation=2, output_padding=1)

    def forward(self, x):
        x = self.down(x)
        return self.odd(self.images((self.up(x) + self.sized(x, output_size=[9]))[..., None]))


@both_packages
def test_convolutions_of_signals_and_transposed_ones_are_measured(package, monkeypatch):
    available_on(package.launch.LIBRARY, "cpu")
    model, x = Signals(), random(2, 2, 9)
    before = model(x)
    rows = {row.name: row for row in Gpu(monkeypatch, package).replace(model, x)}
    assert {name for name, row in rows.items() if row.swapped} == {"down", "up", "images"}
    assert rows["sized"].why == "called with more than an input" and "output_padding" in rows["odd"].why
    torch.testing.assert_close(model(x), before)


@both_packages
def test_what_a_call_would_refuse_is_not_swapped(package):
    available_on(package.launch.LIBRARY, "cpu")
    model, x = Signals(), random(2, 2, 9)
    before = model(x)
    rows = {row.name: row for row in package.nn.replace(model, only_where_faster=False)}
    assert {name for name, row in rows.items() if row.swapped} == {"down", "up", "sized", "images"}
    assert rows["odd"].why == "an output_padding that is not below the stride"
    torch.testing.assert_close(model(x), before)


@both_packages
def test_a_model_that_is_not_faster_is_left(package, monkeypatch):
    gpu = Gpu(monkeypatch, package)

    class Fused(torch.nn.Sequential):
        """One that loses, with ours, what torch gains in it."""

        def forward(self, x):
            gpu.work(0 if type(self[0]) is torch.nn.Linear else 20e-3)
            return super().forward(x)

    rows = gpu.replace(model := Fused(torch.nn.Linear(6, 6)), random(3, 6))
    assert type(model[0]) is torch.nn.Linear and not rows[0].swapped and rows[0].ours_us < rows[0].torch_us
    assert rows[0].why == "faster by itself, but the whole model is not" and "0.40 in a CUDA graph" in rows.whole.why


def test_calls_that_are_equal_are_measured_once(monkeypatch):
    """In any modules; times are of all calls of a module."""
    gpu = Gpu(monkeypatch, tritonkernels)
    rows = {row.name: row for row in gpu.replace(Model().eval(), random(2, 3, 6, 6))}
    assert rows["first, again"].ours_us == pytest.approx(2 * rows["tied"].ours_us) and rows["convolution"].swapped
    linears = {id(module) for whose, module, input in gpu.seen if whose == "ours" and input.shape == (2, 8)}
    assert len(linears) <= 16 + 2, "operands of a run, and the two modules of the model that is timed whole"


def test_a_module_that_is_slower_in_one_of_its_calls_is_left(monkeypatch):
    class Called(torch.nn.Sequential):
        def forward(self, x):
            return self[0](x) + self[0](x[:1])

    rows = Gpu(monkeypatch, tritonkernels, lambda x: FAST if len(x) > 1 else (2 * SLOW[0], SLOW[1])).replace(
        Called(torch.nn.Linear(6, 6)).eval(), random(3, 6)
    )
    assert not rows[0].swapped and "2.00 in a CUDA graph" in rows[0].why and "0.50 in a CUDA graph" in rows[0].why


def test_operands_have_the_forms_of_the_calls_and_change(monkeypatch):
    gpu, x = Gpu(monkeypatch, tritonkernels, (20e-6, 20e-6), (30e-6, 30e-6)), random(9, 4, 6)[:, 1:, :].mT
    model = torch.nn.Linear(3, 5)
    weight = model.weight
    gpu.replace(model.eval(), x)
    timed = [(module, input) for _, module, input in gpu.seen if module.weight.data_ptr() != weight.data_ptr()]
    assert {(i.shape, i.stride(), i.data_ptr() % 16 == x.data_ptr() % 16) for _, i in timed} == {(x.shape, x.stride(), True)}
    assert not any(torch.equal(i, x) or torch.equal(m.weight, weight) for m, i in timed)
    run = [input.data_ptr() for _, input in timed][-16:]
    assert len({*run}) == 3 and len({m.weight.data_ptr() for m, _ in timed}) == 3, "2 KB are twice the L2 cache"


@pytest.mark.parametrize("training", (True, False))
def test_backward_is_measured_where_the_model_trains(training, monkeypatch):
    """The first module's input needs no gradient, a frozen module's weight none."""
    model = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Linear(6, 6)).train(training)
    model[1].requires_grad_(False)
    backwards, real = [], torch.autograd.grad

    def grad(results, wanted, *args, **kwargs):
        backwards.append(tuple(tuple(t.shape) for t in wanted))
        return real(results, wanted, *args, **kwargs)

    monkeypatch.setattr(torch.autograd, "grad", grad)
    gpu = Gpu(monkeypatch, tritonkernels)
    gpu.replace(copy.deepcopy(model), random(3, 6))
    assert {*backwards} == ({((6, 6), (6,)), ((3, 6),)} if training else set())
    backwards.clear()
    with torch.no_grad():
        gpu.replace(copy.deepcopy(model), random(3, 6))
    assert not backwards


@both_packages
def test_precision_switches_and_autocast_are_those_of_the_call(package, monkeypatch):
    gpu, states = Gpu(monkeypatch, package), []
    work = gpu.work

    def noting(seconds):
        states.append(
            (
                torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None,
                torch.backends.cuda.matmul.fp32_precision,
            )
        )
        work(seconds)

    gpu.work = noting

    class Local(torch.nn.Sequential):
        def forward(self, x):
            with torch.autocast("cpu", torch.float16):
                return super().forward(x)

    model = torch.nn.Sequential(torch.nn.Linear(6, 6), Local(torch.nn.Linear(6, 6))).eval()
    with baselines.precision("tf32"), torch.autocast("cpu", torch.bfloat16):
        gpu.replace(model, random(3, 6), precision="tf32")
    assert {dtype for dtype, _ in states} == {torch.bfloat16, torch.float16} and {switch for _, switch in states} == {"tf32"}
    assert {module.precision for whose, module, _ in gpu.seen if whose == "ours"} == {"tf32"}


class Restless(Model):
    """One whose forward changes whatever it can."""

    def __init__(self):
        super().__init__()
        self.drop, self.runs = torch.nn.Dropout(), []

    def forward(self, images, scale=1.0):
        self.runs.append(1)
        return super().forward(self.drop(images.mul_(0.5)), scale)


@pytest.mark.parametrize("how", (lambda x: x, lambda x: (x, 2.0), lambda x: {"images": x, "scale": 2.0}))
def test_measuring_changes_nothing(how, monkeypatch):
    """Inputs may be a tensor, a tuple or a dict; modules that they do not reach are left."""
    model, images = Restless(), random(4, 3, 6, 6)
    model.first.bias.grad = torch.ones(8)
    before, kept = copy.deepcopy(model.state_dict()), images.clone()
    state = torch.get_rng_state()
    rows = {row.name: row for row in Gpu(monkeypatch, tritonkernels).replace(model, how(images))}
    assert rows["unused"].why == "not called with these inputs" and rows["convolution"].ours_us > 0
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items()) and torch.equal(images, kept)
    assert torch.equal(torch.get_rng_state(), state) and model.runs == [] and not model.tied._forward_pre_hooks
    assert torch.equal(model.first.bias.grad, torch.ones(8)) and {p.grad is None for p in model.parameters()} == {True, False}
    assert torch.is_grad_enabled() and type(model.first) is tritonkernels.nn.Linear


def test_the_budget_is_kept(monkeypatch):
    """What it is not enough for is left, and says so; the whole model is still timed."""
    model = torch.nn.Sequential(*(torch.nn.Linear(6, 6) for _ in range(2)), torch.nn.Linear(6, 5), torch.nn.Linear(5, 4)).eval()
    gpu = Gpu(monkeypatch, tritonkernels, (0.5, 0.5), (1.0, 1.0))
    rows = gpu.replace(model, random(3, 6), budget=30)
    assert [row.swapped for row in rows] == [True, True, False, False] and rows.whole.swapped
    assert {row.why for row in rows[2:]} == {"not measured: the budget of 30 s was up"} and gpu.time < 120


@both_packages
@pytest.mark.parametrize(
    "error, why",
    ((BuildError("no nvcc"), "no nvcc"), (torch.OutOfMemoryError("x"), "not measured: the GPU's memory is too small for both")),
)
def test_what_cannot_run_is_left_and_says_why(package, error, why, monkeypatch):
    rows = Gpu(monkeypatch, package, error).replace(model := torch.nn.Sequential(torch.nn.Linear(6, 6)), random(3, 6))
    assert not rows[0].swapped and rows[0].why.startswith(why) and type(model[0]) is torch.nn.Linear


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
@pytest.mark.gpu
@pytest.mark.parametrize("training", (True, False))
def test_on_a_gpu(package, training, monkeypatch):
    """All is timed, in both ways; with ours declared faster, results are torch's, and restore gives torch's modules back."""
    monkeypatch.setattr(bench.Contender, "beats", lambda self, other: True)
    monkeypatch.setattr(bench, "ROUNDS", (3, 3))
    with baselines.precision("ieee"):
        model, images = Model().cuda().train(training), torch.randn(16, 3, 32, 32, device="cuda")
        wanted, before, state = model(images), copy.deepcopy(model.state_dict()), torch.cuda.get_rng_state()
        table = package.nn.replace(model, inputs=images, budget=600)
        rows = {row.name: row for row in table}
        assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
        assert torch.equal(torch.cuda.get_rng_state(), state) and {p.grad for p in model.parameters()} == {None}
        for row in (rows["convolution"], rows["first, again"], rows["tied"], table.whole):
            assert row.swapped and 0 < row.ours_us < 1e5 and 0 < row.torch_us < 1e5, row
            assert "in a CUDA graph" in row.why and "eagerly" in row.why, row
        assert type(model.first) is package.nn.Linear
        torch.testing.assert_close(model(images), wanted, rtol=1e-4, atol=1e-4)
        package.nn.restore(model)
        assert type(model.first) is torch.nn.Linear and type(model.convolution) is torch.nn.Conv2d
        torch.testing.assert_close(model(images), wanted, rtol=1e-4, atol=1e-4)


@both_packages
@pytest.mark.gpu
def test_a_model_that_waits_for_the_gpu_is_timed_eagerly(package, monkeypatch):
    class Waits(torch.nn.Sequential):
        def forward(self, x):
            return super().forward(x) * float(x.sum().item() > 0)

    monkeypatch.setattr(bench.Contender, "beats", lambda self, other: True)
    monkeypatch.setattr(bench, "ROUNDS", (3, 3))
    table = package.nn.replace(Waits(torch.nn.Linear(64, 64)).cuda(), inputs=torch.randn(32, 64, device="cuda"), budget=600)
    assert "in a CUDA graph" in table[0].why and table.whole.why.endswith("eagerly, as no CUDA graph can capture it")
    torch.dropout(torch.ones(9, device="cuda"), 0.5, True)  # which a capture that failed may have left unable to draw
