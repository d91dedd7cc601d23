"""conv2d_weight, warp_specialized: the configs, tensor maps and launches of warp_specialized.cuh."""

from tritonkernels.choice.work import STORED, Work, ahead_of
from tritonkernels.design import Design
from tritonkernels.operations.conv2d.on_hopper import refuses_on_hopper
from tritonkernels.operations.conv2d_weight.pieces import SLICE, cut
from tritonkernels.workspace import counters, partial_sums

from ..conv2d.parts.operands import TYPES, sizes
from ..conv2d.parts.pixel_boxes import beyond_maps, map_of_inputs
from ..conv2d.parts.taps import are_in_chunks
from ..launch import Kernel, PixelMap, ceil_div, configs_of
from .parts.channels_last import copied, in_chunks

BOX, BOX_BYTES, CONSUMERS = 64, 64 * 128, 2  # channels of a box, with SLICE positions
GROUP = 8  # parts that are added up together, where they are many: common/add_splits.cuh
SPACE = configs_of(
    "BM BN STAGES",
    (128, 256, 4),
    (256, 128, 4),
    (128, 192, 5),
    (128, 128, 6),
    (64, 256, 5),
    (64, 128, 8),
    (128, 64, 8),
)
_KERNEL = Kernel(
    "conv2d_weight::warp_specialized<{ELEMENT}, {BM}, {BN}, {STAGES}>",
    [{"ELEMENT": element} for element in ("__half", "__nv_bfloat16")],
)


def refuses(problem, target):
    if problem.terms >= 2**31 - SLICE:
        return f"TMA counts positions in 32 bits, and there are {problem.terms}"
    return refuses_on_hopper(problem, target) or beyond_maps(problem)


def configs(problem, target):
    """Each tile on all SMs, and on half of them, which have half as many sums to add."""
    for tile in SPACE:
        for blocks in (target.sms, target.sms // 2) if target.is_gpu else (5, 2, 20):
            yield tile | {"BLOCKS": blocks}


def cut_of(problem, config):
    units = problem.r * problem.s * ceil_div(problem.c, BOX)
    tiles = ceil_div(problem.k, config["BM"]) * ceil_div(units * BOX, config["BN"])
    return cut(tiles, ceil_div(problem.terms, SLICE), config["BLOCKS"])


def _suits(images, channels):
    """Whether TMA can read it as it is."""
    return are_in_chunks(images, channels) and all(images.stride(dim) > 0 or images.shape[dim] == 1 for dim in (0, 2, 3))


def launches(problem, config, input, grad_output, out):
    (input, grad_output), copies = in_chunks((input, _suits), (grad_output, _suits))
    yield from copies
    share, parts, arrivals = cut_of(problem, config), None, None
    if share.left and share.parts > 1:
        parts = partial_sums(share.left * share.parts, config["BM"] * config["BN"], out)
        arrivals = counters(share.left * (1 + ceil_div(share.parts, GROUP)) * CONSUMERS, out)
    maps = PixelMap(grad_output, (SLICE, BOX)), map_of_inputs(problem, input, (SLICE, BOX))
    numbers = {name: config[name] for name in ("BM", "BN", "STAGES")}
    yield _KERNEL.launch(
        {"ELEMENT": TYPES[problem.dtype], **numbers},
        (share.blocks,),
        (CONSUMERS + 1) * 128,
        (*maps, out, parts, arrivals, sizes(problem), out.stride(), share[:-1]),
        config["STAGES"] * ((config["BM"] + config["BN"]) * 128 + 16) + 16,
    )


def work(problem, config, target):
    share, (bm, bn) = cut_of(problem, config), (config["BM"], config["BN"])
    shared = share.left * share.parts > 1
    sums = (share.parts + 1) * 4 * bm * bn if shared else 0
    main = Work(
        share.blocks,
        (CONSUMERS + 1) * 128,
        2.0 * bm * bn * SLICE * share.longest,
        problem.precision,
        share.longest * (bm + bn) * 2 * SLICE + sums,
        problem.bytes,
        2 + share.longest / ahead_of(config["STAGES"]) + (share.parts if shared else 0),
        168,
        config["STAGES"] * (bm + bn) * 128,
        bm * bn * STORED,
    )
    of_input, of_grad = (problem.n, problem.c, problem.h * problem.w), (problem.n, problem.k, problem.p * problem.q)
    return *copied(problem, of_input, of_grad), main


DESIGN = Design(configs=configs, launches=launches, refuses=refuses, work=work)
