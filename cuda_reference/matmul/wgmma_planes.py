"""Matrix product, wgmma planes: the configs, tensor maps and launches of wgmma_planes.cuh."""

from tritonkernels.design import Design
from tritonkernels.operations.matmul.work import of_streams

from ..launch import Kernel, configs_of, in_order
from .parts.arguments import arguments, layouts
from .persistent import SLICE, operand_map
from .pipelined import packed
from .stream_k import blocks_that_share, in_runs, shared_tiles

DEPTH = SLICE // 4  # of a slice, in numbers
_SPACE = configs_of(
    "BM BN STAGES GROUP",
    (128, 64, 6, 8),
    (64, 64, 3, 8),  # two of an SM
    (128, 128, 4, 8),
    (64, 128, 5, 8),
    (192, 64, 5, 8),
)
_TEMPLATE = "matmul::wgmma_planes<{BM}, {BN}, {STAGES}, {A_BY_K}, {B_BY_K}>"


def _shared_bytes(config):
    """Per block: STAGES slices of A, and of B and its low plane, with three 8-byte mbarriers each; and a flag a consumer."""
    return config["STAGES"] * (SLICE * (config["BM"] + 2 * config["BN"]) + 24) + 16


def _blocks(config, target):
    """The blocks that the SMs hold: the kernel's PlaneRegisters::BLOCKS."""
    return (2 if (config["BM"], config["BN"]) == (64, 64) else 1) * target.sms or 3


def _configs(problem, target):
    for config in in_order(_SPACE, target):
        if not target.is_gpu or _shared_bytes(config) <= target.shared_per_block:
            yield from in_runs(problem, config, _blocks(config, target))


def _refuses(problem, target):
    if problem.precision != "tf32x3":
        return f"it multiplies float32 as tf32x3, not {problem.precision}"
    if target.is_gpu and target.arch != 90:
        return f"it needs wgmma, which only sm_90 has; {target.name} is {target.isa}"
    return None


def _launches(problem, config, a, b, c, bias, out):
    a, a_map, a_by_k, copies_of_a = operand_map(problem, a, 1, config["BM"], True)
    b, b_map, b_by_k, copies_of_b = operand_map(problem, b, 2, config["BN"], True)
    yield from copies_of_a + copies_of_b
    blocks, *shares = shared_tiles(problem, config, config["BM"] // 64, out)
    _, _, *others = arguments(problem, a, b, c, bias, out)
    yield Kernel(_TEMPLATE, layouts()).launch(
        {**config, "A_BY_K": a_by_k, "B_BY_K": b_by_k},
        (blocks,),
        (config["BM"] // 64 + 2) * 128,
        (a_map, b_map, *others, out.shape[0], config["GROUP"], *shares),
        _shared_bytes(config),
    )


def _block_tile(config):
    """The block tile of a config in the analysis' terms."""
    return dict(config) | {
        "BK": DEPTH,
        "threads": (config["BM"] // 64 + 2) * 128,
        "stages": config["STAGES"],
        "GROUP_M": config["GROUP"],
        "programs": config["BLOCKS"],
        "waves": config["WAVES"],
    }


DESIGN = Design(
    refuses=_refuses,
    configs=_configs,
    launches=_launches,
    work=of_streams(_block_tile, lambda problem, config: packed(problem, True), sharers=blocks_that_share),
)
