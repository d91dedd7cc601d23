"""Rounding to tf32 in Triton: an instruction of its own from Hopper on."""

from tests.compiler import printed

COMPILE = """
import torch
from perf.offline import compile_launch, sass
from tritonkernels.matmul import prepare, split_k
from tritonkernels.target import Target

a, b = torch.empty(8192, 512, device="meta").t(), torch.empty(8192, 128, device="meta")
call, target = prepare(a, b, precision="tf32"), Target.named("h100")
tile = dict(BLOCK_M=128, BLOCK_N=64, PACK_A=False)
config = next(c for c in split_k.DESIGN.configs(call.problem, target) if tile.items() <= c.kwargs.items())
(launch, *_) = split_k.DESIGN.launches(call.problem, config, *call.parts[0])
(code,) = sass.read(compile_launch(launch, target).asm["cubin"]).values()
print(*(sass.count(code.hot_loop(), (kind,)) for kind in ("F2FP.TF32", "FSETP", "HGMMA.64x64x8")))
"""


def test_an_instruction_for_each_element():
    """128 threads round 128 x 32 and 32 x 64 elements of a slice, and wgmma multiplies: rows from registers."""
    assert list(map(int, printed(COMPILE).split())) == [(128 + 64) * 32 // 128, 0, 8]
