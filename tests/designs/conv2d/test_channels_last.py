"""The pass of Triton that copies operands into channels_last: layouts, ends of planes and patches, offsets, machine code."""

import json
from unittest import mock

import pytest
import torch

from tests.compiler import printed
from tests.harness import DEVICES, assert_poisoned_outside, available_on, channels_last, prepare, random, sentinel, thorough
from tritonkernels.language import two_copies
from tritonkernels.language.channels_last import are_in_chunks, copied, in_chunks
from tritonkernels.launch import LIBRARY

from .test_channels_last_cuda import MARGIN, NCHW, OTHERS, SHAPES


def check(*images):
    operands, (launch,) = in_chunks(*((x, lambda images: False) for x in images))
    buffers = []
    for x, operand, name in zip(images, operands, ("of_a", "of_b")):
        rows = launch.values[name].ptr
        buffer = torch.full((rows.numel() + 2 * MARGIN,), sentinel(rows.dtype), dtype=rows.dtype, device=rows.device)
        buffers.append(buffer)
        launch.values[name] = launch.values[name]._replace(ptr=buffer[MARGIN:-MARGIN].view(rows.shape))
        assert operand.shape[0] == x.shape[0] and operand.stride() == rows.movedim(-1, 1).stride()
    launch.run()
    for x, name, buffer in zip(images, ("of_a", "of_b"), buffers):
        result = launch.values[name].ptr.movedim(-1, 1)
        assert torch.equal(result[:, : x.shape[1]], x), (x.shape, x.stride())
        assert not result[:, x.shape[1] :].any() and result.shape[1] % 8 == 0
        assert_poisoned_outside(buffer, slice(MARGIN, -MARGIN))


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("device", DEVICES)
def test_copies(name, device):
    """Each layout alone, and before and after one that takes other patches, in one launch."""
    available_on(LIBRARY, device)
    x, other = (random(*shape, dtype=torch.float16, device=device) for shape in (SHAPES[name], (1, 5, 9, 7)))
    for layout in NCHW + OTHERS:
        check(layout(x))
    check(x, other)
    check(other, x)
    check(random(*x.shape[:2], 1, 1, dtype=torch.float16, device=device).expand(x.shape))


def test_offsets_of_64_bits():
    with mock.patch.object(two_copies, "needs_wide_offsets", lambda *tensors: True):
        check(random(2, 70, 13, 11, dtype=torch.float16), random(24, 10, 3, 3, dtype=torch.float16))


def test_nothing_is_launched_for_nothing():
    (rows,), launches = in_chunks((torch.empty(1, 10, 0, 6), lambda images: False), groups=2)
    assert rows.shape == (1, 16, 0, 6) and launches == []


def test_one_launch_for_what_is_copied():
    def programs(*images):
        operands, launches = in_chunks(*((x, are_in_chunks) for x in images))
        assert all(operand.stride(1) == 1 for operand in operands) and len(launches) <= 1
        return [launch.grid[0] for launch in launches]

    image, grad = (random(2, c, 8, 16, dtype=torch.float16) for c in (64, 130))
    assert programs(image, grad) == [4 + 4 * 3] and programs(channels_last(image), grad) == [4 * 3]
    assert programs(channels_last(image), channels_last(grad)[:, :128]) == [4 * 2] and programs(channels_last(image)) == []
    (work,) = copied(prepare("conv2d_weight", image, (130, 64, 1, 1), grad).problem, (2, 64, 128), (2, 130, 128))
    assert work.blocks == 4 + 4 * 3 and work.dram == 256 * (64 + 64 + 130 + 136) * 2


COMPILED = """
import json, sys, torch
from perf.offline import compile_launch, sass
from tritonkernels.language.channels_last import in_chunks
from tritonkernels.target import Target
found = []
for shape in ((4, 256, 96, 96), (4, 200, 14, 12), (4, 256, 14, 14), (4, 24, 139, 139)):
    image = torch.empty(shape, dtype=torch.float16, device="meta")
    _, (launch,) = in_chunks((image, lambda images: False))
    (code,) = sass.read(compile_launch(launch, Target.named("h200")).asm["cubin"]).values()
    found.append([text.split()[0] for _, text in code.instructions])
print(json.dumps(found))
"""


@thorough
def test_machine_code():
    """Loads by as many bytes as planes are multiples of, up to 16, which are under way together; stores of 16 bytes."""
    for opcodes, width in zip(json.loads(printed(COMPILED)), ("128", "128", "64", "U16")):
        loads = [opcode for opcode in opcodes if opcode.startswith("LDG")]
        assert set(loads) == {f"LDG.E.{width}"}, loads
        assert [opcode for opcode in opcodes if opcode.startswith("STG")] == ["STG.E.128"] * 2
        before = opcodes[: opcodes.index("STS.128")]
        assert sum(opcode in loads for opcode in before) >= 3 / 4 * len(loads), "loads that wait for the first ones' stores"
