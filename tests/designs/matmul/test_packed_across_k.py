"""fp32 in IEEE arithmetic with operands that lie along K: Triton's designs may transpose them once, before the product.
Products of small integers are exact, so results must be equal."""

import pytest
import torch

import tritonkernels.launch
from tests.harness import DEVICES, assert_poisoned_outside, available_on, poisoned, prepare, short, small_integers
from tritonkernels.target import Target

LIBRARY, H200 = tritonkernels.launch.LIBRARY, Target.named("h200")
DESIGNS = ("pipelined", "split_k")


def configs(name, problem, target=H200):
    """The configs that pack."""
    design = next(design for design in LIBRARY.designs("matmul") if design.name == name)
    return design, [c for c in design.configs(problem, target) if c.kwargs["PACK_A"] or c.kwargs["PACK_B"]]


def operand(rows, columns, layout, batch, device):
    """An operand of small integers; "shared": one matrix for the whole batch."""
    shape = (columns, rows) if layout == "col" else (rows, columns)
    matrix = small_integers(*(() if layout == "shared" else batch), *shape, device=device)
    return matrix.mT if layout == "col" else matrix.expand(*batch, *shape)


@short(lambda batch, layouts: not batch or "shared" in layouts)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("batch", ((), (3,)), ids=str)
@pytest.mark.parametrize("layouts", ("row row", "row col", "col col", "shared col", "row shared"))
@pytest.mark.parametrize("name", DESIGNS)
def test_results_are_exact(name, layouts, batch, device):
    available_on(LIBRARY, device)
    a_layout, b_layout = layouts.split()
    for m, n, k in ((65, 67, 35), (1, 40, 9), (64, 3, 300)):
        a, b = operand(m, k, a_layout, batch, device), operand(k, n, b_layout, batch, device)
        bias, (out, buffer, where) = small_integers(n, device=device), poisoned((*batch, m, n), torch.float32, device)
        call = prepare("matmul", a, b, bias=bias, activation="relu", precision="ieee", out=out)
        design, found = configs(name, call.problem, LIBRARY.target(out.device))
        assert found, "at least one operand lies along K"
        for config in found[-1:]:
            out.fill_(torch.nan)
            for part in call.parts:
                for launch in design.launches(call.problem, config, *part):
                    launch.run()
            assert torch.equal(out, (a.double() @ b.double() + bias).relu().float())
            assert_poisoned_outside(buffer, where)


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("layouts, copies", (("row row", 1), ("row col", 2), ("col col", 1), ("col row", 0)))
def test_the_kernel_reads_along_m_and_n(name, layouts, copies):
    """Only what lies along K is copied, and the model counts that."""
    a, b = (torch.empty(96, 96, device="meta") for _ in "ab")
    a, b = (matrix.t() if layout == "col" else matrix for matrix, layout in zip((a, b), layouts.split()))
    call = prepare("matmul", a, b, precision="ieee")
    design, found = configs(name, call.problem)
    assert bool(found) == (copies > 0)
    for config in found[:1]:
        launches = list(design.launches(call.problem, config, *call.parts[0]))
        packs = [launch for launch in launches if launch.name == "pack"]
        kernel = launches[copies]
        assert len(packs) == copies == sum(work.flops == 0 for work in design.work(call.problem, config, H200)[:copies])
        assert kernel.values["a"].row == 1 and kernel.values["b"].col == 1
