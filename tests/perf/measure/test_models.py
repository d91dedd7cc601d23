"""perf models: replaced modules compute what float64 does, faults are seen, and kernels go to their operation and layer."""

import dataclasses
import json
import threading
import time
from types import SimpleNamespace

import pytest
import torch
from torch.autograd import DeviceType

from perf.measure import records, workers
from perf.measure.models import command, kernel_time, one, zoo
from tritonkernels import nn

CPU = torch.device("cpu")


class Block(torch.nn.Module):
    """A residual block with a depthwise layer, whose last scale begins as zero, as ResNet's and RegNet's do."""

    def __init__(self, channels):
        super().__init__()
        self.depthwise = torch.nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)
        self.pointwise = torch.nn.Conv2d(channels, channels, 1)
        self.norm = torch.nn.BatchNorm2d(channels)
        torch.nn.init.zeros_(self.norm.weight)

    def forward(self, x):
        return x + self.norm(self.pointwise(self.depthwise(x).relu()))


class Attention(torch.nn.Module):
    """A transformer's layer; its result comes first in a tuple, as those of transformers do."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv, self.out = (
            torch.nn.LayerNorm(width),
            torch.nn.Linear(width, 3 * width),
            torch.nn.Linear(width, width),
        )

    def forward(self, x, scale):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        return x + scale * self.out(torch.nn.functional.scaled_dot_product_attention(q, k, v)), "more"


def convolutional(small):
    layers = (torch.nn.Conv2d(3, 8, 3, stride=2), Block(8), torch.nn.Flatten(), torch.nn.Linear(8 * 9, 5))
    return torch.nn.Sequential(*layers)


MODELS = {
    "convolutional": zoo.Model(
        "Convolutional", "torch", convolutional, lambda small: (torch.randn(2, 3, 8, 8),), "2 images", channels_last=True
    ),
    "attention": zoo.Model(
        "Attention", "torch", lambda small: Attention(16), lambda small: {"x": torch.randn(2, 5, 16), "scale": 0.5}, "10 tokens"
    ),
}


class Clock:
    """A GPU's, that is done when the host is."""

    l2_bytes = 1
    now = staticmethod(time.perf_counter)

    def __init__(self, *_):
        self.waiting = False

    def flush(self):
        pass

    def synchronize(self):
        pass

    def waits(self, call):
        call()
        return self.waiting

    def replay(self, call):
        call()
        return call

    def event(self):
        return SimpleNamespace(at=self.now(), query=bool, elapsed_time=lambda later: 1e3 * time.process_time() or 1.0)


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(zoo, "MODELS", MODELS)


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    """Everything but the GPU itself: times, memory and kernels are made up."""
    for name, value in {"GpuClock": Clock, "warm": lambda steps: [step() for step in steps.values()], "ROUNDS": (2, 2)}.items():
        monkeypatch.setattr(one, name, value)
    monkeypatch.setattr(one.contenders, "device", lambda: SimpleNamespace(type="cuda"))
    monkeypatch.setattr(one.zoo, "made", lambda model, dtype, device, small, made=zoo.made: made(model, dtype, CPU, small))
    monkeypatch.setattr(one, "sample", lambda clock, run, flushes: (run(), (0.5, False))[1])
    monkeypatch.setattr(one, "flushes_to_hide", lambda runs, clock: 1)
    monkeypatch.setattr(one, "build_native", lambda device: None)
    monkeypatch.setattr(one.OfModel, "_peak", lambda self, step: 1 << 20)
    monkeypatch.setattr(one.OfModel, "_free", lambda self: None)
    monkeypatch.setattr(kernel_time, "of_step", lambda step, module, kinds: {"operations": {}, "layers": {}, "extra": []})


def measured(key, dtype="fp32", packages=("triton",)):
    work = one.OfModel(key, dtype, packages, None, threading.Lock())
    assert work("prepare", None) is None
    return work("measure", None)


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("key", MODELS)
def test_replaced_modules_are_as_exact_as_torchs(key, dtype):
    rows = measured(key, dtype)
    assert [row.what for row in rows] == ["forward", "training step"]
    for row in rows:
        assert row.ok and row.message is None, row.message
        assert row.replaced == {"triton": row.layers} and row.layers == (4 if key == "convolutional" else 2) and not row.left
        assert 0 < row.error["triton"] < (1e-5 if dtype == "fp32" else 0.05)
        assert set(row.first_s) == {"torch", "triton"} and not row.times
    assert 0 < rows[1].gradient_error["triton"] < (1e-5 if dtype == "fp32" else 0.1)


@pytest.mark.parametrize("layer", ["0", "1.pointwise", "3"])
@pytest.mark.parametrize("fault", ["result", "gradient"])
def test_one_wrong_layer_fails_the_row(monkeypatch, layer, fault):
    """In one layer of ours, and there in what alone: a result that is 1 % off, or the gradient of its weight."""
    replace = nn.replace

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.01 if fault == "result" else x.clone()

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 1.01

    def broken(model, *args, **kwargs):
        swaps, wrong = replace(model, *args, **kwargs), model.get_submodule(layer)
        own = wrong.forward
        if fault == "result":
            wrong.forward = lambda x: Wrong.apply(own(x))
        else:
            torch.nn.utils.parametrize.register_parametrization(wrong, "weight", Scaled(), unsafe=True)
        return swaps

    class Scaled(torch.nn.Module):
        def forward(self, weight):
            return Wrong.apply(weight)

    monkeypatch.setattr(nn, "replace", broken)
    if fault == "gradient":  # the parametrization renames the parameter
        step = one.training_step

        def renamed(module, inputs):
            own = step(module, inputs)

            def run():
                result, found = own()
                return result, {name.replace("parametrizations.weight.original", "weight"): g for name, g in found.items()}

            return run

        monkeypatch.setitem(one.STEPS, one.STEP, renamed)
    forward, step = measured("convolutional")
    assert forward.ok is (fault == "gradient") and step.ok is False
    assert "triton: the error of" in step.message and (fault == "result" or f"{layer}.weight" in step.message)


def test_branches_that_begin_as_zero_count():
    module, (images,) = zoo.made(MODELS["convolutional"], torch.float32, CPU, small=False)
    assert module[1].norm.weight.min() == 0.5 and images.is_contiguous(memory_format=torch.channels_last)
    _, gradients = one.training_step(module, (images,))()
    assert gradients["1.pointwise.weight"].abs().max() > 0 and module[1].norm.running_mean.abs().max() == 0


def test_both_ways_of_both_are_timed(as_on_a_gpu):
    for row in measured("attention"):
        assert set(row.times) == set(row.kernels) == set(row.peak_bytes) == {"torch", "triton"} and row.ok
        assert all(set(ways) == {"graph", "eager"} for ways in row.times.values())
        assert row.times["triton"]["graph"]["median_us"] == 500


def test_what_no_graph_captures_is_timed_call_by_call(as_on_a_gpu, monkeypatch):
    monkeypatch.setattr(Clock, "waits", lambda self, call: True)
    for row in measured("attention"):
        assert all(set(ways) == {"eager"} for ways in row.times.values()) and row.ok


def test_a_failure_of_a_step_leaves_the_other_one(monkeypatch):
    def fails(module, inputs):
        def step():
            raise ValueError("no backward today")

        return step

    monkeypatch.setitem(one.STEPS, one.STEP, fails)
    forward, step = measured("attention")
    assert forward.ok and step.ok is False and step.message == "ValueError: no backward today"


def test_where_memory_is_too_small_for_all_a_model_prepares_again(monkeypatch):
    """When its turn comes the others are gone; what it is too small for then is a failure."""
    made, failures = zoo.made, [torch.OutOfMemoryError("full")]

    def full_once(*args, **options):
        if failures:
            raise failures.pop()
        return made(*args, **options)

    monkeypatch.setattr(zoo, "made", full_once)
    assert all(row.ok for row in measured("attention"))
    failures += [torch.OutOfMemoryError("full")] * 2
    work = one.OfModel("attention", "fp32", ("triton",), None, threading.Lock())
    assert work("prepare", None) is None and work("measure", None) == "OutOfMemoryError: full"


# Where the time goes.
@pytest.mark.parametrize(
    ("name", "operators", "operation", "is_extra"),
    [
        ("nvjet_tst_128x256", ("aten::addmm", "aten::linear", "layer:fc"), "matmul", False),
        ("void cublasLt::splitKreduce_kernel<32, 16>(float)", ("aten::mm", "MmBackward0", "layer:fc"), "matmul", True),
        ("_persistent_kernel", ("tritonkernels::matmul", "RecordedBackward", "layer:fc"), "matmul", False),
        ("_add_splits_kernel", ("tritonkernels::conv2d_weight", "layer:conv"), "conv weight gradient", True),
        ("_flipped_kernel", ("tritonkernels::conv2d_input", "layer:conv"), "conv input gradient", True),
        ("sm90_xmma_fprop_implicit_gemm_nhwc", ("aten::cudnn_convolution", "aten::convolution"), "conv forward", False),
        ("sm90_xmma_dgrad_implicit_gemm_nhwc", ("aten::convolution_backward", "layer:conv"), "conv input gradient", False),
        ("sm80_xmma_wgrad_implicit_gemm", ("aten::convolution_backward", "layer:conv"), "conv weight gradient", False),
        ("void cudnn::ops::nchwToNhwcKernel<a>", ("aten::cudnn_convolution", "layer:conv"), "conv forward", True),
        ("void at::native::reduce_kernel<512>", ("aten::sum", "AddmmBackward0", "layer:fc"), "bias", False),
        ("void at::native::reduce_kernel<512>", ("aten::sum", "aten::mean"), "normalisation, elementwise", False),
        ("void at::native::elementwise_kernel<1>", ("aten::add_", "aten::_convolution", "layer:conv"), "bias", False),
        ("void at::native::elementwise_kernel<1>", ("aten::add",), "normalisation, elementwise", False),
        ("void at::native::elementwise_kernel<1>", ("aten::copy_", "layer:fc"), "normalisation, elementwise", True),
        ("flash_fwd_kernel", ("aten::_flash_attention_forward", "aten::scaled_dot_product_attention"), "attention", False),
        ("sm80_gemm", ("aten::bmm", "aten::_scaled_dot_product_attention_math"), "attention", False),
        ("Memset (Device)", (), "other", False),
    ],
)
def test_kernels_belong_to_an_operation(name, operators, operation, is_extra):
    kernel = kernel_time.Kernel(name, 1.0, operators)
    assert (kernel.operation, kernel.is_extra) == (operation, is_extra)


def event(device, name, us=0.0, kernels=(), parent=None, start=0.0):
    return SimpleNamespace(
        device_type=device,
        name=name,
        kernels=[SimpleNamespace(name=own, duration=took) for own, took in kernels],
        cpu_parent=parent,
        time_range=SimpleNamespace(start=start, end=start + us, elapsed_us=lambda: us),
    )


def test_each_kernel_counts_once_and_while_it_is_the_first():
    """The second one is launched early: for 1 of its 2 us it waits for the first. The last one is linked to no operator."""
    layer = event(DeviceType.CPU, "layer:fc", kernels=[("layer:fc", 9.0)])
    product = event(DeviceType.CPU, "aten::mm", kernels=[("gemm", 4.0), ("splitKreduce", 2.0)], parent=layer)
    shown = [("layer:fc", 0.0, 9.0), ("gemm", 0.0, 4.0), ("splitKreduce", 3.0, 2.0), ("softmax", 7.0, 5.0)]
    on_gpu = [event(DeviceType.CUDA, name, us, start=start) for name, start, us in reversed(shown)]
    found = kernel_time.summary(kernel_time.kernels([layer, product, *on_gpu]), steps=2)
    assert found == {
        "operations": {"matmul": 2.5, "normalisation, elementwise": 2.5},
        "layers": {"fc": {"matmul": 2.5}},
        "extra": [["splitKreduce", "matmul", 0.5, 0.5]],
        "alone": True,
    }


@pytest.mark.parametrize("ours", [False, True])
def test_layers_are_marked_in_both_directions(ours):
    model, (images,) = zoo.made(MODELS["convolutional"], torch.float32, CPU, small=False)
    if ours:
        nn.replace(model, only_where_faster=False)
    step = one.training_step(model, (images,))
    with kernel_time.marked(model, one.KINDS), torch.profiler.profile() as profiler:
        step()
    found = {}
    for each in profiler.events():
        around = kernel_time._around(each)
        if each.name in ("aten::mm", "aten::addmm", "aten::convolution_backward") or each.name.startswith("tritonkernels::"):
            backward = any("Backward" in name for name in around)
            found.setdefault((kernel_time.Kernel("", 0.0, around).layer, backward), []).append(each.name)
    layers = {"0", "1.depthwise", "1.pointwise", "3"}
    assert {layer for layer, backward in found if backward} == layers and not any(layer == "" for layer, _ in found)
    assert not model[0]._forward_hooks and not model[0]._forward_pre_hooks, "hooks are gone"
    if ours:
        assert found["1.depthwise", True] == ["tritonkernels::conv2d_weight", "tritonkernels::conv2d_input"] or set(
            found["1.depthwise", True]
        ) == {"tritonkernels::conv2d_input", "tritonkernels::conv2d_weight"}


# The command.
class Scripted:
    """A worker whose process may die."""

    made = ()

    def __init__(self, work):
        self.work, self.answer, self.ended = work, None, False
        Scripted.made = (*Scripted.made, self)

    def give(self, task):
        self.answer = ("died", "its process ended with status -11") if self.work.key == "attention" else ("done", self.do(task))

    def do(self, task):
        return None if task == "prepare" else [one.Row(self.work.key, "T", self.work.dtype, "s", "forward", ok=True)]

    def receive(self):
        return self.answer

    def end(self):
        self.ended = True


@pytest.fixture
def scripted(monkeypatch):
    Scripted.made = ()
    monkeypatch.setattr(command.workers, "Worker", Scripted)
    monkeypatch.setattr(command.workers, "wait", lambda found, seconds: list(found))


def test_a_model_that_dies_leaves_the_others(scripted):
    found = list(command.measured([("convolutional", "bf16"), ("attention", "bf16")], ["triton"], None, time.monotonic() + 99))
    assert {row.model: row.ok for row in found} == {"convolutional": True, "attention": False}
    assert "status -11" in next(row.message for row in found if not row.ok) and all(worker.ended for worker in Scripted.made)


def test_what_the_time_is_too_short_for_is_named(scripted):
    (row,) = command.measured([("convolutional", "bf16")], ["triton"], None, time.monotonic() + command.LEAST_S - 1)
    assert row.ok is None and row.message == "the time was up" and not Scripted.made


def test_what_is_not_installed_is_named(monkeypatch):
    absent = dataclasses.replace(MODELS["attention"], package="no_such_package")
    monkeypatch.setitem(zoo.MODELS, "attention", absent)
    (row,) = command.measured([("attention", "bf16")], ["triton"], None, time.monotonic() + 99)
    assert row.ok is None and "tritonkernels[models]" in row.message


def test_a_run_goes_on_where_the_last_one_ended(scripted, tmp_path, monkeypatch, capsys):
    path = tmp_path / "models.json"
    origin = {"commit": "a", "device": "X1", "torch": "2", "triton": "3"}
    monkeypatch.setattr(command, "environment", lambda *_: origin)
    options = SimpleNamespace(
        model=None, dtype=None, implementation=["triton"], budget=None, minutes=9.0, json=path, commit=None, predict=False
    )
    row = one.Row("convolutional", "T", "bf16", "s", "forward", ok=True, replaced={"triton": 1}, environment=origin)
    records.write_json(path, [row])
    assert command.main(options, None) == 1  # attention dies
    assert [worker.work.key for worker in Scripted.made] == ["attention"]
    assert [row["ok"] for row in json.loads(path.read_text())["records"]] == [True, False]
    origin["commit"] = "b"
    Scripted.made = ()
    command.main(options, None)
    assert {worker.work.key for worker in Scripted.made} == {
        "convolutional",
        "attention",
    } and "status -11" in capsys.readouterr().out


def test_work_can_be_sent_to_a_process():
    import pickle

    assert pickle.loads(pickle.dumps(one.OfModel("attention", "bf16", ["triton"], None, None))).model is MODELS["attention"]
    assert workers.lock().acquire(timeout=1)
