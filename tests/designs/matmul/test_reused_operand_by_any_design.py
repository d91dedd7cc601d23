"""A Split for designs that read B itself: they have the bits of the plain call, and the fastest of all is chosen."""

import dataclasses
import itertools

import pytest
import torch

from tests.designs.matmul.test_planes import BOTH
from tests.designs.matmul.test_reused_operand import ON, PACKAGES
from tests.harness import available_on, bits, prepare, random
from tritonkernels.design import as_dict
from tritonkernels.operations.matmul.schemes import SCHEMES
from tritonkernels.target import Target


@ON
@BOTH
@pytest.mark.parametrize("rows", (1, 3))
@pytest.mark.parametrize("precision", ("tf32x3", "fp32"))
def test_the_bits_of_the_plain_product(library, device, rows, precision):
    """Every design, lessons and other operations' designs, too."""
    available_on(library, device)
    package = PACKAGES[library.package]
    a, b, bias = random(rows, 300, device=device), random(300, 40, device=device), random(40, device=device)
    s = package.split(b, precision=precision)
    options = {"precision": precision, "bias": bias, "alpha": 0.5}
    problem, target = prepare("matmul", a, b, **options).problem, library.target(a.device)
    named = [d for d in library.designs("matmul") if d.refuses(problem, target) is None and any(d.configs(problem, target))]
    assert {d.reads_split for d in named} == {True, False} and len(named) > 3
    for design in named:
        config = as_dict(next(iter(design.configs(problem, target))))
        result, plain = (package.matmul(a, of, design=design, config=config, **options) for of in (s, b))
        assert torch.equal(bits(result), bits(plain)), design


@BOTH
@pytest.mark.parametrize("precision", SCHEMES)
def test_never_predicted_to_be_slower(library, precision):
    """For few rows the choice is that of B itself; for many it is the planes."""
    target, of_rows = Target.named("h200"), {}
    for (n, k), m in itertools.product(((4096, 4096), (1000, 16384), (512, 300)), (1, 4, 16, 64, 500, 2048)):
        a, b = torch.empty(m, k, device="meta"), torch.empty(n, k, device="meta").t()
        plain = prepare("matmul", a, b, precision=precision).problem
        choices = [library.ranking(problem, target)[0] for problem in (plain, dataclasses.replace(plain, b_split=True))]
        assert choices[1].cost <= choices[0].cost, choices
        of_rows.setdefault(m, set()).add(choices[1].design.reads_split)
    assert of_rows[1] == {False} and True in of_rows[2048]
