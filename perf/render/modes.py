"""How each mode of numerics.MODES rounds and the error bound that follows, as the table of docs/numerics.md."""

import math

import torch

from tritonkernels.numerics import COARSER, MODES, error_bound
from tritonkernels.operations.matmul.prepare import ACCEPTS, prepare
from tritonkernels.problem import PACKED

from ..show import table

ASKED = {mode: asked for asked, mode in COARSER.items()}  # mode -> (precision, accumulate), where these differ
DTYPES = {precision: dtype for dtype, (precisions, _) in ACCEPTS.items() for precision in precisions}


def modes(k):
    """A row for all modes that round alike; the bound is that of sums of k products, relative to S."""
    rows = {}
    for name in MODES:
        rows.setdefault(_row(name, int(k)), []).append(f"`{name}`")
    headings = ["mode", "inputs v", "sums u", "coarse sums u'", "products of planes", "corrections w", "left out d"]
    return table.markdown([*headings, f"bound at K = {k}"], [[", ".join(names), *row] for row, names in rows.items()])


def _row(name, k):
    mode, bound = MODES[name], _bound(name, k)
    rounding = [_powers(x) for x in (mode.inputs, mode.accumulate, mode.coarse)]
    planes = [str(mode.products), _powers(mode.corrections), _powers(mode.dropped)]
    return *rounding, *planes, f"2^{math.log2(bound):.1f}" if bound else "0"


def _bound(name, k):
    precision, accumulate = ASKED.get(name, (name, None))
    stored = k // PACKED.get(precision, 1)
    a, b = (torch.empty(shape, dtype=DTYPES[precision], device="meta") for shape in ((1, stored), (stored, 1)))
    return error_bound(prepare(a, b, precision=precision, accumulate=accumulate).problem).relative


def _powers(x):
    """2.0**-7 + 2.0**-13 as "2^-7 + 2^-13"."""
    terms = []
    while x:
        exponent = math.frexp(x)[1] - 1
        terms.append(f"2^{exponent}")
        x -= 2.0**exponent
    return " + ".join(terms) or "0"
