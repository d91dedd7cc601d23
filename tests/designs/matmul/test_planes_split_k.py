"""The Triton design planes with splits of K: what programs that share a tile compute is what one of them would."""

import math

import pytest
import torch

from tests.designs.matmul.exact import computed, of_four_parts
from tests.designs.matmul.test_planes import MODES, check_infinities_and_nan
from tests.designs.matmul.test_refusals_of_fp16x3 import across, product
from tests.harness import DEVICES, available_on, bits, prepare, random, run_checked, short
from tritonkernels.launch import LIBRARY
from tritonkernels.operations.gemm.split_counts import ALONE
from tritonkernels.target import Target

ON = pytest.mark.parametrize("device", DEVICES)
ALL_MODES = pytest.mark.parametrize("precision", MODES)
SLICE = 64  # a whole number of slices of every config


def launched(device, splits, a, b, **options):
    """(the product's launch, the result) of so many splits."""
    available_on(LIBRARY, device)
    design = {d.name: d for d in LIBRARY.designs("matmul")}["planes"]
    a, b = a.to(device), b.to(device)
    legal = design.configs(prepare("matmul", a, b, **options).problem, LIBRARY.target(a.device))
    config = next(config for config in legal if config.kwargs["SPLIT_K"] == splits)
    return computed(design, config, a, b, **options)


@short(lambda k, splits: (k, splits) in ((300, 4), (40, 2)))
@ON
@ALL_MODES
@pytest.mark.parametrize("splits", [2, 4])
@pytest.mark.parametrize("k", [0, 40, 300, 512])
def test_splits_are_added(device, precision, splits, k):
    """300: the last of four has no slice, and the one before it fewer than the others."""
    available_on(LIBRARY, device)
    a, b, c = (random(*shape, device=device) for shape in ((2, 37, k), (2, k, 45), (2, 37, 45)))
    options = {"c": c, "alpha": -1.5, "beta": 0.5, "bias": random(45, device=device), "activation": "relu"}
    given = {"precision": precision, "config": {"SPLIT_K": splits}}
    first, again = (run_checked(LIBRARY, "matmul", "planes", a, b, **options, **given)[0] for _ in range(2))
    assert torch.equal(bits(first), bits(again))


@ON
@ALL_MODES
def test_infinities_of_one_split(device, precision):
    check_infinities_and_nan(LIBRARY, device, "planes", precision, {"SPLIT_K": 2})


@ON
def test_alpha_of_zero_reads_neither_operand(device):
    available_on(LIBRARY, device)
    a, b, c = (torch.full((40, 40), value, device=device) for value in (math.nan, math.inf, 3.0))
    options = {"precision": "fp16x3", "alpha": 0.0, "beta": 2.0, "config": {"SPLIT_K": 2}}
    result, _ = run_checked(LIBRARY, "matmul", "planes", a, b, c=c, **options)
    assert (result == 6).all()


@ON
@ALL_MODES
def test_sums_are_added_in_the_order_of_k_and_counters_left_at_zero(device, precision):
    a, b = (t.float() for t in of_four_parts(SLICE))
    launch, result = launched(device, 4, a.expand(70, -1), b[:, None].expand(-1, 45), precision=precision)
    assert result.unique().tolist() == [2.0]
    assert launch.grid[1] == 4 and not launch.values["counters"].any()


@ON
def test_losses_in_one_split_are_judged_by_the_sum_of_all(device):
    """The small element counts as lost. Its split's own sum would be refused; that of all is large enough."""
    row, column = torch.zeros(4 * SLICE), torch.zeros(4 * SLICE)
    row[0], row[SLICE] = 1.0, 1e-13
    column[0] = column[SLICE] = 1.0
    for large, refused in ((1.0, False), (0.0, True)):
        column[0] = large
        result = product(LIBRARY, device, *across(row.tolist(), column.tolist()), config={"SPLIT_K": 4})
        assert result[-1, -1].isnan() == refused and result.isnan().sum() == refused


@ON
def test_losses_of_all_splits_are_counted_together(device):
    row, column = torch.zeros(2 * SLICE), torch.zeros(2 * SLICE)
    row[0], row[SLICE] = 1e30, 1e-30
    column[0], column[SLICE] = 1e-30, 1e30
    result = product(LIBRARY, device, *across(row.tolist(), column.tolist()), config={"SPLIT_K": 2})
    assert result[-1, -1].isnan() and result.isnan().sum() == 1


@ALL_MODES
@pytest.mark.parametrize("name", ["a100", "h200", "b200", "rtx_5090"])
def test_one_program_adds_the_splits_of_a_tile(precision, name):
    """256 KB of partial sums at most; without splits first, so that this is the default where no other is faster."""
    design = {d.name: d for d in LIBRARY.designs("matmul")}["planes"]
    a, b = torch.empty(32, 50808, device="meta"), torch.empty(50808, 640, device="meta")
    call = prepare("matmul", a, b, precision=precision)
    found = [config.kwargs for config in design.configs(call.problem, Target.named(name))]
    assert found[0]["SPLIT_K"] == 1 and {config["SPLIT_K"] for config in found} >= {1, 2, 4, 8, 16, 32}
    assert all(4 * c["SPLIT_K"] * c["BLOCK_M"] * c["BLOCK_N"] <= ALONE for c in found)
