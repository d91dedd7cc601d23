"""Fixtures of the tests of operations."""

import pytest

from tritonkernels import plans


@pytest.fixture
def repeats_of(monkeypatch):
    """repeats_of(library), which starts without plans: for each later call with a plan, whether it was repeated from it."""

    def of(library):
        monkeypatch.setattr(library.plans, "_plans", {})
        calls, repeat = [], plans.Plan.repeat

        def counted(plan, tensors):
            result = repeat(plan, tensors)
            calls.append(result is not None)
            return result

        monkeypatch.setattr(plans.Plan, "repeat", counted)
        return calls

    return of
