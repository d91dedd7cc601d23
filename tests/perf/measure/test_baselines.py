"""torch computes the same problem at the precision of its row, and its switches are restored."""

import importlib

import pytest
import torch

from perf.measure import baselines, cases
from perf.measure.cases import Operand
from perf.measure.check import Checker, Output
from perf.measure.suites import SUITES
from tritonkernels.errors import UnsupportedError
from tritonkernels.matmul import MATMUL
from tritonkernels.problem import PACKED

CPU = torch.device("cpu")


def switches():
    backends = torch.backends
    matmul = backends.cuda.matmul
    reductions = matmul.allow_fp16_reduced_precision_reduction, matmul.allow_bf16_reduced_precision_reduction
    return matmul.fp32_precision, backends.cudnn.conv.fp32_precision, backends.cudnn.benchmark, *reductions


@pytest.mark.parametrize(("name", "fp32"), [("ieee", "ieee"), ("tf32", "tf32"), ("fp16", "ieee")])
def test_both_switches_are_set_and_restored(name, fp32):
    before = switches()
    with baselines.precision(name):
        assert switches() == (fp32, fp32, True, False, False)
        torch.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2))  # raises if the two generations of switches disagree
    assert switches() == before


def test_switches_are_restored_after_an_error():
    before = switches()
    with pytest.raises(KeyError), baselines.precision("tf32"):
        raise KeyError
    assert switches() == before


def test_the_older_switch_can_still_be_read_afterwards():
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    with baselines.precision("ieee"):
        pass
    assert (torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32) == before


@pytest.mark.parametrize("case", [pytest.param(c, id=f"{c.op}-{c.name}") for c in SUITES["smoke"]])
def test_a_baseline_computes_the_same_problem(case):
    args, kwargs = case.arguments(1, CPU)
    prepared = importlib.import_module(f"tritonkernels.{case.op}").prepare(*args, **kwargs)
    output = Output(prepared.result)
    _, call, writes_out = baselines.BASELINES[case.op][0]
    if prepared.problem.precision in PACKED:
        with pytest.raises(UnsupportedError, match="packed"):
            call(*args, out=output.tensor, **kwargs)
        return
    computed = call(*args, out=output.tensor, **kwargs)
    finding = Checker(args, kwargs).judge(prepared.problem, output, computed, writes_out)
    assert finding.ok, finding


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("options", [{}, {"activation": "relu"}, {"alpha": -1.5}])
@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("addend", ["bias", "c"])
def test_the_fused_product_computes_the_same_problem(dtype, options, addend, batch):
    """Where torch has one: of one addend, into the same type, with ReLU or nothing after it."""
    size = (47,) if addend == "bias" else (*batch, 33, 47)
    case = cases.matmul(33, 47, 65, dtype, batch=batch, named={addend: Operand(size, dtype)}, **options)
    args, kwargs = case.arguments(1, CPU)
    prepared = MATMUL.prepare(*args, **kwargs)
    output = Output(prepared.result)
    computed = baselines.addmm(*args, out=output.tensor, **kwargs)
    assert Checker(args, kwargs).judge(prepared.problem, output, computed, True).ok


@pytest.mark.parametrize(
    "case",
    [
        cases.matmul(8, 8, 8, torch.float16),
        cases.matmul(8, 8, 8, torch.float16, batch=(2, 2), named={"bias": Operand((8,), torch.float16)}),
        cases.matmul(8, 8, 8, torch.float16, out_dtype=torch.float32, named={"bias": Operand((8,), torch.float32)}),
        cases.matmul(8, 8, 8, torch.float16, activation="gelu", named={"bias": Operand((8,), torch.float16)}),
        cases.matmul(8, 8, 8, named={"bias": Operand((8,)), "c": Operand((8, 8))}),
        cases.matmul(8, 8, 8, torch.int8),
    ],
    ids=lambda case: case.name,
)
def test_what_torch_does_not_fuse_is_refused(case):
    args, kwargs = case.arguments(1, CPU)
    with pytest.raises(UnsupportedError, match=r"torch\.addmm"):
        baselines.addmm(*args, out=MATMUL.prepare(*args, **kwargs).result, **kwargs)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_a_convolution_in_the_other_layout_is_the_same_and_comes_back(layout):
    x, w = (torch.randn(2, 3, 9, 8).contiguous(memory_format=layout), torch.randn(4, 3, 3, 3).contiguous(memory_format=layout))
    for _ in range(2):
        computed = baselines.conv2d_in_the_other_layout(x, w, out=None, padding=1)
        torch.testing.assert_close(computed, torch.conv2d(x, w, padding=1))
        assert computed.is_contiguous(memory_format=layout)
    for single in (torch.randn(2, 1, 9, 8), x[:, :, ::2], x[0]):
        with pytest.raises(UnsupportedError):
            baselines.conv2d_in_the_other_layout(single, w, out=None)


def test_beta_zero_ignores_what_is_in_out():
    a, x, out = torch.ones(3, 2), torch.ones(2), torch.full((3,), float("nan"))
    assert baselines.gemv(a, x, out=out).tolist() == [2.0, 2.0, 2.0]


def test_there_is_no_tf32_on_a_cpu():
    case = next(c for c in SUITES["smoke"] if c.options.get("precision") == "tf32")
    args, kwargs = case.arguments(0, CPU)
    problem = importlib.import_module("tritonkernels.matmul").prepare(*args, **kwargs).problem
    assert baselines.precision_of(problem, CPU) == "ieee"


@pytest.mark.parametrize(
    ("a", "b", "out"),
    [
        (torch.empty(16, 8, dtype=torch.int8), torch.empty(8, 8, dtype=torch.int8), torch.int32),
        (torch.empty(17, 9, dtype=torch.int8), torch.empty(9, 8, dtype=torch.int8), torch.int32),
        (torch.empty(2, 4, 8, dtype=torch.half), torch.empty(8, 8, dtype=torch.half), torch.float32),
    ],
)
def test_what_torch_cannot_multiply_on_a_gpu_is_a_refusal(a, b, out):
    with pytest.raises(UnsupportedError):
        baselines.matmul(a.to("meta"), b.to("meta"), out=torch.empty(a.shape[0], b.shape[1], dtype=out, device="meta"))


def laid_out(layout, *shape):
    return torch.randn(*shape).contiguous(memory_format=layout)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_gradients_in_the_other_layout_are_the_same_and_come_back(layout):
    x, w, grad = laid_out(layout, 2, 3, 9, 8), laid_out(layout, 4, 3, 3, 3), laid_out(layout, 2, 4, 9, 8)
    for computed, wanted in (
        (
            baselines.conv2d_input_in_the_other_layout(x.shape, w, grad, out=None, padding=1),
            torch.nn.grad.conv2d_input(x.shape, w, grad, padding=1),
        ),
        (
            baselines.conv2d_weight_in_the_other_layout(x, w.shape, grad, out=None, padding=1),
            torch.nn.grad.conv2d_weight(x, w.shape, grad, padding=1),
        ),
    ):
        torch.testing.assert_close(computed, wanted)
        assert computed.is_contiguous(memory_format=layout)


def test_the_other_layout_really_is_another_one(monkeypatch):
    seen = []
    monkeypatch.setattr(torch.nn.grad, "conv2d_input", lambda size, *tensors, **options: seen.extend(tensors) or tensors[1])
    monkeypatch.setattr(torch.nn.grad, "conv2d_weight", lambda x, size, grad, **options: seen.extend((x, grad)) or x)
    x, w, grad = torch.randn(2, 3, 9, 8), torch.randn(4, 3, 3, 3), torch.randn(2, 4, 7, 6)
    baselines.conv2d_input_in_the_other_layout(x.shape, w, grad, out=None)
    baselines.conv2d_weight_in_the_other_layout(x, w.shape, grad, out=None)
    assert len(seen) == 4 and all(t.is_contiguous(memory_format=torch.channels_last) for t in seen)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("bias", [False, True])
def test_patches_are_rows_of_a_linear_layer(layout, bias):
    x, w = laid_out(layout, 2, 3, 13, 8), laid_out(layout, 5, 3, 4, 2)  # a row of pixels is left over
    addend = torch.randn(5) if bias else None
    computed = baselines.linear_over_patches(x, w, addend, out=None, stride=(4, 2))
    torch.testing.assert_close(computed, torch.conv2d(x, w, addend, (4, 2)))
    assert computed.is_contiguous(memory_format=layout)


@pytest.mark.parametrize(
    "options", [{"stride": 1}, {"stride": 3, "padding": 1}, {"stride": 3, "dilation": 2}, {"stride": (3, 2)}]
)
def test_filters_that_overlap_have_no_patches(options):
    with pytest.raises(UnsupportedError, match="patches"):
        baselines.linear_over_patches(torch.randn(1, 3, 9, 9), torch.randn(2, 3, 3, 3), out=None, **options)
    with pytest.raises(UnsupportedError, match="patches"):
        baselines.linear_over_patches(torch.randn(1, 3, 9, 9), torch.randn(2, 3, 1, 1), out=None)


@pytest.mark.parametrize("activation", ["gelu", "silu"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_an_activation_after_a_rounded_sum_keeps_the_bound_of_two_steps(activation, dtype):
    """One of negative sums does not keep that of one step: it is the rounding of the sum that is allowed, and no more."""
    case = cases.matmul(64, 128, 9, dtype, activation=activation, named={"bias": Operand((128,), dtype)})
    args, kwargs = case.arguments(1, CPU)
    prepared, output = MATMUL.prepare(*args, **kwargs), None
    output = Output(prepared.result)
    computed = baselines.addmm_and_activation(*args, out=output.tensor, **kwargs)
    checker = Checker(args, kwargs)
    assert checker.judge(prepared.problem, output, computed, stepwise=True).ok
    assert not checker.judge(prepared.problem, output, computed).ok
    computed += 0.02
    assert not checker.judge(prepared.problem, output, computed, stepwise=True).ok
    for others in ({"activation": "relu"}, {"bias": None}):
        with pytest.raises(UnsupportedError):
            baselines.addmm_and_activation(*args, out=output.tensor, **kwargs | others)


def test_where_fast_sums_of_fp8_will_do_torch_has_two_kinds():
    args, kwargs = cases.matmul(32, 16, 64, torch.float8_e4m3fn, b="col", accumulate="fast").arguments(0, CPU)
    prepared = MATMUL.prepare(*args, **kwargs)
    output = Output(prepared.result)
    computed = baselines.matmul_with_fp32_sums(*args, out=output.tensor, **kwargs)
    assert Checker(args, kwargs).judge(prepared.problem, output, computed).ok
    with pytest.raises(UnsupportedError, match="fast"):
        baselines.matmul_with_fp32_sums(*args, out=output.tensor)
