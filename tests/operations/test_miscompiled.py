"""A kernel in which an index gets bits of another one (Triton 3.6) is found in its PTX, and not launched."""

from types import SimpleNamespace

import pytest
import torch

from tests.harness import prepare
from tritonkernels import miscompiled
from tritonkernels.conv2d.parts import slices
from tritonkernels.errors import LaunchError
from tritonkernels.target import Target

# What Triton 3.6 makes of conv2d's implicit_gemm in tf32, BLOCK_N 32 and FLAT, with an image that is not aligned to 16 bytes.
FAULTY = """
	mul.wide.u32 	%rd101, %r1, 2147483648;
	cvt.u64.u32 	%rd102, %r9;
	shl.b64 	%rd103, %rd102, 34;
	or.b64 	%rd104, %rd101, %rd103;
	shl.b32 	%r287, %r9, 2;
	mov.b64 	{_, %r32}, %rd104;
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%r1, 2147483648", "%r1, 4"),  # the lower index stays in its half
        ("or.b64 	%rd104, %rd101, %rd103", "or.b64 	%rd104, %rd100, %rd103"),  # a product that is used otherwise
        ("{_, %r32}, %rd104", "{_, %r32}, %rd103"),  # the upper half of another number
        ("mov.b64 	{_, %r32}, %rd104;", "mov.b64 	%rd105, %rd104;"),  # the whole number
    ],
)
def test_the_fault_is_told_from_its_neighbours(old, new):
    assert miscompiled.is_faulty(FAULTY)
    assert old in FAULTY and not miscompiled.is_faulty(FAULTY.replace(old, new))


def test_a_faulty_kernel_is_not_launched(monkeypatch):
    compiled = SimpleNamespace(name="_kernel", asm={"ptx": FAULTY})
    monkeypatch.setattr(miscompiled, "is_known_of", lambda: False)
    miscompiled.check(compiled)
    monkeypatch.setattr(miscompiled, "is_known_of", lambda: True)
    with pytest.raises(LaunchError, match=r"_kernel wrongly .* Triton 3\.7"):
        miscompiled.check(compiled)
    miscompiled.check(SimpleNamespace(name="_kernel", asm={"cubin": b""}))


@pytest.mark.parametrize("precision", ["tf32", "ieee"])
def test_the_tile_in_which_it_was_found_is_no_candidate_where_it_is_known(precision, monkeypatch):
    image, filters = torch.empty(2, 16, 5, 9, device="meta"), torch.empty(16, 16, 3, 3, device="meta")
    problem = prepare("conv2d", image, filters, precision=precision).problem

    def tiles():
        return {(c.kwargs["BLOCK_M"], c.kwargs["BLOCK_N"]) for c in slices.candidates(problem, Target.named("h200"))}

    monkeypatch.setattr(miscompiled, "is_known_of", lambda: False)
    every = tiles()
    monkeypatch.setattr(miscompiled, "is_known_of", lambda: True)
    assert every - tiles() == ({slices.MISCOMPILED} if precision == "tf32" else set())
