"""How exact a result must be: the one error bound that docstrings, tests and `perf compare` share.

docs/numerics.md derives it, with the papers that it stands on.
"""

from .bounds import Bound, error_bound, gamma
from .modes import ACTIVATIONS, FP8_SLICE, MODES, REFUSED, SLICE, STORES, Mode, mode_of
from .references import magnitude, reference
from .verdict import Verdict, judge

__all__ = [
    "ACTIVATIONS",
    "FP8_SLICE",
    "MODES",
    "REFUSED",
    "SLICE",
    "STORES",
    "Bound",
    "Mode",
    "Verdict",
    "error_bound",
    "gamma",
    "judge",
    "magnitude",
    "mode_of",
    "reference",
]
