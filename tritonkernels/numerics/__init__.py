"""The error bound of every result, shared by docstrings, tests and `perf compare`.

docs/numerics.md derives it and names the papers.
"""

from .bounds import Bound, as_exact_from, error_bound, gamma
from .modes import ACTIVATIONS, COARSER, FP8_SLICE, MODES, REFUSED, SLICE, STORES, Mode, activated, mode_of
from .references import magnitude, reference
from .verdict import Expected, Verdict, judge

__all__ = [
    "ACTIVATIONS",
    "COARSER",
    "FP8_SLICE",
    "MODES",
    "REFUSED",
    "SLICE",
    "STORES",
    "Bound",
    "Expected",
    "Mode",
    "Verdict",
    "activated",
    "as_exact_from",
    "error_bound",
    "gamma",
    "judge",
    "magnitude",
    "mode_of",
    "reference",
]
