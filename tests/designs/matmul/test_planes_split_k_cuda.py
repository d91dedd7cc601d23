"""The splits of K of the CUDA design planes: none is empty, they are added in order, and what follows sees the sum of all."""

import math

import pytest
import torch

from cuda_reference.launch import LIBRARY
from cuda_reference.matmul import planes
from cuda_reference.matmul.parts import splits
from cuda_reference.trace import trace
from tests.covering import alone
from tests.designs.matmul.exact import OF_GROUPS, check_order, computed, of_four_parts
from tests.designs.matmul.test_planes import MODES, special_as_in_float64
from tests.designs.matmul.test_refusals_of_fp16x3 import across, product
from tests.harness import DEVICES, available_on, bits, prepare, random, run_checked, short, small_integers
from tritonkernels.target import Target

SLICE = 32
BIG, MIDDLE, ROWS, COLUMNS = ({"BM": bm, "BN": bn} for bm, bn in ((128, 128), (64, 64), (32, 64), (64, 32)))
of_modes = pytest.mark.parametrize("precision", MODES)
of_tiles = pytest.mark.parametrize("tile", (MIDDLE, ROWS, COLUMNS), ids=("middle", "few rows", "few columns"))
on_devices = pytest.mark.parametrize("device", DEVICES)


def config_of(tile, splits):
    """The config in any problem of few rows and columns, which need not have that many splits."""
    problem = prepare("matmul", torch.empty(32, 64), torch.empty(64, 32), precision="fp16x3").problem
    configs = planes.DESIGN.configs(problem, Target.named("simt"))
    return next(config for config in configs if tile.items() <= config.items()) | {"SPLIT_K": splits}


@pytest.fixture(autouse=True)
def poisoned_workspace(monkeypatch):
    partial_sums = splits.partial_sums
    monkeypatch.setattr(splits, "partial_sums", lambda *sizes: partial_sums(*sizes).fill_(torch.nan))


@of_modes
@pytest.mark.parametrize("target", ("a100", "rtx_4090", "h200", "rtx_5090"))
def test_configs_fit_the_target_and_begin_with_one_split(target, precision):
    call = prepare(
        "matmul", *(torch.empty(*shape, device="meta") for shape in ((28, 208816), (208816, 64))), precision=precision
    )
    configs = planes.DESIGN.configs(call.problem, Target.named(target))
    splits = [config["SPLIT_K"] for config in configs]
    assert splits == sorted(splits) and {1, 2, 128} <= set(splits)
    for config in configs:
        *_, launch = planes.DESIGN.launches(call.problem, config, *call.parts[0])
        assert launch.shared_bytes + 1024 <= Target.named(target).shared_per_block


@of_tiles
@of_modes
@pytest.mark.parametrize("k, splits", [(0, 1), (8, 1), (40, 2), (65, 3), (200, 4), (300, 4), (330, 4)])
def test_no_split_is_empty(precision, tile, k, splits):
    """With 1, 1, 2, 3, 7, 10 and 11 slices."""
    a, b = small_integers(72, k), small_integers(k, 136)
    launch, result = computed(planes.DESIGN, config_of(tile, 4), a, b, precision=precision)
    assert launch.grid[1] == splits and torch.equal(result.double(), a.double() @ b.double())


@pytest.mark.parametrize("precision", ("tf32x3", "fp16x3"))
def test_warps_with_two_parts_of_a_tile(precision):
    a, b = random(140, 300), random(300, 150)
    run_checked(LIBRARY, "matmul", "planes", a, b, config=BIG | {"SPLIT_K": 4}, precision=precision)


@of_modes
@on_devices
def test_splits_are_added_in_the_order_of_k(device, precision):
    """The next call finds the counters at zero."""
    check_order_of_parts(device, precision, 4, 2, of_four_parts(SLICE, device=device))


@pytest.mark.parametrize("own", OF_GROUPS.values(), ids=OF_GROUPS)
@on_devices
def test_many_splits_are_added_in_groups(device, own):
    check_order_of_parts(device, "fp16x3", 28, 2 * (1 + 4), of_four_parts(SLICE, 28, own, device))


def check_order_of_parts(device, precision, splits, count, operands):
    """For two tiles."""
    available_on(LIBRARY, device)
    a, b = (t.float() for t in operands)
    config = config_of(MIDDLE, splits)
    launch, result = computed(planes.DESIGN, config, a.repeat(70, 1), b.repeat(40, 1).t(), precision=precision)
    counters = launch.arguments[6]
    assert result.unique().tolist() == [2.0] and len(counters) == count and not counters.any()


@of_modes
@on_devices
@pytest.mark.parametrize("k", (150, 512))
@alone("k")
def test_every_matrix_of_a_batch_has_its_own_sums(device, precision, k):
    """And all that follows them is done once; the bits are always the same."""
    available_on(LIBRARY, device)
    a, b, c, bias = (random(*shape, device=device) for shape in ((3, 70, k), (k, 70), (3, 70, 70), (70,)))
    options = {"c": c, "beta": 0.5, "bias": bias, "activation": "silu", "precision": precision}
    results = [run_checked(LIBRARY, "matmul", "planes", a, b, config=MIDDLE | {"SPLIT_K": 4}, **options)[0] for _ in "ab"]
    assert torch.equal(*map(bits, results))


@short(lambda order: order == "2")
@pytest.mark.parametrize("order", ["1", "2"])
def test_any_order_of_blocks(monkeypatch, order):
    check_order(monkeypatch, order, "planes", MIDDLE | {"SPLIT_K": 4}, torch.float32, precision="fp16x3")


@of_modes
@on_devices
def test_infinities_and_nan_of_one_split(device, precision):
    """In a split of 64 of K: alone, with others in the same split, and with their opposites in another."""
    available_on(LIBRARY, device)
    a, b = random(9, 250, device=device), random(250, 11, device=device)
    a[0, 3], a[1, 249], a[2, 70], a[3, 130], a[3, 131] = math.inf, -math.inf, math.nan, math.inf, -math.inf
    a[4, 5], a[4, 200], a[5, 5], a[5, 200] = math.inf, -math.inf, math.inf, math.inf
    b[:, 0], b[70, 10] = b[:, 0].abs(), math.inf
    b[3, :4] = torch.tensor([2.0**-149, -(2.0**-149), 0.0, 1e-30], device=device)
    result, _ = run_checked(LIBRARY, "matmul", "planes", a, b, config={"SPLIT_K": 4}, precision=precision)
    assert special_as_in_float64(result, a, b) > 50 and result[4, 0].isnan() and result[5, 0] == math.inf


@on_devices
@pytest.mark.parametrize("last", (1, 100, 199))
def test_a_refusal_by_elements_of_different_splits(device, last):
    row, column = torch.zeros(2, 200)
    row[0], row[last], column[0], column[last] = 1e30, 1e-30, 1e-30, 1e30
    result = product(LIBRARY, device, *across(row.tolist(), column.tolist()), config={"SPLIT_K": 4})
    assert result[-1, -1].isnan() and result.isnan().sum() == 1


@on_devices
@pytest.mark.parametrize("first, refused", ((2.0**-28, False), (2.0**-31, True)))
def test_the_sum_of_all_splits_decides_on_a_refusal(device, first, refused):
    """As in test_losses_are_counted_over_all_of_k. The sums of all splits but that of element 70 are below the limit."""
    row, column = torch.full((200,), 1.5 * 2.0**-40), torch.full((200,), 1.0)
    row[70], column[0], column[70] = 1.0, 0.0, first
    result = product(LIBRARY, device, *across(row.tolist(), column.tolist()), config={"SPLIT_K": 4})
    assert result[-1, -1].isnan().item() == refused and result.isnan().sum() == refused


@of_tiles
def test_accesses(tile):
    """No races; slices and partial sums without bank conflicts or half-used sectors."""
    call = prepare("matmul", random(64, 320), random(320, 64), precision="bf16x6")
    *splits, launch = planes.DESIGN.launches(call.problem, config_of(tile, 3), *call.parts[0])
    for split in splits:
        split.run()
    (traced,) = trace(launch)
    assert traced.races == ()
    wide = [access for access in traced.accesses if access.requests > 1]
    assert [str(access) for access in wide if access.units != access.ideal_units] == []
