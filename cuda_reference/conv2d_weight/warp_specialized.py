"""conv2d_weight, warp_specialized: the configs, tensor maps and launches of warp_specialized.cuh."""

from tritonkernels.design import Design
from tritonkernels.operations.conv2d.on_hopper import refuses_on_hopper
from tritonkernels.operations.conv2d_weight.bands import BOX, bands_and_tiles, boxes_without_rows
from tritonkernels.operations.conv2d_weight.pieces import SLICE, cut
from tritonkernels.operations.conv2d_weight.work import of_pieces

from ..conv2d.parts.operands import TYPES, sizes
from ..conv2d.parts.pixel_boxes import beyond_maps, map_of_inputs
from ..conv2d.parts.taps import are_in_chunks
from ..launch import Kernel, PixelMap, ceil_div, configs_of
from .parts.channels_last import copied, in_chunks
from .parts.pieces import workspace

CONSUMERS = 2
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
    return refuses_on_hopper(problem, target, along=False) or beyond_maps(problem)


def configs(problem, target):
    """Each tile on all SMs, and on half of them, which have half as many sums to add; none with boxes of no row."""
    for tile in SPACE:
        if problem.groups > 1 and boxes_without_rows(problem, tile["BM"]):
            continue
        for blocks in (target.sms, target.sms // 2) if target.is_gpu else (5, 2, 20):
            yield tile | {"BLOCKS": blocks}


def bands_and_cut(problem, config):
    bands, tiles = bands_and_tiles(problem, config["BM"], config["BN"])
    return bands, cut(tiles, ceil_div(problem.terms, SLICE), config["BLOCKS"])


def _suits(images, channels):
    """Whether TMA can read it as it is."""
    return are_in_chunks(images, channels) and all(images.stride(dim) > 0 or images.shape[dim] == 1 for dim in (0, 2, 3))


def launches(problem, config, input, grad_output, out):
    (input, grad_output), copies = in_chunks((input, _suits), (grad_output, _suits))
    yield from copies
    bands, share = bands_and_cut(problem, config)
    parts, arrivals = workspace(share, config["BM"] * config["BN"], CONSUMERS, out)
    maps = PixelMap(grad_output, (SLICE, BOX)), map_of_inputs(problem, input, (SLICE, BOX))
    numbers = {name: config[name] for name in ("BM", "BN", "STAGES")}
    yield _KERNEL.launch(
        {"ELEMENT": TYPES[problem.dtype], **numbers},
        (share.blocks,),
        (CONSUMERS + 1) * 128,
        (*maps, out, parts, arrivals, sizes(problem), out.stride(), bands, share[:-1]),
        config["STAGES"] * ((config["BM"] + config["BN"]) * 128 + 16) + 16,
    )


def work(problem, config, target):
    (_, share), tile = bands_and_cut(problem, config), (config["BM"], config["BN"], SLICE)
    threads = (CONSUMERS + 1) * 128
    main = of_pieces(problem, share, tile, threads, problem.precision, config["STAGES"], 168, share.parts)
    of_input, of_grad = (problem.n, problem.c, problem.h * problem.w), (problem.n, problem.k, problem.p * problem.q)
    return *copied(problem, of_input, of_grad), main


DESIGN = Design(configs=configs, launches=launches, refuses=refuses, work=work)
