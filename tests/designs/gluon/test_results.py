"""Results of gemm's Gluon designs, which the interpreter cannot run: on numpy, with copies that land as late as they may."""

import pytest
import torch

from tests import gluon_threads
from tests.designs.gluon.operands import DESIGNS
from tests.harness import assert_poisoned_outside, padded, poisoned, prepare, small_integers, step_two, transposed
from tritonkernels.launch import LIBRARY
from tritonkernels.target import Target

H200 = Target.named("h200")
PROBLEMS = {  # sizes, and how A and B lie
    "rows": ((140, 132, 70), padded, padded),
    "columns": ((140, 132, 70), transposed, transposed),
    "aligned": ((64, 144, 80), transposed, padded),
    "every other": ((20, 68, 33), step_two, step_two),
    "no K": ((20, 20, 0), padded, padded),
}
CONFIGS = {"async_copy": (2, 3, 6, 7, 8, 9, 10, 11, 13, 14)}  # all stages of the tiles of less than 128 x 256
CASES = [(design, index) for design in DESIGNS for index in CONFIGS.get(design, (0,))]


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("name, index", CASES)
def test_results_are_exact(name, index, kind):
    """Operands of small whole numbers."""
    (m, n, k), a_lies, b_lies = PROBLEMS[kind]
    a, b, c = a_lies(small_integers(m, k)), b_lies(small_integers(k, n)), small_integers(m, n)
    out, buffer, where = poisoned((m, n), torch.float32, "cpu")
    call = prepare("gemm", a, b, c, alpha=2.0, beta=0.5, out=out)
    design = {design.name: design for design in LIBRARY.designs("gemm")}[name]
    config = list(design.configs(call.problem, H200))[index]
    *packs, launch = design.launches(call.problem, config, *call.parts[0])
    for pack in packs:
        pack.run()
    gluon_threads.run(launch)
    assert torch.equal(out, (2 * a.double() @ b.double() + c.double() / 2).float())
    assert_poisoned_outside(buffer, where)
