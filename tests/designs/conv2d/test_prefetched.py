"""prefetched, in machine code: a tap's multiply-adds do not wait for the loads of the next tap."""

import json
import re

import pytest

from tests.compiler import printed
from tests.harness import thorough

# The innermost loop that multiplies, as instructions, of each design's first config.
COMPILE = """
import json, sys, torch
from perf.offline import sass
from perf.offline import compile_launch
from tritonkernels.conv2d import prepare
from tritonkernels.launch import LIBRARY
from tritonkernels.target import Target

target = Target.named(sys.argv[1])

def loop(design, call):
    config = next(iter(design.configs(call.problem, target)))
    (launch,) = design.launches(call.problem, config, *call.parts[0])
    (code,) = sass.read(compile_launch(launch, target).asm["cubin"]).values()
    bodies = [[text for address, text in code.instructions if a <= address <= b] for a, b in code.loops()]
    return min((body for body in bodies if any(text.startswith("FFMA") for text in body)), key=len)

def empty(*shape):
    return torch.empty(shape, device="meta")

calls = prepare(empty(1, 6, 768, 512), empty(6, 6, 6, 6)), prepare(empty(32, 64, 56, 56), empty(64, 64, 3, 3), padding=1)
designs = {design.name: design for design in LIBRARY.designs("conv2d")}
print(json.dumps({name: [loop(designs[name], call) for call in calls] for name in ("direct", "prefetched")}))
"""


def loaded_and_read(body):
    """Loads from global memory whose result is read later in the same iteration."""
    found = []
    for i, text in enumerate(body):
        if text.startswith("LDG"):
            register = re.search(r"\b(R\d+)\b", text)[1]
            for later in body[i + 1 :]:
                first, *sources = re.findall(r"\bR\d+\b", later) or [""]
                if register in sources or (register == first and later.startswith(("ST", "BAR"))):
                    found.append((text, later))
                    break
                if register == first:
                    break
    return found


@thorough
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_nothing_waits_for_the_loads_of_the_next_tap(architecture):
    loops = json.loads(printed(COMPILE, architecture))
    for body in loops["prefetched"]:
        kinds = [text.split()[0].split(".")[0] for text in body]
        assert "LDG" in kinds and loaded_and_read(body) == []
        assert kinds.index("LDG") < kinds.index("FFMA"), "loads must come before the multiply-adds"
    assert all(loaded_and_read(body) for body in loops["direct"]), "direct must wait, else the check is wrong"
