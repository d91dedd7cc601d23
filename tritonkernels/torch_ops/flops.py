"""FLOP formulas for torch.utils.flop_counter, registered when a user imports that: it imports Triton."""

import importlib.abc
import importlib.util
import sys

COUNTER = "torch.utils.flop_counter"

_formulas = {}  # operator -> formula, until the counter is imported


def register(operator, formula):
    """formula(*args, out_val, **kwargs) is the FLOP count of a call of the operator (all overloads)."""
    _formulas[operator] = formula
    if COUNTER in sys.modules:
        _hand_over()
    elif _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def _hand_over():
    from torch.utils.flop_counter import register_flop_formula

    while _formulas:
        operator, formula = _formulas.popitem()
        register_flop_formula(operator, get_raw=True)(formula)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the counter as without it, and hands over once it is loaded."""

    def find_spec(self, name, path=None, target=None):
        if name != COUNTER:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            _hand_over()

        spec.loader.exec_module = exec_module
        return spec


_finder = _Finder()
