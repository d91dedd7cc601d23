"""Gluon designs refuse where Gluon does not run, and the package chooses another design."""

import pytest
import torch

import tritonkernels
from tests.designs.gluon.operands import DESIGNS
from tritonkernels import backend
from tritonkernels.errors import UnsupportedError
from tritonkernels.target import KNOWN

pytestmark = pytest.mark.skipif(backend.device_type() != "cpu", reason="about the interpreter")


@pytest.mark.parametrize("design", DESIGNS)
def test_the_interpreter_is_refused(design):
    a = torch.ones(4, 4)
    with pytest.raises(UnsupportedError, match="needs a GPU, and the interpreter cannot run it"):
        tritonkernels.gemm(a, a, design=design)
    assert torch.equal(tritonkernels.gemm(a, a), a @ a)


@pytest.mark.parametrize("design", DESIGNS)
def test_a_gpu_is_not(design):
    a = torch.empty(4096, 4096, device="meta")
    report = tritonkernels.explain("gemm", a, a, design=design, target="h200")
    assert report["design"] == design and report["config"]["BLOCK_M"] in (64, 128)


def test_cp_async_needs_sm_80():
    a = torch.empty(64, 64, device="meta")
    old = next(target.name for target in KNOWN if target.vendor == "nvidia" and target.arch < 80)
    with pytest.raises(UnsupportedError, match=r"cp\.async needs sm_80, titan_v is sm_70"):
        tritonkernels.explain("gemm", a, a, design="async_copy", target=old)
