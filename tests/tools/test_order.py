"""The order of the tests: which takes long goes early, in the run of each worker."""

import pytest

from tests.conftest import long_ones_early


class Item:
    def __init__(self, name, *markers):
        self.name, self.markers = name, markers

    def iter_markers(self, name):
        return [marker for marker in self.markers if marker.name == name]


def dealt(items, workers):
    """As pytest-xdist's worksteal does at first."""
    items, runs = list(items), []
    for left in range(workers, 0, -1):
        count = len(items) // left
        runs.append(items[:count])
        del items[:count]
    return runs


@pytest.mark.parametrize("workers", (1, 2, 3, 15))
@pytest.mark.parametrize("long, others", [(0, 7), (5, 40), (31, 300), (40, 1)])
def test_each_run_begins_with_its_share_of_the_long_ones(workers, long, others):
    items = [Item(i, *[pytest.mark.long.mark] * (i < long)) for i in range(long + others)][::-1]
    ordered = long_ones_early(items, workers)
    assert sorted(item.name for item in ordered) == list(range(long + others)), "each once"
    of_runs = [[item.name < long for item in run] for run in dealt(ordered, workers)]
    assert all(run == sorted(run, reverse=True) for run in of_runs)
    if others > long:
        assert max(map(sum, of_runs)) - min(map(sum, of_runs)) <= 1
