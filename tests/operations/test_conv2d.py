"""conv2d beyond the tests of every operation: types, every width of filter, promised loads and machine code, the choice."""

import itertools

import numpy as np
import pytest
import torch

from cuda_reference.launch import LIBRARY as CUDA
from perf.offline import sass
from tests import nvcc
from tests.harness import (
    DEVICES,
    LIBRARIES,
    available_on,
    channels_last,
    designs,
    first_dim_inside,
    prepare,
    random,
    run_checked,
    run_where_taken,
    thorough,
)
from tests.harness import (
    taken as kind_taken,
)
from tritonkernels.target import Target

H200 = Target.named("h200")
on_devices = pytest.mark.parametrize("device", DEVICES)
every_design = pytest.mark.parametrize("library, op, design", designs("conv2d"))

# Groups, padding and aligned rows; steps and dilation; an image of one piece of 128 bits.
CALLS = (
    ((2, 4, 9, 16), (6, 2, 3, 3), {"groups": 2, "padding": 1}),
    ((1, 3, 13, 24), (5, 3, 2, 3), {"stride": (2, 1), "dilation": (1, 2)}),
    ((1, 1, 4, 8), (1, 1, 4, 8), {}),
)
OF_SOME = (((2, 4, 9, 16), (4, 1, 3, 3), {"groups": 4}), ((2, 4, 9, 16), (6, 4, 1, 1), {}))  # which take none of the others
SQUARE_OR_DEPTHWISE = ("winograd", "depthwise_channels", "matmul.cuda_cores", "matmul.pipelined")


@every_design
@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float64), ids=str)
@on_devices
def test_types(library, op, design, device, dtype):
    """fp16 is covered by generated calls (tests/properties)."""
    available_on(library, device)

    def run(image, filters, options, layout):
        input, weight, bias = (random(*shape, dtype=dtype, device=device) for shape in (image, filters, filters[:1]))
        return run_where_taken(library, op, design, layout(input), weight, bias, **options)

    taken = [run(*call, layout) for call, layout in zip(CALLS, (lambda t: t, channels_last, first_dim_inside))]
    of_float32 = design == "matmul.cuda_cores" or (design == "register_blocked" and dtype == torch.float64)
    of_others = (library is LIBRARIES[0] and of_float32) or (design == "warp_specialized" and dtype == torch.float64)
    assert any(taken) or any(run(*call, channels_last) for call in OF_SOME) or of_others


@every_design
@on_devices
def test_every_width_of_filter(library, op, design, device):
    """Some designs walk a row of taps four at a time, with a remainder; rows of 71 and 72 results end inside tiles."""
    available_on(library, device)
    taken = []
    for s in range(1, 10):
        sizes, dtype = ((1, 2, 18, 71 + s % 2), (3, 2, 2, s)), kind_taken(library, op, design)[0]
        input, weight = (random(*size, dtype=dtype, device=device) for size in sizes)
        taken.append(run_where_taken(library, op, design, input, weight, padding=(0, s // 2)))
    assert any(taken) != (design in SQUARE_OR_DEPTHWISE)


def one_element_further(image):
    """channels_last, one element past an aligned address."""
    pixels = image.permute(0, 2, 3, 1)
    moved = torch.empty(image.numel() + 1, dtype=image.dtype, device=image.device)[1:].view(pixels.shape).copy_(pixels)
    return moved.permute(0, 3, 1, 2)


DEPTHWISE = [p for p in designs("conv2d") if p.values[2].startswith("depthwise")]


# Channels in whole vectors, in blocks of 32 with and without a remainder; filters that are unrolled and not.
@pytest.mark.parametrize("channels, taps, options", [
    (40, (3, 3), {"padding": 1}),
    (4, (5, 5), {"padding": (2, 1)}),
    (36, (3, 2), {"stride": (2, 1)}),
    (8, (9, 3), {"dilation": (1, 2), "padding": (0, 3)}),
    (6, (3, 3), {}),
])  # fmt: skip
@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16, torch.float64), ids=str)
@pytest.mark.parametrize("library, op, design", DEPTHWISE)
@on_devices
def test_depthwise_channels_side_by_side(library, op, design, channels, taps, options, dtype, device):
    available_on(library, device)
    input = channels_last(random(2, channels, 11, 7, dtype=dtype, device=device))
    weight, bias = random(channels, 1, *taps, dtype=dtype, device=device), random(channels, dtype=dtype, device=device)
    taken = run_where_taken(library, op, design, input, weight, bias, groups=channels, **options)
    run_where_taken(library, op, design, one_element_further(input), weight, groups=channels, **options)
    assert taken or (design == "depthwise_channels" and taps == (9, 3)), "a column that is too long to unroll"


@pytest.mark.parametrize("library, op, design", DEPTHWISE)
@on_devices
def test_depthwise_in_several_blocks(library, op, design, device):
    """Several blocks of channels and of runs, also in the interpreter, whose blocks are the largest."""
    available_on(library, device)
    input, weight = random(2, 72, 30, 35, device=device), random(72, 1, 3, 3, device=device)
    run_checked(library, op, design, channels_last(input), weight, groups=72)
    run_checked(library, op, design, input[:, :3].contiguous(), weight[:3], groups=3)


def test_pixels_of_channels_are_loaded_together():
    """If they are aligned, and the channels per lane divide their number."""

    def width(image, **out):
        groups = image.shape[1]
        _, launch = launch_of("depthwise_channels", image, random(groups, 1, 3, 3, dtype=image.dtype), groups=groups, **out)
        return int(launch.expression.rstrip(">").split(", ")[-1])

    image = channels_last(random(1, 8, 9, 9))
    assert width(image) == 4 and width(image.double()) == 2
    assert width(image.contiguous()) == width(channels_last(random(1, 6, 9, 9))) == width(one_element_further(image)) == 1
    assert width(image[:, :6], out=channels_last(torch.empty(1, 8, 7, 7))[:, :6]) == 1, "aligned pixels of 6 channels"


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_a_gradient_that_no_tap_reaches_is_zero(library):
    """Its phase is a convolution without channels, by the design that is chosen for the other phases."""
    available_on(library, "cpu")
    weight, grad_output = random(8, 1, 1, 1), channels_last(random(1, 8, 5, 5))
    run_checked(library, "conv2d_input", None, (1, 8, 9, 9), weight, grad_output, stride=2, groups=8)


# The promises of register_blocked, in the trace of the emulation and in the machine code.
def launch_of(design, *operands, config=None, **options):
    call = prepare("conv2d", *operands, **options)
    chosen = {d.name: d for d in CUDA.designs("conv2d")}[design]
    (launch,) = chosen.launches(call.problem, config or next(iter(chosen.configs(call.problem, H200))), *call.parts[0])
    return call.problem, launch


def sectors_of_halos(problem, tile_h, tile_w):
    """32-byte sectors of fp32 inputs (NCHW, rows of whole sectors) that each tile needs, summed over tiles."""
    total = 0
    for p, q in itertools.product(range(0, problem.p, tile_h), range(0, problem.q, tile_w)):
        top, left = p - problem.padding[0], q - problem.padding[1]
        rows = min(top + tile_h - 1 + problem.r, problem.h) - max(0, top)
        total += rows * (-(-min(left + tile_w - 1 + problem.s, problem.w) // 8) - max(0, left) // 8)
    return problem.c * total


@pytest.mark.parametrize("channels, taps", [(3, 3), (6, 6)])
def test_halos_are_loaded_once_and_shared_memory_is_read_without_conflicts(channels, taps):
    from cuda_reference.trace import trace

    operands = random(1, channels, 40, 192), random(channels, channels, taps, taps)
    problem, launch = launch_of("register_blocked", *operands, config={"KT": channels})
    (traced,) = trace(launch)
    halos = [x for x in traced.accesses if x.array == "argument 0"]
    assert {x.width for x in halos} == {16} and not traced.races
    assert sum(x.units for x in halos) <= 1.1 * sectors_of_halos(problem, 16, 64)
    reads = [x for x in traced.accesses if x.space == "shared" and x.kind == "read" and x.width == 16]
    assert reads and all(x.units == x.ideal_units for x in reads)


@pytest.mark.parametrize("padding, width", [(1, 192), (2, 136), ((1, 3), 192)])
def test_padded_halos_are_loaded_once(padding, width, monkeypatch):
    """Element by element. Lanes skip elements outside, so the trace pairs loads that hardware does not. The test checks instead
    that each warp reads each sector once, by eight neighbouring lanes.
    """
    from cuda_reference import trace

    parts, count = [], trace.accesses
    monkeypatch.setattr(trace, "accesses", lambda part: parts.append(part) or count(part))
    operands = random(1, 3, 40, width), random(3, 3, 5, 5)
    problem, launch = launch_of("register_blocked", *operands, padding=padding)
    trace.trace(launch)
    (part,) = (p for p in parts if p.space == "global")
    records = part.records[np.array(part.names)[part.array] == "argument 0"]
    assert set(records["width"]) == {4}
    lane, word = records["thread"].astype(np.int64), records["address"].astype(np.int64) // 4
    assert not ((word - lane) % 8).any(), "eight lanes that begin a sector share it"
    keys = records["block"], records["interval"].astype(np.int64), lane // 32, word
    assert len(np.unique(np.stack(keys), axis=1)[0]) == len(records), "an input is loaded once"
    sectors = np.unique(np.stack((*keys[:3], word // 8)), axis=1).shape[1]
    assert sectors == sectors_of_halos(problem, 16, 64)


@pytest.mark.parametrize("design", ["direct", "prefetched"])
def test_padded_halos_are_loaded_in_aligned_pieces(design):
    from cuda_reference.trace import trace

    _, launch = launch_of(design, random(1, 4, 40, 128), random(6, 4, 3, 3), padding=1)
    (traced,) = trace(launch)
    assert {x.width for x in traced.accesses if x.array == "argument 0"} == {16}


@thorough
@nvcc.needed
@pytest.mark.parametrize("architecture, dtype", [("sm_80", "float32"), ("sm_90", "float16"), ("sm_120", "float32")])
def test_the_hot_loop_is_arithmetic(architecture, dtype):
    """For dense filters, at least three quarters of it is arithmetic, and nothing spills."""
    shapes = ((1, 6, 40, 192), (6, 6, 6, 6))
    _, launch = launch_of("register_blocked", *(random(*shape, dtype=getattr(torch, dtype)) for shape in shapes))
    kernels = [name for name in launch.source.expressions if name.endswith("true>")]
    cubin = nvcc.compiled(architecture.removeprefix("sm_"), [launch.source.header], kernels).cubin
    codes = sass.read(cubin).values()
    assert len(codes) == len(kernels) >= 4
    for code in codes:
        assert code.stack_bytes == 0 and sass.share(code.hot_loop(), ("FFMA",)) >= 0.75, code.name
