"""Matrix product, wgmma planes: the configs, tensor maps and launches of wgmma_planes.cuh."""

import itertools

from tritonkernels.choice.work import MANY, kept, streamed
from tritonkernels.design import Design
from tritonkernels.operations.gemm.split_counts import one_by_one
from tritonkernels.operations.matmul.work import copies, main_kernel
from tritonkernels.workspace import counters, partial_sums

from ..launch import Kernel, ceil_div, configs_of, in_order
from .parts.arguments import arguments, layouts
from .parts.space import tiles
from .persistent import SLICE, operand_map
from .pipelined import packed

DEPTH = SLICE // 4  # of a slice, in numbers
_SPACE = configs_of(
    "BM BN STAGES GROUP",
    (128, 64, 6, 8),
    (64, 64, 3, 8),  # two of an SM
    (128, 128, 4, 8),
    (64, 128, 5, 8),
    (192, 64, 5, 8),
)
_LEAST = 4  # slices of a block: fewer take less time than a part of the tile
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
            yield from _in_runs(problem, config | {"BLOCKS": _blocks(config, target)})


def _in_runs(problem, config):
    """The config with 2 WAVES where that is another cut than 1; with PARTS above MANY, as many for each tile as for the others,
    where there are two or more, and more or others than MANY."""
    count, blocks = problem.batch * tiles(problem, config["BM"], config["BN"]), config["BLOCKS"]
    for waves, parts in itertools.product((2, 1), (MANY, 128)):
        cuts_others = waves == 1 or streamed(count, blocks, 1) < streamed(count, blocks, 2)
        others = 2 * count <= blocks and (MANY * count < blocks or blocks % count)
        if cuts_others and (parts == MANY or others):
            yield config | {"WAVES": waves, "PARTS": parts}


def cut(problem, config, batch):
    """(whole tiles of a batch, the others, the blocks that share these). Of PARTS above MANY each tile has the same number: its
    runs end where those of its neighbours do, so that all are at the same k at a time, and find in L2 what they have in common.
    """
    count, slices = batch * tiles(problem, config["BM"], config["BN"]), ceil_div(problem.k, DEPTH)
    blocks = config["BLOCKS"]
    left = streamed(count, blocks, config["WAVES"]) if slices else 0
    sharers = min(blocks, max(left, min(left * slices // _LEAST, left * config["PARTS"])))
    return count - left, left, sharers - (sharers % left if left and config["PARTS"] > MANY else 0)


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
    whole, left, sharers = cut(problem, config, out.shape[0])
    consumers, parts, arrivals = config["BM"] // 64, None, None
    if left != sharers:  # a cut goes through a tile
        parts = partial_sums(2 * sharers, config["BM"] * config["BN"], out)
        arrivals = counters((2 * sharers + left) * consumers, out)
    _, _, *others = arguments(problem, a, b, c, bias, out)
    yield Kernel(_TEMPLATE, layouts()).launch(
        {**config, "A_BY_K": a_by_k, "B_BY_K": b_by_k},
        (max(sharers, min(config["BLOCKS"], whole)),),
        (consumers + 2) * 128,
        (a_map, b_map, *others, out.shape[0], config["GROUP"], parts, arrivals, whole, sharers),
        _shared_bytes(config),
    )


@kept
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


def _work(problem, config, target):
    """A block cuts about one tile, whose parts the last of its blocks adds up: a part of each is read once."""
    _, left, sharers = cut(problem, config, problem.batch)
    tile, packs, slices = _block_tile(config), packed(problem, True), ceil_div(problem.k, DEPTH)
    kernel = main_kernel(problem, tile | ({"sharers": sharers} if left else {}), target, packs)
    if left and ceil_div(left * slices, sharers) % slices:  # a cut goes through a tile
        kernel = kernel.and_also(4.0 * config["BM"] * config["BN"], 2 + one_by_one(1 + sharers // left) / 2)
    return *copies(problem, *packs), kernel


DESIGN = Design(refuses=_refuses, configs=_configs, launches=_launches, work=_work)
