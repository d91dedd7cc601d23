"""A result is right only if everything about it is."""

import pytest
import torch

from perf.measure.check import BAND, Checker, Output, thin_out
from perf.measure.suites import SUITES
from tritonkernels.gemv import prepare
from tritonkernels.numerics.references import magnitude
from tritonkernels.problem import PACKED

M, N = 37, 19


@pytest.fixture
def call():
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(M, N, generator=generator), torch.randn(N, generator=generator)]


def finding(call, act):
    """The Finding on a gemv that does act(a, x, out)."""
    prepared, checker = prepare(*call), Checker(call, {})
    output = Output(prepared.result)
    computed = act(*call, output.tensor)
    return checker.judge(prepared.problem, output, output.tensor if computed is None else computed)


def write_right(a, x, out):
    out.copy_(a.double() @ x.double())


def test_a_right_result_passes(call):
    assert finding(call, write_right).ok


def one_wrong(a, x, out):
    write_right(a, x, out)
    out[M - 1] *= 1 + 1e-3


def unwritten(a, x, out):
    out[: M - 1].copy_((a.double() @ x.double())[: M - 1])


def zeros(a, x, out):
    out.zero_()


def nothing(a, x, out):
    pass


def outside(a, x, out):
    write_right(a, x, out)
    out.as_strided((1,), (1,), out.storage_offset() + M).fill_(1.0)


def before(a, x, out):
    write_right(a, x, out)
    out.as_strided((1,), (1,), out.storage_offset() - 1).fill_(1.0)


def spoils_an_operand(a, x, out):
    write_right(a, x, out)
    a[0, 0] += 1


def solves_another_problem(a, x, out):
    a.zero_()
    out.zero_()


def another_tensor(a, x, out):
    return (a.double() @ x.double()).float()


FAULTS = [
    (one_wrong, "exceeds its bound"),
    (unwritten, "1 of 37 elements were not written"),
    (zeros, "exceeds its bound"),
    (nothing, "37 of 37 elements were not written"),
    (outside, "1 elements outside"),
    (before, "1 elements outside"),
    (spoils_an_operand, "changed an operand"),
    (solves_another_problem, "changed an operand"),
    (another_tensor, "a tensor other than out"),
]


@pytest.mark.parametrize(("act", "fault"), FAULTS, ids=[act.__name__ for act, _ in FAULTS])
def test_a_wrong_result_is_caught(call, act, fault):
    found = finding(call, act)
    assert not found.ok
    assert fault in found.fault


@pytest.mark.parametrize("name", ["c", "bias"])
def test_operands_that_are_keyword_arguments_count(call, name):
    named = {"c": torch.ones(M, M), "bias": torch.ones(M)}
    checker = Checker([call[0], call[0].mT], named)
    named[name][0] += 1
    assert checker.restore() and (named[name] == 1).all() and not checker.restore()


def test_another_class_than_tensor_is_refused_before_it_is_read(call):
    class Surprise(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *args, **kwargs):
            raise AssertionError("it was read")

    found = finding(call, lambda a, x, out: torch.Tensor._make_subclass(Surprise, out))
    assert "it returned a Surprise" in found.fault and not found.verdict.ok


def in_half(a, x, out):
    out.copy_(a.half().double() @ x.half().double())


def test_a_smaller_precision_is_named(call):
    assert finding(call, in_half).fault == "the error exceeds its bound: it is that of a smaller precision than ieee"


def test_zeros_are_named(call):
    assert finding(call, zeros).fault == "the error exceeds its bound: every element is 0"


@pytest.mark.parametrize("op", ["gemm", "gemv", "conv2d", "matmul"])
def test_thinned_operands_leave_a_single_product(op):
    for case in (c for c in SUITES["smoke"] if c.op == op and c.options.get("precision") not in PACKED):
        args, kwargs = case.arguments(0, torch.device("cpu"))
        args = [torch.ones_like(t) for t in args]
        thin_out(op, args)
        names = ("stride", "padding", "dilation", "groups")
        terms = magnitude(op, *args[:2], **{name: kwargs[name] for name in names if name in kwargs})
        assert terms.max() == 1 and terms.min() in (0, 1)


def test_the_reference_is_of_the_operands_as_they_were(call):
    assert not finding(call, solves_another_problem).verdict.ok


def test_operands_are_restored(call):
    pristine = [t.clone() for t in call]
    finding(call, spoils_an_operand)
    assert all(torch.equal(a, b) for a, b in zip(call, pristine))


def test_a_result_of_integers_starts_as_a_value_no_product_takes():
    output = Output(torch.empty(3, 4, dtype=torch.int32))
    assert (output.tensor == torch.iinfo(torch.int32).min).all()
    output.tensor[:2] = 7
    assert output.left(output.tensor) == 4
    assert output.escaped() == 0


def test_poison_comes_back():
    output = Output(torch.empty(3, 4))
    output.tensor.fill_(1.0)
    output.poison()
    assert output.left(output.tensor) == 12


def test_the_result_keeps_strides_and_alignment():
    like = torch.empty(2, 3, 4, 5).to(memory_format=torch.channels_last)
    tensor = Output(like).tensor
    assert tensor.stride() == like.stride()
    assert tensor.data_ptr() % 16 == 0
    assert tensor.storage_offset() == BAND
