"""The table of what copies gain: of products with a B by columns, where both kinds of configs were timed."""

from types import SimpleNamespace

import pytest
import torch

from perf.render import packing
from tests.harness import prepare


def row(times, n=64, column_major=True, torch_us=10.0, **options):
    a, b = torch.empty(n, n, device="meta"), torch.empty(n, n, device="meta")
    problem = prepare("matmul", a, b.t() if column_major else b, **({"precision": "ieee"} | options)).problem
    found = {"cuda_reference": [("cuda_cores", config, us, None) for config, us in times]}
    return SimpleNamespace(problem=problem, torch=("matmul", torch_us) if torch_us else None, times=found)


@pytest.fixture
def table(monkeypatch):
    def of(*rows):
        monkeypatch.setattr(packing.measured, "swept", lambda folder, op: rows)
        return [line.strip("| ").split(" | ") for line in packing.packed("matmul", "h100").splitlines()[2:]]

    return of


def test_both_kinds_are_compared_with_torch(table):
    both = row([({"BM": 64}, 20.0), ({"BM": 32}, 40.0), ({"BM": 64, "PACKED": True}, 5.0)])
    slower = row([({"BM": 64}, 5.0), ({"PACK_A": True, "PACK_B": False}, 50.0)])
    large = row([({"PACK_A": False, "PACK_B": False}, 10.0), ({"PACK_A": False, "PACK_B": True}, 8.0)], n=2048)
    assert table(both, slower, large) == [
        ["CUDA", "of 10 GFLOP and more", "1.00", "1.25", "1.25", "1"],
        ["CUDA", "smaller", "1.00", "2.00", "4.00", "2"],
    ]


def test_others_are_left_out(table):
    times = [({"BM": 64}, 20.0), ({"BM": 64, "PACKED": True}, 5.0)]
    assert table(row(times[:1]), row(times[1:])) == [], "one kind only"
    assert table(row(times, column_major=False), row(times, precision="tf32"), row(times, torch_us=None)) == []
    assert table(row(times, activation="relu")) == [], "of another kind"
