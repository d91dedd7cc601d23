"""fp16x3 is right or NaN: NaN where its rule (docs/numerics.md) says so, as for 1e30 next to 1e-30, never on usual operands."""

import importlib
import math

import pytest
import torch

from tests.designs.matmul.test_planes import MODES
from tests.harness import DEVICES, LIBRARIES, available_on, prepare, random, run_checked
from tritonkernels import numerics

BOTH = pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
ON = pytest.mark.parametrize("device", DEVICES)


def product(library, device, a, b, precision="fp16x3", config=None, **options):
    """By planes; where there are persistent_planes, these refuse the same. A config is of planes."""
    available_on(library, device)
    options = {name: value.to(device) if isinstance(value, torch.Tensor) else value for name, value in options.items()}
    operands, found = (a.to(device), b.to(device)), []
    for design in library.designs("matmul"):
        problem, target = (
            prepare("matmul", *operands, precision=precision, **options).problem,
            library.target(operands[0].device),
        )
        own = config if design.name == "planes" else None
        if design.name in ("planes", "persistent_planes") and design.refuses(problem, target) is None:
            result, _ = run_checked(library, "matmul", design.name, *operands, precision=precision, config=own, **options)
            found.append(result.cpu())
    assert all(torch.equal(result.isnan(), found[0].isnan()) for result in found)
    return found[0]


def across(row, column):
    """(A, B): `row` is the last row of A and `column` the last column of B; all others are ordinary."""
    a, b = random(3, len(row)), random(len(column), 4)
    a[-1], b[:, -1] = torch.tensor(row), torch.tensor(column)
    return a, b


@BOTH
@ON
@pytest.mark.parametrize("precision", MODES)
@pytest.mark.parametrize("row, column", [((1e30, 1e-30), (1e-30, 1e30)), ((1e-30, 1e30), (1e30, 1e-30))])
def test_large_next_to_small_is_refused_by_fp16x3_and_right_in_other_modes(library, device, precision, row, column):
    result = product(library, device, *across(row, column), precision)
    if precision == "fp16x3":
        assert result[-1, -1].isnan() and result.isnan().sum() == 1
    else:
        assert result[-1, -1].item() == pytest.approx(2.0, rel=1e-6)


@BOTH
@ON
@pytest.mark.parametrize("turned", [False, True])
def test_one_operand_s_losses_are_enough(library, device, turned):
    """The row's 1e-30 is multiplied by a large element of an ordinary column, and its largest element by zero."""
    a, b = across((1e30, 1e-30, 0.0), (0.0, 3.0, 2.0))
    result = product(library, device, *((b.mT.contiguous(), a.mT.contiguous()) if turned else (a, b)))
    assert result[-1, -1].isnan() and result.isnan().sum() == 1


@BOTH
@ON
def test_losses_are_counted_over_all_of_k(library, device):
    """Each of 200 elements is below 2^-39 of the largest and within the bound alone; all together are not."""
    row, column = torch.full((200,), 1.5 * 2.0**-40), torch.full((200,), 1.0)
    row[70], column[0] = 1.0, 0.0
    for first, refused in ((2.0**-28, False), (2.0**-31, True)):
        column[70] = first
        result = product(library, device, *across(row.tolist(), column.tolist()))
        assert result[-1, -1].isnan().item() == refused and result.isnan().sum() == refused


@BOTH
@ON
@pytest.mark.parametrize("exponent", range(-45, -25))
def test_products_of_small_elements_are_right_or_refused(library, device, exponent):
    """The product of low planes is left out, and theirs is relatively large; the large elements are multiplied by zeros."""
    small = [1.5 * 2.0**exponent, 1.25 * 2.0**exponent, 1.001 * 2.0**exponent]
    result = product(library, device, *across((1.0, 0.0, *small), (0.0, 1.0, *small[::-1])))
    assert result[-1, -1].isnan().item() == (exponent < -32) and result.isnan().sum() <= 1


@BOTH
@ON
@pytest.mark.parametrize("turned", [False, True])
def test_a_sum_that_cancels_is_not_refused_where_all_its_products_are_large(library, device, turned):
    """The loss is small relative to |A||B|, as the smallest |element| of the dense operand shows."""
    row, column = torch.full((200,), 1e-20), torch.full((200,), 1.0)
    row[3], row[70], column[70] = 1.0, 1.0, -1.0
    a, b = across(row.tolist(), column.tolist())
    result = product(library, device, *((b.mT.contiguous(), a.mT.contiguous()) if turned else (a, b)))
    assert result.isfinite().all() and result[-1, -1].abs() < 2.0**-30


@BOTH
@ON
def test_a_refused_product_is_nan_after_every_epilogue(library, device):
    a, b = across((1e30, 1e-30), (1e-30, 1e30))
    c, bias = random(3, 4), random(4)
    for options in ({"alpha": 1e-3}, {"beta": 2.0, "c": c}, {"bias": bias}, {"activation": "relu"}):
        result = product(library, device, a, b, **options)
        assert result[-1, -1].isnan() and result.isnan().sum() == 1
    assert product(library, device, a, b, alpha=0.0, beta=1.0, c=c).equal(c), "alpha = 0 reads neither operand"


def ordinary(kind):
    a, b = random(40, 300), random(300, 30)
    if kind.startswith("softmax"):
        a = torch.softmax(float(kind.split()[1]) * a, dim=1)
    if kind.endswith("padded"):
        b[200:] = 0
    if kind == "sparse":
        a, b = a * (torch.rand(a.shape) < 0.1), b * (torch.rand(b.shape) < 0.1)
    if kind == "denormal":
        a = a * 2.0**-130
    if kind == "zeros":
        a[3:20], b[:, ::2] = 0, 0
    if kind == "zeros and losses":  # 0 times anything is 0
        a[:5], b[1:, 7], b[0, 7] = 0, 1e-30, 1e30
    if kind == "wide":
        a, b = (t * torch.exp2(torch.empty(t.shape).uniform_(-20, 20)) for t in (a, b))
    if kind == "one element":
        a, b = a[:, :1] * 1e30, b[:1] * 1e-30
    return a, b


SOFTMAXES = ("softmax 1", "softmax 4", "softmax 10", "softmax 4 padded")
KINDS = ("normal", *SOFTMAXES, "sparse", "denormal", "zeros", "wide", "one element")


@BOTH
@ON
@pytest.mark.parametrize("kind", KINDS)
def test_ordinary_operands_are_never_refused(library, device, kind):
    assert product(library, device, *ordinary(kind)).isfinite().all()


@BOTH
@ON
def test_zero_times_lost_elements_is_zero(library, device):
    a, b = ordinary("zeros and losses")
    result = product(library, device, a, b)
    assert (result[:5] == 0).all() and result[5:, [0, 6, 8]].isfinite().all()


@BOTH
@ON
def test_each_matrix_of_a_batch_has_its_own_losses(library, device):
    a, b = random(3, 40, 70), random(3, 70, 30)
    a[1, 5, 1:], b[2, 1:, 7] = 1e-30, 1e-30
    b[1, 0], a[2, :, 0] = 0.0, 0.0
    refused = product(library, device, a, b).isnan()
    assert refused[1, 5].all() and refused[2, :, 7].all() and refused.sum() == 30 + 40


@BOTH
@ON
def test_infinities_stay_where_elements_are_lost(library, device):
    a, b = across((math.inf, 1e30, 1e-30), (1.0, 1e-30, 1e30))
    a[0, 0] = math.nan
    result = product(library, device, a, b)
    assert result[-1, -1] == math.inf and result[0].isnan().all() and result[1].isfinite().all()


@BOTH
@ON
def test_a_repeated_call_computes_its_own_ranges(library, device):
    available_on(library, device)
    package = importlib.import_module(library.package)
    a, b = (t.to(device) for t in across((1e30, 1e-30), (1e-30, 1e30)))
    for ordinary in (False, False, False, True):
        if ordinary:
            a[-1], b[:, -1] = 1.0, 3.0
        result = package.matmul(a, b, precision="fp16x3", design="planes")
        assert numerics.judge(prepare("matmul", a, b, precision="fp16x3").problem, result, a, b, precision="fp16x3").ok
        assert result.isfinite().all() == ordinary


@pytest.mark.parametrize("finite", [2.0, 1.9, 0.0, math.inf])
def test_the_judge_accepts_nan_only_where_the_rule_refuses(finite):
    def judge(value, a, b, precision="fp16x3"):
        problem = prepare("matmul", a, b, precision=precision).problem
        return numerics.judge(problem, torch.tensor([[value]]), a, b, precision=precision).ok

    a, b = torch.tensor([[1e30, 1e-30]]), torch.tensor([[1e-30], [1e30]])
    assert judge(finite, a, b) == (finite == 2.0)
    assert judge(math.nan, a, b) and not judge(math.nan, a, b, "bf16x6")
    assert not judge(math.nan, torch.tensor([[1e30, 1.0]]) / 1e20, torch.tensor([[1.0], [3.0]])), "it spans less than 2^37"
