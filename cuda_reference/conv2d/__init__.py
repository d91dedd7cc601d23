"""conv2d in CUDA C++."""

from tritonkernels.conv2d import prepare
from tritonkernels.design import Design, takes_everything

from ..launch import LIBRARY, CudaLaunch, Source, ceil_div

TILE_H, TILE_W = 4, 8
STAGED_BYTES = 48 * 1024  # what a block may have of shared memory on every architecture


def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, *, out=None, design=None, config=None):
    """tritonkernels.conv2d, computed by the CUDA designs: arguments, result, error bound and errors are documented there."""
    return LIBRARY.run(prepare(input, weight, bias, stride, padding, dilation, groups, out=out), design, config)


def halo_bytes(problem):
    """Shared memory for the inputs that one tile of outputs needs of a channel; rows are padded to 16 bytes (class Halo)."""
    rows, cols = (
        (tile - 1) * step + (taps - 1) * dilation + 1
        for tile, step, taps, dilation in zip((TILE_H, TILE_W), problem.stride, (problem.r, problem.s), problem.dilation)
    )
    return rows * ceil_div(cols, 4) * 4 * 4


def _direct():
    space = [{"KT": 8}, {"KT": 4}, {"KT": 16}]
    template = "conv2d::direct<{KT}, {STAGED}>"
    both = ("true", "false")
    source = Source("conv2d/direct.cuh", tuple(template.format(**config, STAGED=s) for config in space for s in both))

    def configs(problem, target):
        """The fewest output channels per thread that cover the group's first, up to 16."""
        covering = [c for c in sorted(space, key=lambda c: c["KT"]) if c["KT"] >= problem.k // problem.groups]
        first = covering[0] if covering else {"KT": 16}
        return [first, *(c for c in space if c != first)]

    def launches(problem, config, input, weight, bias, out):
        g = problem
        tiles = ceil_div(g.p, TILE_H) * ceil_div(g.q, TILE_W)
        blocks_k = ceil_div(g.k // g.groups, config["KT"])
        sizes = (g.n, g.c, g.h, g.w, g.k, g.r, g.s, g.p, g.q, *g.stride, *g.padding, *g.dilation, g.groups)
        strides = (*input.stride(), *weight.stride(), 0 if bias is None else bias.stride(0), *out.stride())
        staged = halo_bytes(g) <= STAGED_BYTES
        yield CudaLaunch(
            source,
            template.format(**config, STAGED="true" if staged else "false"),
            grid=(g.n * g.groups * blocks_k * tiles,),
            block=(TILE_H * TILE_W, 1, 1),
            arguments=(input, weight, bias, out, sizes, strides),
            shared_bytes=halo_bytes(g) if staged else 0,
        )

    return Design(
        name="direct",
        summary="8 x 4 positions per block, halo in shared memory shared out evenly, channels in registers",
        mirrors="conv2d seed: direct",
        refuses=takes_everything,
        configs=configs,
        launches=launches,
    )


DESIGNS = (_direct(),)
