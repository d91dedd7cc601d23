"""The pass of CUDA that copies operands into channels_last: layouts, ends of planes and tensors, accesses, machine code."""

import dataclasses

import pytest
import torch

from cuda_reference.conv2d_weight.parts.channels_last import PLANE, copied, in_chunks
from cuda_reference.launch import LIBRARY
from cuda_reference.toolchain import with_its_own
from perf.offline import sass
from tests import nvcc
from tests.harness import (
    DEVICES,
    assert_poisoned_outside,
    available_on,
    channels_last,
    cropped,
    first_dim_inside,
    offset_by_one,
    padded,
    prepare,
    random,
    sentinel,
    step_two,
    thorough,
)

MARGIN = 64  # elements of poison around a result

# Around patches of 64 or 32 columns by 64 or 128 pixels, of a chunk by 512 pixels, and around words of 16 bytes.
SHAPES = {
    "one of everything": (1, 1, 1, 1),
    "a first layer, odd planes": (2, 3, 19, 17),
    "a first layer, several patches": (1, 3, 3, 700),
    "whole patches": (2, 64, 8, 16),
    "aligned planes, a chunk more than a patch": (2, 72, 8, 10),
    "odd planes, more than a patch": (2, 70, 13, 11),
    "even planes, half a patch": (3, 20, 6, 11),
    "planes too small for words": (2, 40, 5, 5),
    "filters": (24, 10, 3, 3),
    "one column": (2, 40, 67, 1),
    "the least that is a plane, the end of the tensor": (1, 10, 4, 8),
}


def into_channels_last(*images, groups=1):
    """What in_chunks makes of the images, with poison around it, and its launch."""
    operands, (launch,) = in_chunks(*((x, lambda images, channels: False) for x in images), groups=groups)
    arguments, results = list(launch.arguments), []
    for i in range(1, 3 * len(images), 3):
        rows = arguments[i]
        buffer = torch.full((rows.numel() + 2 * MARGIN,), sentinel(rows.dtype), dtype=rows.dtype, device=rows.device)
        arguments[i] = buffer[MARGIN:-MARGIN].view(rows.shape)
        results.append((buffer, arguments[i].movedim(-1, 1)))
    launch = dataclasses.replace(launch, arguments=tuple(arguments))
    launch.run()
    for (buffer, result), operand in zip(results, operands):
        assert operand.shape == result.shape and operand.stride() == result.stride()
        assert_poisoned_outside(buffer, slice(MARGIN, -MARGIN))
    return [result for _, result in results], launch


def check(*images, groups=1):
    for x, result in zip(images, into_channels_last(*images, groups=groups)[0]):
        n, c, h, w = x.shape
        of_groups = result.reshape(n, groups, -1, h, w)
        assert torch.equal(of_groups[:, :, : c // groups].reshape(x.shape), x), (x.shape, x.stride())
        assert not of_groups[:, :, c // groups :].any() and result.shape[1] // groups % (16 // x.element_size()) == 0


def shifted(by):
    """NCHW that begins so many elements after an aligned address, with all planes inside one storage."""

    def layout(t):
        flat = torch.full((t.numel() + by,), torch.nan, dtype=t.dtype, device=t.device)
        return flat[by:].view(t.shape).copy_(t)

    return layout


def every_other_channel(t):
    wide = torch.full((t.shape[0], 2 * t.shape[1], *t.shape[2:]), torch.nan, dtype=t.dtype, device=t.device)
    return wide[:, ::2].copy_(t)


NCHW = (torch.clone, shifted(1), shifted(3), shifted(6), every_other_channel)
OTHERS = (channels_last, first_dim_inside, offset_by_one, padded, step_two, cropped)


@pytest.mark.parametrize("dtype", (torch.float16, torch.float32), ids=("16 bits", "32 bits"))
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("device", DEVICES)
def test_copies(dtype, name, device):
    """Each layout alone, and after and before one that takes other patches, in one launch."""
    available_on(LIBRARY, device)
    x, other = random(*SHAPES[name], dtype=dtype, device=device), random(1, 5, 9, 7, dtype=dtype, device=device)
    for layout in NCHW + OTHERS:
        check(layout(x))
        check(layout(x), other)
    check(other, x)
    check(random(*x.shape[:2], 1, 1, dtype=dtype, device=device).expand(x.shape))
    if x.shape[1] % 2 == 0:
        check(x, groups=2)


def test_one_launch_for_what_is_copied():
    def blocks(*images):
        operands, launches = in_chunks(*((x, lambda images, channels: images.stride(1) == 1) for x in images))
        assert all(operand.stride(1) == 1 for operand in operands) and len(launches) <= 1
        return [launch.grid[0] for launch in launches]

    image, grad = (random(2, c, 8, 16, dtype=torch.float16) for c in (64, 130))
    assert blocks(image, grad) == [4 + 4 * 3] and blocks(channels_last(image), grad) == [4 * 3]
    assert blocks(channels_last(image), channels_last(grad)) == [] == blocks(image[:0], grad[:0])
    problem = prepare("conv2d_weight", image, (130, 64, 1, 1), grad).problem
    (work,) = copied(problem, (2, 64, 128), (2, 130, 128))
    assert work.blocks == 4 + 4 * 3 and work.dram == 256 * (64 + 64 + 130 + 136) * 2


@pytest.mark.parametrize("dtype", (torch.float16, torch.float32), ids=("16 bits", "32 bits"))
def test_accesses(dtype):
    """Words of 16 bytes, no bank conflicts, no races; the fewest sectors of the result."""
    from cuda_reference.trace import trace

    for shape in ((1, 64, 8, 16), (1, 32, 8, 16), (1, 3, 32, 32), (1, 64, 13, 11)):
        (traced,) = trace(*into_channels_last(random(*shape, dtype=dtype))[1:])
        assert traced.races == ()
        wide = [x for x in traced.accesses if x.width == 16]
        assert {(x.space, x.kind) for x in wide} >= {("global", "read"), ("global", "write"), ("shared", "write")}
        is_odd = shape[2] % 2
        for x in traced.accesses:
            if x.array.startswith("argument 0"):
                assert x.width == 16 or is_odd
            elif x.width == 16 or x.kind == "read":
                assert x.units == x.ideal_units, x


@thorough
@nvcc.needed
def test_machine_code():
    """Loads and stores of 16 bytes, all loads of a thread before the first store into shared memory, no spills."""
    kernels = ["conv2d_weight::channels_last<uint16_t>", "conv2d_weight::channels_last<uint32_t>"]
    compiled = nvcc.compiled(with_its_own(90), ["conv2d_weight/parts/channels_last.cuh"], kernels)
    for code in sass.read(compiled.cubin).values():
        assert code.stack_bytes == 0 and code.registers <= 72
        names = [text.split()[0] for _, text in code.instructions]
        assert "STG.E.128" in names and "STS.128" in names and not any(name.startswith("LD.") for name in names)
        before = names[: names.index("STS.128")]
        assert before.count("LDG.E.128") >= 8, "two words of each of four chunks"


def test_planes_have_at_least_a_word():
    """The shortest tensor of planes has one, as is_inside wants."""
    assert PLANE >= 16 // 2
