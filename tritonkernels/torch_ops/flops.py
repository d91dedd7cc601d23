"""FLOP formulas for torch.utils.flop_counter, registered when a user imports that: it imports Triton."""

from .on_import import on_import


def register(operator, formula):
    """formula(*args, out_val, **kwargs) is the FLOP count of a call of the operator (all overloads)."""

    def hand_over():
        from torch.utils.flop_counter import register_flop_formula

        register_flop_formula(operator, get_raw=True)(formula)

    on_import("torch.utils.flop_counter", hand_over)
